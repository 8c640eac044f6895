package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"stagedoor/http/web/browser"
	"stagedoor/state/identity"
)

const chosen = "a password of my own"

// link returns the path of a one-time link, without the address of the gateway.
func (v *visitor) link(secret string, _ identity.Link, err error) string {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	path, ok := strings.CutPrefix(v.guard.Link(secret), origin)
	if !ok {
		v.t.Fatalf("the link is %s", v.guard.Link(secret))
	}
	return path
}

func TestOneTimeLinkSetsAPasswordAndSignsInOnce(t *testing.T) {
	h := newFixture(t)
	old := h.signedIn("anna")
	path := h.visitor().link(h.registry.ResetLink(t.Context(), h.anna.ID, "root"))
	v, late := h.visitor(), h.visitor()
	late.expect(late.get(path), http.StatusOK, `value="anna"`)
	v.expect(v.get(path), http.StatusOK, "Choose a password")
	v.expect(v.get(path), http.StatusOK, "Choose a password") // looking at it uses nothing up
	v.expect(v.post(browser.PathLink, "new", chosen, "again", "another one"), http.StatusUnprocessableEntity,
		"passwords differ")
	v.expect(v.post(browser.PathLink, "new", "short", "again", "short"), http.StatusUnprocessableEntity,
		"8 to 512 bytes")
	stranger := h.visitor()
	stranger.page = v.page
	stranger.expect(stranger.post(browser.PathLink, "new", chosen, "again", chosen), http.StatusForbidden,
		"does not belong")
	res := v.post(browser.PathLink, "new", chosen, "again", chosen, "username", "root")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/account" {
		t.Fatalf("%d, %s\n%s", res.StatusCode, res.Header.Get("Location"), v.page)
	}
	v.expect(v.get("/account"), http.StatusOK, "anna")
	if res := old.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the old session is answered %d", res.StatusCode)
	}
	late.expect(late.post(browser.PathLink, "new", "mine instead", "again", "mine instead"), http.StatusForbidden,
		"does not work any more")
	v.expect(v.get(path), http.StatusForbidden, "does not work any more")
	v.expect(v.get(browser.PathLink+"?link=forged"), http.StatusForbidden, "does not work any more")
}

func TestLinkOfTheFirstAdministratorWorksOnceOnThisMachine(t *testing.T) {
	h := newFixture(t)
	if _, _, err := h.registry.AdministratorLink(t.Context()); err == nil {
		t.Error("there is a link although there is an administrator")
	}
	if _, err := h.registry.SetAdmin(t.Context(), h.root.ID, false); err != nil {
		t.Fatal(err)
	}
	path := h.visitor().link(h.registry.AdministratorLink(t.Context()))
	v := h.visitor()
	v.expect(v.get(path), http.StatusForbidden, "own computer")
	v.local = true
	v.expect(v.get(path), http.StatusOK, "Set up the administrator")
	v.expect(v.post(browser.PathLink, "new", chosen, "again", chosen, "username", "root"),
		http.StatusUnprocessableEntity, "taken")
	v.expect(v.post(browser.PathLink, "new", chosen, "again", chosen, "username", "no name"),
		http.StatusUnprocessableEntity, "Username")
	v.local = false
	v.expect(v.post(browser.PathLink, "new", chosen, "again", chosen, "username", "boss"), http.StatusForbidden,
		"own computer")
	v.local = true
	v.get(path)
	res := v.post(browser.PathLink, "new", chosen, "again", chosen, "username", "boss")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/admin" {
		t.Fatalf("%d, %s\n%s", res.StatusCode, res.Header.Get("Location"), v.page)
	}
	if u, err := h.registry.UserByName("boss"); err != nil || !u.Admin {
		t.Errorf("made %+v, %v", u, err)
	}
	v.expect(v.get(path), http.StatusForbidden, "does not work any more")
}
