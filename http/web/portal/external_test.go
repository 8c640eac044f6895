package portal_test

import (
	"bytes"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/idp"
	"stagedoor/http/web/idp/idptest"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// withProvider adds a provider at which the person with the subject s1 signs in.
func (h *fixture) withProvider(change func(*idp.Provider)) *idptest.Provider {
	h.t.Helper()
	p := idptest.New(h.t)
	p.Redirect, p.Person = origin+idp.Callback("corp"), map[string]any{"sub": "s1"}
	config := idp.Provider{Name: "corp", Label: "Corp", Issuer: p.URL, ClientID: idptest.ClientID,
		ClientSecret: idptest.ClientSecret, GroupsClaim: "groups"}
	if change != nil {
		change(&config)
	}
	h.providers.Configure([]idp.Provider{config})
	return p
}

var leaving = regexp.MustCompile(`class="button primary" href="([^"]*)"`)

// answer returns the address with which the provider sends a browser back that the last page leads there.
func (v *visitor) answer(p *idptest.Provider, res *http.Response) string {
	v.t.Helper()
	v.expect(res, http.StatusOK, "Go on to Corp")
	address := html.UnescapeString(leaving.FindStringSubmatch(v.page)[1])
	if got := res.Header.Get("Refresh"); got != "0; url="+address {
		v.t.Errorf("the page leads to %q, its link to %q", got, address)
	}
	path, query, err := p.SignIn(address)
	if err != nil {
		v.t.Fatal(err)
	}
	return path + "?" + query.Encode()
}

// signInWith signs in at the provider, and returns the reply to the answer.
func (v *visitor) signInWith(p *idptest.Provider, next string) *http.Response {
	v.t.Helper()
	v.expect(v.get("/signin"), http.StatusOK, "Sign in with <bdi>Corp</bdi>")
	return v.get(v.answer(p, v.post("/signin/with/corp", "next", next)))
}

// linked links the provider's person to a user whose browser it returns.
func (h *fixture) linked(p *idptest.Provider, name string) *visitor {
	h.t.Helper()
	v := h.signedIn(name)
	v.get("/account/security")
	res := v.post("/account/identities", "provider", "corp", "password", password)
	v.sentTo(v.get(v.answer(p, res)), "/account/security?done=identity_linked")
	return v
}

// link links the provider's person to a user, as the page does after a confirmation.
func (h *fixture) link(p *idptest.Provider, user tokens.User) {
	h.t.Helper()
	_, err := h.registry.LinkExternal(h.t.Context(), user.ID, tokens.ExternalSignIn{Issuer: p.URL,
		Subject: p.Person["sub"].(string), Answer: tokens.Once{ID: "earlier", Expires: time.Now().Add(time.Minute)}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestAPersonSignsInAtAProviderOnceTheUserHasLinkedIt(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	p.Person = map[string]any{"sub": "s1", "email": "anna@example.com", "email_verified": true,
		"preferred_username": "anna"}
	stranger := h.visitor()
	stranger.expect(stranger.signInWith(p, ""), http.StatusForbidden, "No account here is linked")
	if len(stranger.cookies) != 1 {
		t.Errorf("an address and a name made a session: %v", stranger.cookies)
	}
	v := h.linked(p, "anna")
	v.expect(v.get("/account/security"), http.StatusOK, "Remove Corp")
	other := h.visitor()
	other.sentTo(other.signInWith(p, "/account/keys"), "/account/keys")
	other.expect(other.get("/account/security"), http.StatusOK, "<bdi>anna</bdi>")
	other.sentTo(h.visitor().signInWith(p, "https://evil.example/"), "/account")
	p.Person["sub"] = "s2"
	stranger.expect(stranger.signInWith(p, ""), http.StatusForbidden, "No account here is linked")
}

func TestAnAnswerOfAProviderWorksInItsBrowserOnly(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	h.link(p, h.anna)
	thief, victim := h.visitor(), h.visitor()
	thief.get("/signin")
	answer := thief.answer(p, thief.post("/signin/with/corp"))
	victim.get("/signin")
	victim.expect(victim.get(answer), http.StatusForbidden, "belongs to another browser")
	// Not even with an attempt of its own under way, or with the cookie of the other one.
	victim.get("/signin")
	victim.answer(p, victim.post("/signin/with/corp"))
	victim.expect(victim.get(answer), http.StatusForbidden, "belongs to another browser")
	cookie := "__Host-stagedoor-provider"
	victim.cookies[cookie] = thief.cookies[cookie]
	victim.expect(victim.get(answer), http.StatusForbidden, "belongs to another browser")
	saved := thief.cookies[cookie]
	thief.expect(thief.get(strings.Replace(answer, "/corp/", "/other/", 1)), http.StatusForbidden, "start again")
	guest := map[string]string{}
	for name, value := range thief.cookies {
		guest[name] = value
	}
	thief.sentTo(thief.get(answer), "/account")
	if _, kept := thief.cookies[cookie]; kept {
		t.Error("the attempt is still there after its answer")
	}
	thief.expect(thief.get(answer), http.StatusForbidden, "was used already")
	guest[cookie] = saved
	again := &visitor{fixture: h, cookies: guest}
	again.expect(again.get(answer), http.StatusForbidden, "cannot be trusted") // the provider refuses the code
	fresh := h.visitor()
	r := httptest.NewRequest(http.MethodPost, origin+"/signin/with/corp", strings.NewReader("token=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	fresh.expect(fresh.do(r), http.StatusForbidden, "open for too long")
}

func TestAnAnswerMayReachAnotherGateway(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	h.link(p, h.anna)
	v := h.visitor()
	v.get("/signin")
	answer := v.answer(p, v.post("/signin/with/corp"))
	same := h.providers.Providers()
	h.providers.Configure(nil)
	h.providers.Configure(same) // the other gateway has seen nothing of the attempt and has not asked the provider yet
	v.sentTo(v.get(answer), "/account")
}

// TestALinkNeedsAConfirmation tries what someone with a stolen session would do to come back later.
func TestALinkNeedsAConfirmation(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	thief := h.signedIn("anna")
	thief.get("/account/security")
	thief.expect(thief.post("/account/identities", "provider", "corp", "password", "wrong"), http.StatusForbidden,
		"The password is wrong")
	thief.expect(thief.post("/account/identities", "provider", "none", "password", password), http.StatusNotFound,
		"no such provider")
	// An attempt to sign in does not link, and one to link links for the user who began it only.
	guest := h.visitor()
	guest.get("/signin")
	answer := guest.answer(p, guest.post("/signin/with/corp"))
	thief.cookies["__Host-stagedoor-provider"] = guest.cookies["__Host-stagedoor-provider"]
	thief.expect(thief.get(answer), http.StatusForbidden, "belongs to another browser")
	v := h.linked(p, "anna")
	root := h.signedIn("root")
	root.get("/account/security")
	res := root.post("/account/identities", "provider", "corp", "password", password)
	root.expect(root.get(root.answer(p, res)), http.StatusConflict, "linked to an account already")
	v.get("/account/security")
	id := find(regexp.MustCompile(`/account/identities/([^/]+)/unlink`), v.page)
	root.get("/account/security")
	root.expect(root.post("/account/identities/"+id+"/unlink", "password", password), http.StatusNotFound, "")
	v.expect(v.post("/account/identities/"+id+"/unlink", "password", "wrong"), http.StatusForbidden, "is wrong")
	v.sentTo(v.post("/account/identities/"+id+"/unlink", "password", password),
		"/account/security?done=identity_unlinked")
	guest.expect(guest.signInWith(p, ""), http.StatusForbidden, "No account here is linked")
}

func TestAProviderThatIsAllowedToMakesUsers(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) { p.Create = true })
	p.Person = map[string]any{"sub": "s1", "email": "root@evil.example", "email_verified": false,
		"preferred_username": "ro<b>ot</b>"}
	v := h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account")
	u, err := h.registry.UserByName("robotb")
	if err != nil || u.Admin || u.Email != "" || u.HasPassword {
		t.Errorf("%+v, %v", u, err)
	}
	p.Person = map[string]any{"sub": "s2", "preferred_username": "Root", "email": "r@example.com",
		"email_verified": true}
	second := h.visitor()
	second.sentTo(second.signInWith(p, ""), "/account")
	if u, err = h.registry.UserByName("root-2"); err != nil || u.Admin || u.Email != "r@example.com" {
		t.Errorf("a person who is called root: %+v, %v", u, err)
	}
	p.Person["preferred_username"] = "renamed"
	second.sentTo(h.visitor().signInWith(p, ""), "/account")
	if n := len(h.registry.Users(0, 0)); n != 4 {
		t.Errorf("%d users, want anna, root and two more", n)
	}
}

func TestAUserWithoutAPasswordConfirmsWithAFreshSession(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) { p.Create = true })
	v := h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account")
	v.get("/account/security")
	id := find(regexp.MustCompile(`/account/identities/([^/]+)/unlink`), v.page)
	v.expect(v.post("/account/identities/"+id+"/unlink"), http.StatusConflict, "You could not sign in any more")
	if strings.Contains(v.page, `name="password"`) {
		t.Error("the page asks for a password that the user does not have")
	}
	u, err := h.registry.UserByName("user")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Do(t.Context(), h.state, func(tx *state.Tx) (struct{}, error) { // an hour later
		s := identity.ListSessions(tx.View(), u.ID)[0]
		s.Created = s.Created.Add(-time.Hour)
		return struct{}{}, identity.PutSession(tx, s)
	}); err != nil {
		t.Fatal(err)
	}
	v.get("/account/security")
	v.expect(v.post("/account/delete", "username", "user"), http.StatusForbidden, "no password with which to confirm")
	v.expect(v.post("/account/identities", "provider", "corp"), http.StatusForbidden, "within 10 minutes")
	v = h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account")
	v.get("/account/security")
	v.expect(v.post("/account/delete", "username", "user"), http.StatusOK, "Your account is deleted")
	v = h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account") // as a new user
	if u, err := h.registry.UserByName("user-2"); err != nil || !u.Active() {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestGroupAndRoleFollowTheProviderAtEachSignIn(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) {
		p.Groups = []idp.Mapping{{From: "Research", To: "lab"}, {From: "Staff", To: "staff"}}
		p.Administrators = []string{"Ops"}
	})
	for _, name := range []string{"lab", "staff"} {
		if _, err := h.registry.CreateGroup(t.Context(), name, tokens.CeilingChange{}); err != nil {
			t.Fatal(err)
		}
	}
	h.link(p, h.anna)
	for _, c := range []struct {
		groups any
		group  string
		admin  bool
	}{
		{[]string{"Staff", "Research", "Ops"}, "lab", true},
		{[]string{"Staff"}, "staff", false},
		{[]string{"research"}, "", false}, // another group
		{"Ops", "", true},
		{nil, "", false},
	} {
		p.Person = map[string]any{"sub": "s1", "groups": c.groups}
		v := h.visitor()
		v.sentTo(v.signInWith(p, ""), "/account")
		u, _ := identity.FindUser(h.state.View(), h.anna.ID)
		g, _ := identity.FindGroup(h.state.View(), u.Group)
		if g.Name != c.group || u.Admin != c.admin {
			t.Errorf("%v: group %q, administrator %v", c.groups, g.Name, u.Admin)
		}
	}
	g, _ := identity.FindGroupByName(h.state.View(), "staff")
	if _, err := h.registry.DeleteGroup(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	p.Person = map[string]any{"sub": "s1", "groups": []string{"Staff"}}
	v := h.visitor()
	v.expect(v.signInWith(p, ""), http.StatusServiceUnavailable, "groups are not set up properly")
}

func TestAProviderCannotTakeTheRoleOfTheLastAdministrator(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) { p.Administrators = []string{"Ops"} })
	h.link(p, h.root)
	signIn := func() bool {
		v := h.visitor()
		v.sentTo(v.signInWith(p, ""), "/account")
		u, err := h.registry.User(h.root.ID)
		return err == nil && u.Admin
	}
	if !signIn() {
		t.Error("there is no administrator any more")
	}
	if _, err := h.registry.SetAdmin(t.Context(), h.anna.ID, true); err != nil {
		t.Fatal(err)
	}
	if signIn() {
		t.Error("a person who is in no group of administrators stays one")
	}
}

func TestTheCodeIsAskedForUnlessTheProviderIsStrong(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	h.link(p, h.root)
	v := h.signedIn("root")
	_, recovery := v.enrol()
	other := h.visitor()
	other.expect(other.signInWith(p, "/account/keys"), http.StatusOK, "Code of your authenticator app")
	sealed := find(halfway, other.page)
	next := find(regexp.MustCompile(`name="next" value="([^"]*)"`), other.page)
	other.sentTo(other.get("/account"), "/signin?next=%2Faccount")
	other.sentTo(other.post("/signin", "halfway", sealed, "next", next, "code", recovery[0]), "/account/keys")
	issuer := p.URL
	h.providers.Configure([]idp.Provider{{Name: "corp", Label: "Corp", Issuer: issuer, ClientID: idptest.ClientID,
		ClientSecret: idptest.ClientSecret, Strong: true}})
	strong := h.visitor()
	strong.sentTo(strong.signInWith(p, ""), "/account")
}

func TestAStrongProviderReplacesTheDemandedSecondFactor(t *testing.T) {
	for _, strong := range []bool{false, true} {
		h := newFixture(t)
		p := h.withProvider(func(p *idp.Provider) { p.Strong = strong })
		h.linked(p, "root")
		h.demanded = true
		v := h.visitor()
		v.signInWith(p, "")
		if got := v.get("/account").StatusCode == http.StatusOK; got != strong {
			t.Errorf("strong %v: the account opens: %v", strong, got)
		}
		password := h.signedIn("root")
		password.sentTo(password.get("/account"), "/account/second-factor")
	}
}

func TestADisabledUserDoesNotSignInAtAProvider(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) { p.Create = true })
	h.link(p, h.anna)
	if _, err := h.registry.SetUserStatus(t.Context(), h.anna.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	v := h.visitor()
	v.expect(v.signInWith(p, ""), http.StatusForbidden, "This account is disabled.")
}

func TestWhatAProviderWritesIsNotShown(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	p.Answer = func(q url.Values) {
		q.Set("error", "<script>\n"+strings.Repeat("x", 2000))
		q.Set("error_description", "call 555-1234")
	}
	v := h.visitor()
	v.expect(v.signInWith(p, ""), http.StatusForbidden, "did not sign you in")
	if strings.Contains(v.page, "555-1234") || strings.Contains(v.page, "&lt;script") || v.page == "" {
		t.Errorf("the page shows what the provider wrote:\n%s", v.page)
	}
	if lines := strings.Count(h.log.String(), "\n"); lines != 1 || h.log.Len() > 800 {
		t.Errorf("%d lines in the log: %s", lines, h.log.String())
	}
	p.Close()
	v.get("/signin")
	h.providers.Configure(nil)
	v.expect(v.post("/signin/with/corp"), http.StatusNotFound, "no such provider")
}

func TestAnAdministratorRemovesAWayToSignIn(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	h.link(p, h.anna)
	office := h.signedIn("root")
	page := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	office.expect(office.get(page), http.StatusOK, "Other ways to sign in")
	id := find(regexp.MustCompile(`/identities/([^/]+)/unlink`), office.page)
	path := page + "/identities/" + id + "/unlink"
	office.expect(office.post(path), http.StatusForbidden, "Your own password is wrong")
	annas := h.signedIn("anna")
	office.get(page)
	office.sentTo(office.post(path, "password", password), page+"?done=identity_unlinked")
	annas.sentTo(annas.get("/account"), "/signin?next=%2Faccount")
	v := h.visitor()
	v.expect(v.signInWith(p, ""), http.StatusForbidden, "No account here is linked")
}

// TestSignInsAtProvidersAreInTheAuditLog also shows that the log has no subject, which would outlive an erasure.
func TestSignInsAtProvidersAreInTheAuditLog(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(func(p *idp.Provider) { p.Administrators = []string{"Ops"} })
	p.Person = map[string]any{"sub": "subject-of-anna", "groups": []string{"Ops"}}
	h.linked(p, "anna")
	v := h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account")
	log, err := json.Marshal(h.audited(state.AuditQuery{Actor: "anna"}))
	for _, want := range []string{"external_identity.create", "user.change", `"admin"`, "sign_in"} {
		if err != nil || !bytes.Contains(log, []byte(want)) {
			t.Errorf("the audit log lacks %s: %s, %v", want, log, err)
		}
	}
	if bytes.Contains(log, []byte("subject-of-anna")) {
		t.Error("the audit log has the subject")
	}
}

func TestACodeAfterAProviderCountsForTheKnownBrowser(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	h.link(p, h.anna)
	v := h.signedIn("anna")
	key, _ := v.enrol()
	v.get("/account")
	v.post("/signout")
	// A person who knows the password guesses codes until all unknown browsers must wait.
	var half *tokens.CodeRequired
	_, _, err := h.registry.Login(t.Context(), tokens.Login{Username: "anna", Password: password})
	if !errors.As(err, &half) {
		t.Fatal(err)
	}
	for i := range 20 {
		_, _, err := h.registry.FinishLogin(t.Context(), half.Halfway, "000000",
			tokens.Sender{Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})})
		if !errors.Is(err, tokens.ErrCode) {
			t.Fatal(err)
		}
	}
	secret, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(key, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	v.expect(v.signInWith(p, ""), http.StatusOK, "Code of your authenticator app")
	fresh := tokens.CodeAt(secret, time.Now().Add(30*time.Second)) // the code of now was used for setting it up
	v.sentTo(v.post("/signin", "halfway", find(halfway, v.page), "code", fresh), "/account")
}

func TestAUserWhoSignedInAtAProviderIsOfferedToSignOutThere(t *testing.T) {
	h := newFixture(t)
	p := h.withProvider(nil)
	p.EndSession = p.URL + "/end?realm=staff"
	h.link(p, h.anna)
	v := h.visitor()
	v.sentTo(v.signInWith(p, ""), "/account")
	v.get("/account")
	v.expect(v.post("/signout"), http.StatusOK, "Sign out at Corp")
	address, err := url.Parse(html.UnescapeString(leaving.FindStringSubmatch(v.page)[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{"realm": {"staff"}, "client_id": {idptest.ClientID},
		"post_logout_redirect_uri": {origin + "/signin?done=signed_out"}}
	if address.Host != strings.TrimPrefix(p.URL, "http://") || address.Query().Encode() != want.Encode() {
		t.Errorf("the page leads to %s", address)
	}
	v.sentTo(v.get("/account"), "/signin?next=%2Faccount")

	// A session that was opened with a password ends here only.
	other := h.signedIn("anna")
	other.get("/account")
	other.sentTo(other.post("/signout"), "/signin?done=signed_out")

	// A provider without such an address is not mentioned.
	q := h.withProvider(nil)
	h.link(q, h.anna)
	third := h.visitor()
	third.sentTo(third.signInWith(q, ""), "/account")
	third.get("/account")
	third.sentTo(third.post("/signout"), "/signin?done=signed_out")
}
