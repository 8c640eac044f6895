package portal_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
	"stagedoor/state/identity"
)

var shownLink = regexp.MustCompile(`https://gateway.example.net(/signin/link[^<]*)`)

func TestInvitedPersonMakesAnAccount(t *testing.T) {
	h := newFixture(t)
	staff, err := h.registry.CreateGroup(t.Context(), "staff", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	root := h.signedIn("root")
	root.get("/admin/users")
	id := find(hiddenID, root.page)
	group := fmt.Sprint(staff.ID)
	root.expect(root.post("/admin/invitations", "people", "dora@example.com, missing@, eva", "group", group),
		http.StatusUnprocessableEntity, "missing@: Email must be an address")
	root.expect(root.post("/admin/invitations", "people", "eva anna"), http.StatusConflict, "anna: There is a user")
	if left := h.registry.Invitations(); len(left) != 0 {
		t.Errorf("a refused form left %d invitations", len(left))
	}
	root.expect(root.post("/admin/invitations", "people", " "), http.StatusUnprocessableEntity, "1 to 50")
	fields := []string{"id", id, "people", "anna@example.org, eva", "group", group}
	root.expect(root.post("/admin/invitations", fields...), http.StatusOK, "not shown again")
	links := shownLink.FindAllStringSubmatch(root.page, -1)
	if len(links) != 2 {
		t.Fatal(root.page)
	}
	root.get("/admin/users")
	if strings.Contains(root.page, "li_") {
		t.Error("the list shows the secrets")
	}
	for _, text := range []string{"Open invitations", "anna@example.org", "eva", "staff", "root", "never"} {
		root.expect(root.get("/admin/users"), http.StatusOK, text)
	}
	root.expect(root.post("/admin/invitations", fields...), http.StatusConflict, "sent already")

	// The name of another user is not suggested, and cannot be taken.
	v := h.visitor()
	v.expect(v.get(links[0][1]), http.StatusOK, `value="" autocomplete="username"`)
	v.expect(v.post(browser.PathLink, "username", "anna", "new", chosen, "again", chosen),
		http.StatusUnprocessableEntity, "taken")
	v.sentTo(v.post(browser.PathLink, "username", "anna2", "new", chosen, "again", chosen), "/account")
	v.expect(v.get("/account"), http.StatusOK, "anna2")
	u, err := h.registry.UserByName("anna2")
	if kept, _ := identity.FindUser(h.state.View(), u.ID); err != nil || kept.Group != staff.ID || u.Admin ||
		u.Email != "anna@example.org" {
		t.Errorf("made %+v, %v", kept, err)
	}
	if _, err := h.registry.User(h.anna.ID); err != nil {
		t.Error(err)
	}

	open := h.registry.Invitations()
	root.get("/admin/users")
	root.sentTo(root.post("/admin/invitations/"+open[0].ID+"/withdraw"), "/admin/users?done=invitation_withdrawn")
	v.expect(v.get(links[1][1]), http.StatusForbidden, "was withdrawn")
}

func TestAdministratorChangesAUser(t *testing.T) {
	h := newFixture(t)
	staff, err := h.registry.CreateGroup(t.Context(), "staff", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	anna, root := h.signedIn("anna"), h.signedIn("root")
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	root.expect(root.get(path), http.StatusOK, "Unknown device")
	root.sentTo(root.post(path+"/group", "group", fmt.Sprint(staff.ID)), path+"?done=user_moved")
	if u, _ := identity.FindUser(h.state.View(), h.anna.ID); u.Group != staff.ID {
		t.Errorf("the group is %d", u.Group)
	}
	root.get(path)
	root.expect(root.post(path+"/group", "group", "99"), http.StatusNotFound, "Not found")
	root.get(path)
	root.sentTo(root.post(path+"/sessions/"+h.registry.Sessions(h.anna.ID)[0].ID+"/end"), path+"?done=session_ended")
	if res := anna.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the session goes on: %d", res.StatusCode)
	}
	root.get(path)
	root.expect(root.post(path+"/link", "password", password), http.StatusOK, "A link for anna")
	link := shownLink.FindStringSubmatch(root.page)
	root.get(path)
	root.sentTo(root.post(path+"/sessions/end"), path+"?done=sessions_ended")
	v := h.visitor()
	v.expect(v.get(link[1]), http.StatusForbidden, "does not work any more")
	own := fmt.Sprintf("/admin/users/%d", h.root.ID)
	root.get(own)
	for _, action := range []string{"/role", "/erase", "/link"} {
		root.expect(root.post(own+action, "password", password, "username", "root"), http.StatusUnprocessableEntity,
			"yourself")
	}
}

func TestAStolenSessionOfAnAdministratorMakesNoOtherAndErasesNoUser(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	root.get(path)
	root.expect(root.post(path+"/role", "role", "admin", "password", "guess"), http.StatusForbidden,
		"Your own password is wrong")
	root.expect(root.post(path+"/erase", "username", "anna", "password", "guess"), http.StatusForbidden,
		"Your own password is wrong")
	root.expect(root.post(path+"/link", "password", "guess"), http.StatusForbidden, "Your own password is wrong")
	own := fmt.Sprintf("/admin/users/%d", h.root.ID)
	root.expect(root.post(own+"/link"), http.StatusUnprocessableEntity, "yourself")
	root.get(path)
	root.expect(root.post(path+"/erase", "username", "ann", "password", password), http.StatusUnprocessableEntity,
		"Type the username")
	if u, err := h.registry.User(h.anna.ID); err != nil || u.Admin || !u.Erased.IsZero() {
		t.Fatalf("%+v, %v", u, err)
	}
	root.sentTo(root.post(path+"/role", "role", "admin", "password", password), path+"?done=role_changed")
	if u, err := h.registry.User(h.anna.ID); err != nil || !u.Admin {
		t.Errorf("%+v, %v", u, err)
	}
	h.remaining = 1
	root.get(path)
	root.sentTo(root.post(path+"/erase", "username", "anna", "password", password), path+"?done=user_erased_partly")
	root.expect(root.get(path), http.StatusOK, "erased")
	for range 6 {
		root.post(path+"/role", "role", "user", "password", "guess")
	}
	root.expect(root.post(path+"/role", "role", "user", "password", password), http.StatusTooManyRequests, "Too many")
}

func TestAnAdministratorWithASecondFactorConfirmsWithACodeToo(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	_, recovery := root.enrol()
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	root.expect(root.get(path), http.StatusOK, `id="role-code" name="code"`)
	forms := map[string][]string{"/role": {"role", "admin"}, "/erase": {"username", "anna"}, "/link": nil,
		"/second-factor/off": nil}
	for action, fields := range forms {
		root.expect(root.post(path+action, append(fields, "password", password)...), http.StatusForbidden,
			"The code is wrong")
	}
	if u, err := h.registry.User(h.anna.ID); err != nil || u.Admin || !u.Erased.IsZero() {
		t.Fatalf("%+v, %v", u, err)
	}
	root.sentTo(root.post(path+"/role", "role", "admin", "password", password, "code", recovery[0]),
		path+"?done=role_changed")
}

func TestSessionsShowTheirDeviceAndAddress(t *testing.T) {
	h := newFixture(t)
	v := h.visitor()
	v.agent = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0<b>"
	v.get("/signin")
	v.post("/signin", "username", "anna", "password", password)
	v.expect(v.get("/account/security"), http.StatusOK, "Firefox 143 on Linux")
	v.expect(v.get("/account/security"), http.StatusOK, "This device")
	v.expect(v.get("/account/security"), http.StatusOK, "<code>192.0.2.1</code>")
}
