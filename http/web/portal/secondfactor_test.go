package portal_test

import (
	"encoding/base32"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state"
)

var (
	shownFactor   = regexp.MustCompile(`<pre class="detail"><code>([A-Z2-7 ]+)</code>`)
	shownRecovery = regexp.MustCompile(`[A-Z2-7]{4}(-[A-Z2-7]{4}){3}`)
	halfway       = regexp.MustCompile(`name="halfway" value="([^"]+)"`)
)

// codeFor returns what an authenticator app shows for a key that was typed into it.
func codeFor(t *testing.T, key string) string {
	t.Helper()
	secret, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(key, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return tokens.CodeAt(secret, time.Now())
}

// enrol sets up a second factor on its page and returns the key and the recovery codes.
func (v *visitor) enrol() (key string, recovery []string) {
	v.t.Helper()
	v.expect(v.get("/account/second-factor"), http.StatusOK, `<svg class="qr"`)
	key = find(shownFactor, v.page)
	v.expect(v.post("/account/second-factor", "code", "000000", "password", password), http.StatusForbidden,
		"The code is wrong")
	v.expect(v.post("/account/second-factor", "code", codeFor(v.t, key), "password", "guess"),
		http.StatusForbidden, "The password is wrong.")
	if again := find(shownFactor, v.page); again != key {
		v.t.Errorf("the key changed from %s to %s", key, again)
	}
	v.expect(v.post("/account/second-factor", "code", codeFor(v.t, key), "password", password),
		http.StatusOK, "Your recovery codes")
	return key, shownRecovery.FindAllString(v.page, -1)
}

func TestSecondFactorIsAskedForAfterThePassword(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	_, recovery := anna.enrol()
	if len(recovery) != 10 {
		t.Fatal(anna.page)
	}
	anna.sentTo(anna.get("/account/second-factor"), "/account/security")

	v := h.visitor()
	v.get("/signin?next=/account/keys")
	v.expect(v.post("/signin", "username", "anna", "password", "guess"), http.StatusForbidden, "Wrong username")
	v.expect(v.post("/signin", "username", "anna", "password", password, "next", "/account/keys"), http.StatusOK,
		"authenticator app")
	sealed := find(halfway, v.page)
	if res := v.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("the password alone signs in: %d", res.StatusCode)
	}
	v.expect(v.post("/signin", "halfway", sealed, "code", "000000", "next", "/account/keys"), http.StatusForbidden,
		"The code is wrong")
	other := h.visitor()
	other.get("/signin")
	other.expect(other.post("/signin", "halfway", sealed, "code", recovery[0]), http.StatusForbidden, "sign in again")
	v.sentTo(v.post("/signin", "halfway", sealed, "code", strings.ToLower(recovery[0]), "next", "/account/keys"),
		"/account/keys")
	v.expect(v.get("/account/security"), http.StatusOK, "9 recovery codes left")
	v.expect(v.post("/account/second-factor/codes", "code", recovery[0]), http.StatusForbidden, "The code is wrong")
	v.expect(v.post("/account/second-factor/codes", "code", recovery[1]), http.StatusOK, "Your recovery codes")
	fresh := shownRecovery.FindAllString(v.page, -1)
	v.get("/account/security")
	v.sentTo(v.post("/account/second-factor/off", "code", fresh[0]), "/account/security?done=second_factor_off")
	h.signedIn("anna")
}

func TestARoleThatNeedsASecondFactorOpensNothingBefore(t *testing.T) {
	h := newFixture(t)
	h.demanded = true
	h.signedIn("anna")
	root := h.visitor()
	root.get("/signin")
	root.sentTo(root.post("/signin", "username", "root", "password", password), "/account")
	for _, path := range []string{"/account", "/admin/users", "/account/security", "/chat", "/signin", "/requests"} {
		root.sentTo(root.get(path), "/account/second-factor")
	}
	leaving := h.visitor()
	leaving.get("/signin")
	leaving.post("/signin", "username", "root", "password", password)
	leaving.expect(leaving.get("/account/second-factor"), http.StatusOK, "Sign out")
	leaving.sentTo(leaving.post("/signout"), "/signin?done=signed_out")
	root.get("/account/second-factor")
	root.sentTo(root.post("/admin/users", "username", "eve"), "/account/second-factor")
	if res := root.get("/live"); strings.Contains(root.page, "root") {
		t.Errorf("%d\n%s", res.StatusCode, root.page)
	}
	_, recovery := root.enrol()
	root.expect(root.get("/admin/users"), http.StatusOK, "anna")
	root.get("/account/security")
	root.expect(root.post("/account/second-factor/off", "code", recovery[0]), http.StatusForbidden, "Your role needs")

	// Another administrator resets it, with the own password.
	h.demanded = false
	h.user("boss", true)
	boss := h.signedIn("boss")
	path := fmt.Sprintf("/admin/users/%d", h.root.ID)
	boss.expect(boss.get(path), http.StatusOK, "Reset the second factor")
	boss.expect(boss.post(path+"/second-factor/off", "password", "guess"), http.StatusForbidden, "Your own password")
	boss.sentTo(boss.post(path+"/second-factor/off", "password", password), path+"?done=second_factor_reset")
	h.signedIn("root")
}

// A thief who knows the password waits until the user sets the second factor up.
func TestSettingUpASecondFactorEndsTheOtherSessions(t *testing.T) {
	h := newFixture(t)
	h.demanded = true
	thief, root := h.visitor(), h.visitor()
	for _, v := range []*visitor{thief, root} {
		v.get("/signin")
		v.post("/signin", "username", "root", "password", password)
	}
	root.enrol()
	if res := thief.get("/admin/users"); !strings.HasPrefix(res.Header.Get("Location"), "/signin") {
		t.Errorf("the session of the password alone gets %d, %s", res.StatusCode, res.Header.Get("Location"))
	}
	root.expect(root.get("/admin/users"), http.StatusOK, "anna")
}

func TestAUserWithASecondFactorIsNamedInTheAuditLog(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	_, recovery := anna.enrol()
	v := h.visitor()
	v.get("/signin")
	v.post("/signin", "username", "anna", "password", password)
	v.sentTo(v.post("/signin", "halfway", find(halfway, v.page), "code", recovery[0]), "/account")
	var actions []string
	for _, r := range h.audited(state.AuditQuery{})[:2] {
		actions = append(actions, r.Action)
		if r.Actor.Kind != state.ActorUser || r.Actor.Address != "192.0.2.1" {
			t.Errorf("%s has the actor %+v", r.Action, r.Actor)
		}
	}
	if slices.Sort(actions); !slices.Equal(actions, []string{"sign_in", "user.change"}) {
		t.Errorf("got %q", actions)
	}
}

func TestReplacingAllRecoveryCodesIsAudited(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	key, _ := anna.enrol()
	secret, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(key, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	anna.get("/account/security")
	before := len(h.audited(state.AuditQuery{}))
	anna.expect(anna.post("/account/second-factor/codes", "code",
		tokens.CodeAt(secret, time.Now().Add(30*time.Second))), http.StatusOK, "Your recovery codes")
	all := h.audited(state.AuditQuery{})
	if len(all) != before+1 || len(all[0].Changes) != 1 || all[0].Changes[0].Field != "recovery" {
		t.Errorf("%d records after %d: %+v", len(all), before, all[0])
	}
}

func TestALinkForAPasswordDoesNotReplaceTheSecondFactor(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	anna.enrol()
	path := h.visitor().link(h.registry.ResetLink(t.Context(), h.anna.ID, "root"))
	v := h.visitor()
	v.get(path)
	v.expect(v.post("/signin/link", "new", chosen, "again", chosen), http.StatusOK, "authenticator app")
	if res := v.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the link alone signs in: %d", res.StatusCode)
	}
}

func TestALinkForAPasswordWorksWhereTheUserIsSignedIn(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	_, recovery := anna.enrol()
	anna.get(h.visitor().link(h.registry.ResetLink(t.Context(), h.anna.ID, "root")))
	anna.expect(anna.post("/signin/link", "new", chosen, "again", chosen), http.StatusOK, "authenticator app")
	anna.sentTo(anna.post("/signin", "halfway", find(halfway, anna.page), "code", recovery[0]), "/account")
}

func TestAUserDeletesTheOwnAccountWithPasswordAndCodeOnly(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	root.get("/account/security")
	root.expect(root.post("/account/delete", "username", "root", "password", password), http.StatusUnprocessableEntity,
		"An administrator cannot delete")
	anna, other := h.signedIn("anna"), h.signedIn("anna")
	_, recovery := anna.enrol()
	anna.expect(anna.get("/account/security"), http.StatusOK, "The username stays with the ledger")
	for problem, fields := range map[string][]string{"Type your username": {"username", "root"},
		"The password is wrong": {"password", "guess"}, "The code is wrong": {"code", "000000"}} {
		all := append([]string{"username", "anna", "password", password, "code", recovery[0]}, fields...)
		if anna.post("/account/delete", all...); !strings.Contains(anna.page, problem) {
			t.Errorf("%s:\n%s", problem, anna.page)
		}
	}
	if u, err := h.registry.User(h.anna.ID); err != nil || !u.Active() {
		t.Fatalf("%+v, %v", u, err)
	}
	h.remaining = 1
	anna.expect(anna.post("/account/delete", "username", "anna", "password", password, "code", recovery[0]),
		http.StatusOK, "Your account is deleted")
	if !strings.Contains(anna.page, "still at work") || !strings.Contains(h.log.String(), "erase the user again") {
		t.Error("what is at work is not mentioned")
	}
	for name, v := range map[string]*visitor{"the browser": anna, "another one": other} {
		if res := v.get("/account"); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s is signed in: %d", name, res.StatusCode)
		}
	}
	if u, err := h.registry.UserByName("anna"); err != nil || u.Erased.IsZero() || u.Email != "" || u.SecondFactor {
		t.Errorf("%+v, %v", u, err)
	}
}
