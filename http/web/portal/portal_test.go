package portal_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

// memberPages and the lists below have every page, by who may see it.
var memberPages = []string{
	"/account",
	"/account/keys",
	"/account/usage",
	"/account/usage.csv",
	"/search",
	"/search.json",
	"/account/apps",
	"/account/tokens",
	"/account/security",
	"/signout",
}

var adminPages = []string{
	"/admin/users",
	"/admin/groups",
	"/admin/users/1",
	"/admin/keys",
	"/admin/spend",
	"/admin/codes",
	"/admin/audit",
}

func TestWhoIsNotSignedInIsSentToSignInAndBack(t *testing.T) {
	h := newFixture(t)
	for _, path := range append(append([]string{}, memberPages...), append(adminPages, "/account/none", "/admin/none",
		"/account/keys?done=x")...) {
		v := h.visitor()
		v.sentTo(v.get(path), "/signin?"+url.Values{"next": {path}}.Encode())
	}
	v := h.visitor()
	v.get("/signin?next=" + url.QueryEscape("/account/keys?x=1"))
	if !strings.Contains(v.page, `value="/account/keys?x=1"`) {
		t.Fatalf("the form forgets where to go:\n%s", v.page)
	}
	v.sentTo(v.post("/signin", "username", "anna", "password", password, "next", "/account/keys?x=1"),
		"/account/keys?x=1")
	v.sentTo(v.get("/signin?next=/account/apps"), "/account/apps")
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	h := newFixture(t)
	for _, next := range []string{"", "//evil.example", "https://evil.example/", `/\evil.example`, "/\t/evil.example",
		"javascript:x"} {
		v := h.visitor()
		v.get("/signin?next=" + url.QueryEscape(next))
		if strings.Contains(v.page, "evil") {
			t.Errorf("%q is in the page", next)
		}
		v.sentTo(v.post("/signin", "username", "anna", "password", password, "next", next), "/account")
		v.sentTo(v.get("/signin?next="+url.QueryEscape(next)), "/account")
	}
}

func TestSignInRefusals(t *testing.T) {
	h := newFixture(t)
	v := h.visitor()
	v.get("/signin")
	v.expect(v.post("/signin", "username", "anna", "password", "wrong"), http.StatusForbidden,
		"Wrong username or password.")
	if !strings.Contains(v.page, `value="anna"`) || strings.Contains(v.page, `value="wrong"`) {
		t.Errorf("the form is\n%s", v.page)
	}
	v.expect(v.post("/signin", "username", "anna", "password", password, "token", "forged"), http.StatusForbidden,
		"Please try again")
	v.expect(v.send("/signin", url.Values{}, http.Header{"Content-Type": {"application/json"}}),
		http.StatusBadRequest, "cannot be read")
	v.expect(v.send("/signin", url.Values{"username": {strings.Repeat("x", 70<<10)}}, nil),
		http.StatusRequestEntityTooLarge, "cannot be read")
	v.get("/signin")
	for range 5 {
		v.post("/signin", "username", "anna", "password", "wrong")
	}
	res := v.post("/signin", "username", "anna", "password", password)
	v.expect(res, http.StatusTooManyRequests, "Too many attempts")
	if res.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
}

func TestAdministrationIsNotThereForOthers(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	if strings.Contains(v.page, "/admin") {
		t.Error("a user's page leads to administration")
	}
	for _, path := range append([]string{"/admin/none", "/account/none"}, adminPages...) {
		v.expect(v.get(path), http.StatusNotFound, "Not found")
	}
	for who, words := range map[*visitor]string{v: "To your account", h.visitor(): "Sign in"} {
		r := httptest.NewRequest(http.MethodGet, origin+"/none", nil)
		r.Header.Set("Accept", "text/html,*/*;q=0.8")
		who.expect(who.do(r), http.StatusNotFound, words)
	}
	plain := httptest.NewRecorder()
	h.handler.ServeHTTP(plain, httptest.NewRequest(http.MethodGet, origin+"/none", nil))
	if strings.Contains(plain.Body.String(), "<html") {
		t.Error("a client that asks for no page gets one")
	}
	v.get("/account")
	for _, path := range []string{"/admin/users", "/admin/users/1/keys", "/admin/users/1/money",
		"/admin/users/1/status", "/admin/users/1/ceiling", "/admin/users/1/group", "/admin/users/1/role",
		"/admin/users/1/second-factor/off", "/admin/users/1/link", "/admin/users/1/sessions/end",
		"/admin/users/1/sessions/ses_1/end",
		"/admin/users/1/erase", "/admin/invitations", "/admin/invitations/lnk_1/withdraw",
		"/admin/groups", "/admin/groups/1/ceiling", "/admin/groups/1/members", "/admin/groups/1/members/1/remove",
		"/admin/groups/1/delete",
		"/admin/keys/key_1/revoke", "/admin/keys/key_1/disable", "/admin/codes"} {
		v.expect(
			v.post(path, "status", "2", "amount", "5", "reason", "x", "count", "1", "username", "eve", "name", "eve"),
			http.StatusNotFound,
			"Not found",
		)
		v.get("/account")
	}
	if a := money.FindAccount(h.state.View(), "anna"); a.Credits != 0 ||
		len(money.ListRedeemCodes(h.state.View())) != 0 || len(h.registry.Users(0, 0)) != 2 ||
		len(identity.ListKeys(h.state.View(), identity.KeyFilter{})) != 0 {
		t.Error("a user without the right administered")
	}
	// The role counts at once, both ways.
	if _, err := h.registry.SetAdmin(t.Context(), h.anna.ID, true); err != nil {
		t.Fatal(err)
	}
	for _, path := range adminPages {
		v.expect(v.get(path), http.StatusOK, "</html>")
	}
}

func TestEveryFormWantsItsOwnBrowser(t *testing.T) {
	h := newFixture(t)
	root, anna := h.signedIn("root"), h.signedIn("anna")
	forms := []string{
		"/signout",
		"/account/keys",
		"/account/keys/key_1/revoke",
		"/account/keys/key_1/edit",
		"/account/apps",
		"/account/apps/1/settings",
		"/account/apps/1/secret",
		"/account/apps/1/end-secret",
		"/account/apps/1/remove-logo",
		"/account/apps/1/delete",
		"/account/apps/1/revoke",
		"/account/tokens",
		"/account/tokens/dev_1/revoke",
		"/account/password",
		"/account/sessions/end",
		"/account/second-factor",
		"/account/second-factor/codes",
		"/account/delete",
		"/account/second-factor/off",
		"/admin/users/1/second-factor/off",
		"/account/sessions/ses_1/end",
		"/admin/users",
		"/admin/users/1/keys",
		"/admin/users/1/money",
		"/admin/users/1/status",
		"/admin/users/1/ceiling",
		"/admin/users/1/group",
		"/admin/users/1/role",
		"/admin/users/1/link",
		"/admin/users/1/sessions/end",
		"/admin/users/1/sessions/ses_1/end",
		"/admin/users/1/erase",
		"/admin/invitations",
		"/admin/invitations/lnk_1/withdraw",
		"/admin/groups",
		"/admin/groups/1/ceiling",
		"/admin/groups/1/members",
		"/admin/groups/1/members/1/remove",
		"/admin/groups/1/delete",
		"/admin/keys/key_1/revoke",
		"/admin/keys/key_1/enable",
		"/admin/codes",
	}
	foreign := find(hiddenToken, anna.page)
	for _, path := range forms {
		for name, send := range map[string]func() *http.Response{
			"no token":  func() *http.Response { return root.send(path, url.Values{}, nil) },
			"another's": func() *http.Response { return root.send(path, url.Values{"token": {foreign}}, nil) },
			"another site's": func() *http.Response {
				root.get("/account")
				return root.send(path, url.Values{"token": {find(hiddenToken, root.page)}},
					http.Header{"Sec-Fetch-Site": {"cross-site"}})
			},
		} {
			if res := send(); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d", path, name, res.StatusCode)
			}
		}
		stranger := h.visitor()
		if res := stranger.send(path, url.Values{"token": {foreign}}, nil); res.StatusCode != http.StatusSeeOther ||
			!strings.HasPrefix(res.Header.Get("Location"), "/signin?next=") {
			t.Errorf("%s, signed out: %d", path, res.StatusCode)
		}
	}
	if got := root.get("/account"); got.StatusCode != http.StatusOK {
		t.Error("a forged form signed a user out")
	}
}

var shownKey = regexp.MustCompile(`sd-[0-9A-Za-z]{43}`)

func TestKeyIsShownOnceAndMadeOnce(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.get("/account/keys")
	fields := []string{
		"id",
		find(hiddenID, v.page),
		"name",
		"laptop <b>",
		"scope",
		"chat",
		"models",
		"gpt-*, claude-*",
		"allow",
		"192.0.2.7, 2001:db8::/32",
		"rpm",
		"60",
		"budget",
		"2.50",
		"window",
		"month",
		"expiry",
		"2100-12-31",
	}
	token := find(hiddenToken, v.page)
	v.expect(v.post("/account/keys", fields...), http.StatusOK, "not shown again")
	secret := shownKey.FindString(v.page)
	k, ok := identity.AccessOf(h.state).Key(state.HashSecret(secret))
	if !ok || k.User != "anna" || k.Name != "laptop <b>" || len(k.Scopes) != 1 || len(k.Models) != 2 ||
		len(k.AllowIPs) != 2 ||
		k.Limits.RPM != 60 ||
		k.Budget != 2_500_000 ||
		k.Window != budget.WindowMonth ||
		!k.Expires.Equal(time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", k)
	}
	if strings.Contains(v.page, "<b>") {
		t.Error("the name is not escaped")
	}
	v.expect(v.post("/account/keys", append(fields, "token", token)...), http.StatusConflict, "sent already")
	v.expect(v.get("/account/keys"), http.StatusOK, "sd-"+k.Prefix)
	v.expect(v.get("/account/keys"), http.StatusOK, "from 192.0.2.7/32, 2001:db8::/32")
	if strings.Contains(v.page, secret) || len(h.registry.UserKeys(h.anna.ID)) != 1 {
		t.Error("the key is shown again, or there are two")
	}
	if strings.Contains(h.log.String(), secret) {
		t.Error("the key is in the log")
	}
}

func TestRefusedKeyKeepsWhatWasTyped(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.get("/account/keys")
	for problem, fields := range map[string][]string{
		"Name must have": {"name", " "}, "Requests a minute must be a whole number": {"rpm", "many"},
		"Budget must be an amount":                {"budget", "1.2345678"},
		"Addresses must be addresses or networks": {"allow", "192.0.2.0/24 office"},
		"Last day must be a day":                  {"expiry", "soon"}, "Expires must be in the future": {"expiry",
			"2001-01-01"},
		"Window must be": {"window", "year"}, "Scopes must be": {"scope", "root"},
	} {
		v.expect(v.post("/account/keys", append([]string{"name", "typed before", "models", "typed-*"}, fields...)...),
			http.StatusUnprocessableEntity, problem)
		if !strings.Contains(v.page, "typed-*") {
			t.Errorf("%s: what was typed is lost", problem)
		}
	}
	if len(h.registry.UserKeys(h.anna.ID)) != 0 {
		t.Error("a refused form made a key")
	}
	v.expect(v.post("/account/keys", "name", "at last"), http.StatusOK, "not shown again")
}

func TestOthersThingsDoNotExist(t *testing.T) {
	h := newFixture(t)
	_, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.root.ID, Name: "root's"})
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := h.registry.CreateDeveloperToken(t.Context(), h.root.ID, "root's")
	if err != nil {
		t.Fatal(err)
	}
	h.signedIn("root")
	session := h.registry.Sessions(h.root.ID)[0].ID
	v := h.signedIn("anna")
	for _, path := range []string{"/account/keys/" + k.ID + "/revoke", "/account/keys/" + k.ID + "/disable",
		"/account/keys/" + k.ID + "/none", "/account/keys/key_none/revoke",
		"/account/tokens/" + d.ID + "/revoke", "/account/sessions/" + session + "/end", "/account/apps/99/revoke",
		"/account/apps/x/revoke"} {
		v.get("/account")
		v.expect(v.post(path), http.StatusNotFound, "Not found")
	}
	if got := h.registry.UserKeys(h.root.ID)[0]; !got.Enabled || !got.Revoked.IsZero() ||
		len(h.registry.Sessions(h.root.ID)) != 1 {
		t.Error("a user changed another's data")
	}
	root := h.signedIn("root")
	for _, path := range []string{"/admin/users/99", "/admin/users/x"} {
		root.expect(root.get(path), http.StatusNotFound, "Not found")
	}
}

func TestMoneyMovesOnce(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	v.get(path)
	fields := []string{
		"id",
		find(hiddenID, v.page),
		"token",
		find(hiddenToken, v.page),
		"amount",
		"25.00",
		"reason",
		"invoice 17",
		"kind",
		"credit",
	}
	v.sentTo(v.post(path+"/money", fields...), path+"?done=credited")
	v.expect(v.post(path+"/money", fields...), http.StatusConflict, "sent already")
	v.expect(v.get(path+"?done=credited"), http.StatusOK, "The money was credited.")
	v.sentTo(v.post(path+"/money", "amount", "5", "reason", "mistake", "kind", "adjust"), path+"?done=adjusted")
	v.get(path)
	for problem, fields := range map[string][]string{"more than nothing": {"amount", "0"},
		"amount in dollars": {"amount", "much"}, "Reason must have": {"reason", ""},
		"does not have that much": {"kind", "adjust", "amount", "21"}, "must be more": {"amount", "-3"}} {
		v.expect(v.post(path+"/money", append([]string{"amount", "1", "reason", "r", "kind", "credit"}, fields...)...),
			http.StatusUnprocessableEntity, problem)
	}
	v.expect(v.post(path+"/money", "id", "x", "amount", "1", "reason", "r", "kind", "credit"), http.StatusBadRequest,
		"cannot be read")
	if a := money.FindAccount(h.state.View(), "anna"); a.Credits != 20_000_000 {
		t.Errorf("credits %d", a.Credits)
	}
	history, err := money.History(t.Context(), h.state, "anna", 0, 10)
	if err != nil || len(history) != 2 || history[1].Reason != "invoice 17 (by root)" {
		t.Errorf("%+v, %v", history, err)
	}
}

func TestAdministratorSeesAndEndsWhatIsAnybodys(t *testing.T) {
	h := newFixture(t)
	secret, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.anna.ID, Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	v := h.signedIn("root")
	v.expect(v.get("/admin/keys?q=LAP"), http.StatusOK, "laptop")
	if v.get("/admin/keys?q=none"); strings.Contains(v.page, "laptop") {
		t.Error("the search finds what it should not")
	}
	v.sentTo(v.post("/admin/keys/"+k.ID+"/disable"), "/admin/keys?done=key_disabled")
	if k, _ := identity.AccessOf(h.state).Key(state.HashSecret(secret)); k.Enabled {
		t.Error("the key works")
	}
	owner := h.signedIn("anna")
	owner.expect(owner.get("/account/keys"), http.StatusOK, "by the operator")
	if strings.Contains(owner.page, k.ID+"/enable") {
		t.Error("the owner is offered to enable a key that the operator disabled")
	}
	owner.expect(owner.post("/account/keys/"+k.ID+"/enable"), http.StatusForbidden, "only the operator can enable it")
	if k, _ := identity.AccessOf(h.state).Key(state.HashSecret(secret)); k.Enabled {
		t.Error("the owner enabled a key that the operator disabled")
	}
	v.get("/admin/keys")
	v.sentTo(v.post("/admin/keys/"+k.ID+"/enable"), "/admin/keys?done=key_enabled")
	v.get("/admin/keys")
	for _, path := range []string{"/admin/keys/" + k.ID + "/none", "/admin/keys/key_none/disable"} {
		v.expect(v.post(path), http.StatusNotFound, "Not found")
		v.get("/admin/keys")
	}
	v.sentTo(v.post("/admin/keys/"+k.ID+"/revoke"), "/admin/keys?done=key_revoked")
	if k, _ := identity.AccessOf(h.state).Key(state.HashSecret(secret)); k.Revoked.IsZero() {
		t.Error("the key works")
	}
	anna := h.signedIn("anna")
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	v.get(path)
	v.sentTo(v.post(path+"/status", "status", "2"), path+"?done=user_disabled")
	if res := anna.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a disabled user sees %d", res.StatusCode)
	}
	v.sentTo(v.post(path+"/status", "status", "1"), path+"?done=user_enabled")
	own := fmt.Sprintf("/admin/users/%d", h.root.ID)
	v.expect(v.post(own+"/status", "status", "2"), http.StatusUnprocessableEntity, "cannot disable yourself")
	v.get("/admin/codes")
	v.expect(v.post("/admin/codes", "count", "3", "amount", "7.5"), http.StatusOK, "work")
	if all := money.ListRedeemCodes(h.state.View()); len(all) != 3 || all[0].Amount != 7_500_000 ||
		all[0].MintedBy != "root" {
		t.Errorf("%+v", all)
	}
	if _, err := money.CancelRedeemCode(t.Context(), h.state, money.ListRedeemCodes(h.state.View())[0].ID); err != nil {
		t.Fatal(err)
	}
	v.expect(v.get("/admin/codes"), http.StatusOK, `<span class="tag cancelled">`)
	for problem, fields := range map[string][]string{"between 1 and 100": {"count", "101"},
		"more than nothing": {"amount", "-1"}, "must not be over": {"expiry", "2001-01-01"}} {
		v.expect(v.post("/admin/codes", append([]string{"count", "1", "amount", "1"}, fields...)...),
			http.StatusUnprocessableEntity, problem)
	}
}

var shownPassword = regexp.MustCompile(`<code>([0-9A-Za-z_-]{20})</code>`)

func TestAdministratorMakesUsersAndTheirKeys(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.get("/admin/users")
	fields := []string{
		"id",
		find(hiddenID, v.page),
		"token",
		find(hiddenToken, v.page),
		"username",
		"bob",
		"email",
		"bob@example.com",
		"admin",
		"true",
	}
	v.expect(v.post("/admin/users", fields...), http.StatusOK, "not shown again")
	made := find(shownPassword, v.page)
	u, err := h.registry.UserByName("bob")
	if err != nil || u.Email != "bob@example.com" || u.Admin || !u.Active() {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, _, err := h.registry.Login(t.Context(), tokens.Login{Username: "bob", Password: made}); err != nil {
		t.Errorf("the password that was shown does not open: %v", err)
	}
	v.expect(v.post("/admin/users", fields...), http.StatusConflict, "sent already")
	v.get("/admin/users")
	for _, c := range []struct {
		problem string
		status  int
		fields  []string
	}{
		{"There is a user of this name", http.StatusConflict, []string{"username", "BOB"}},
		{"Username may have", http.StatusUnprocessableEntity, []string{"username", "b b"}},
		{"Email must be", http.StatusUnprocessableEntity, []string{"email", "nowhere"}},
	} {
		v.expect(
			v.post("/admin/users", append([]string{"username", "typed", "email", "typed@example.com"}, c.fields...)...),
			c.status,
			c.problem,
		)
		if !strings.Contains(v.page, `value="typed`) {
			t.Errorf("%s: what was typed is lost", c.problem)
		}
	}

	path := fmt.Sprintf("/admin/users/%d", u.ID)
	v.get(path)
	fields = []string{"id", find(hiddenID, v.page), "token", find(hiddenToken, v.page), "name", "laptop", "budget", "3"}
	v.expect(v.post(path+"/keys", fields...), http.StatusOK, "not shown again")
	secret := shownKey.FindString(v.page)
	if k, ok := identity.AccessOf(h.state).Key(state.HashSecret(secret)); !ok || k.User != "bob" ||
		k.Name != "laptop" || k.Budget != 3_000_000 {
		t.Errorf("%+v", k)
	}
	v.expect(v.post(path+"/keys", fields...), http.StatusConflict, "sent already")
	v.get(path)
	v.expect(v.post(path+"/keys", "name", "typed before", "rpm", "many"), http.StatusUnprocessableEntity,
		"Requests a minute must be")
	if !strings.Contains(v.page, "typed before") || len(h.registry.UserKeys(u.ID)) != 1 {
		t.Error("what was typed is lost, or made a key")
	}
	v.sentTo(v.post(path+"/status", "status", "2"), path+"?done=user_disabled")
	if v.get(path); strings.Contains(v.page, "Create a key") {
		t.Error("the page offers a key that no user could use")
	}
	v.expect(v.post(path+"/keys", "name", "late", "id", strings.Repeat("ab", 16)), http.StatusUnprocessableEntity,
		"disabled")
	if strings.Contains(h.log.String(), secret) || strings.Contains(h.log.String(), made) {
		t.Error("a secret is in the log")
	}
}

func TestTheListOfUsersIsSortedAndFilteredOnTheServer(t *testing.T) {
	h := newFixture(t)
	h.user("Zoe", false)
	g, err := h.registry.CreateGroup(t.Context(), "makers", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.registry.MoveUser(t.Context(), h.anna.ID, g.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.registry.SetUserStatus(t.Context(), h.anna.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	_, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.root.ID, Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	h.charge("root", k.ID, "large", 2_000_000)
	v := h.signedIn("root")
	names := regexp.MustCompile(`<a href="/admin/users/\d+"><bdi>(\w+)</bdi>`)
	for query, want := range map[string]string{"": "Zoe root anna", "?sort=name": "anna root Zoe",
		"?sort=seen": "root Zoe anna", "?sort=month": "root Zoe anna", "?sort=x": "Zoe root anna",
		"?state=disabled": "anna", "?state=active": "Zoe root", "?state=admin": "root", "?state=x": "Zoe root anna",
		"?group=1": "anna", "?group=1&state=active": "", "?group=99": "Zoe root anna", "?q=zoe&sort=name": "Zoe"} {
		v.get("/admin/users" + query)
		var got []string
		for _, m := range names.FindAllStringSubmatch(v.page, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %q", query, got, want)
		}
	}
	v.expect(v.get("/admin/users?group=1&state=disabled&q=anna"), http.StatusOK,
		`href="/admin/users?group=1&amp;q=anna&amp;sort=seen&amp;state=disabled"`)
	if v.get("/admin/users?sort=month"); !strings.Contains(v.page, ">$2.00</a></td>") ||
		!strings.Contains(v.page, "$2.00 in the last 14 days") ||
		!strings.Contains(v.page, `"Keys" class="number">1</td>`) {
		t.Errorf("what was spent in this month is not shown:\n%s", v.page)
	}
}

func TestUsersAreFoundAndPaged(t *testing.T) {
	h := newFixture(t)
	if _, err := state.Do(t.Context(), h.state, func(tx *state.Tx) (struct{}, error) {
		for i := range 120 {
			if _, err := identity.AddUser(tx, identity.User{Username: fmt.Sprintf("user-%03d", i),
				Status: identity.UserActive}); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	v := h.signedIn("root")
	for query, want := range map[string][]string{"": {"1–50 of 122", "user-119", "page=2"},
		"?page=3": {"101–122 of 122", ">anna<", "page=2"}, "?page=99": {"101–122"}, "?page=-1": {"1–50"},
		"?page=x": {"1–50"}, "?q=USER-00": {"1–10 of 10", "user-009"}, "?q=anna%40": {"1–1 of 1"},
		"?q=none": {"No users found"}, "?q=user&page=2": {"51–100 of 120", "page=3&amp;q=user"}} {
		v.get("/admin/users" + query)
		for _, text := range want {
			if !strings.Contains(v.page, text) {
				t.Errorf("%q lacks %q", query, text)
			}
		}
	}
}

func TestUsageOfOneIsNotTheOthers(t *testing.T) {
	h := newFixture(t)
	for _, account := range []string{"anna", "root"} {
		receipt := &money.Receipt{Request: "req_" + account, Key: "key_" + account, Model: "model-of-" + account,
			Usage: money.ReceiptUsage{Input: 10, Output: 20}}
		postings := []money.Posting{{Kind: money.Credit, Amount: 5_000_000},
			{Kind: money.Settle, Amount: 1_250_000, Receipt: receipt}}
		_, results, err := money.CommitPostings(t.Context(), h.state, account, postings)
		if err != nil || results[1].Err != nil {
			t.Fatal(err, results)
		}
	}
	v := h.signedIn("anna")
	for _, query := range []string{"", "?show=tokens", "?show=requests", "?by=model&from=2001-01-01&to=2100-01-01",
		"?by=model&from=x&to=y", "?by=user", "?user=root&by=model", "?group=1"} {
		for _, path := range []string{"/account", "/account/usage"} {
			if v.get(path + query); path == "/account" || strings.Contains(query, "model") {
				v.expect(v.get(path+query), http.StatusOK, "model-of-anna")
			}
			if strings.Contains(v.page, "model-of-root") || strings.Contains(v.page, "key_root") {
				t.Errorf("another's usage is shown at %s%s", path, query)
			}
		}
	}
	v.get("/account/usage.csv?by=model&user=root")
	if !strings.Contains(v.page, ",model-of-anna,model-of-anna,1,10,20,1.25") || strings.Contains(v.page, "root") {
		t.Errorf("the file is\n%s", v.page)
	}
	if v.get("/account"); !strings.Contains(v.page, "$3.75") || !strings.Contains(v.page, "<rect class=\"m1\"") ||
		!strings.Contains(v.page, "$1.25 in all") {
		t.Errorf("the account is\n%s", v.page)
	}
	v.get("/account/usage?from=2001-01-01&to=2001-01-31")
	if strings.Contains(v.page, "<rect class=\"m1\"") {
		t.Error("usage is shown on days it was not")
	}
	chatted := []money.Posting{{Kind: money.Settle, Amount: 1_000_000,
		Receipt: &money.Receipt{Request: "req_chat", Key: "chat_1", Model: "m", Usage: money.ReceiptUsage{Input: 1}}}}
	if _, _, err := money.CommitPostings(t.Context(), h.state, "anna", chatted); err != nil {
		t.Fatal(err)
	}
	root := h.signedIn("root")
	root.expect(root.get("/admin/spend"), http.StatusOK, "$3.50")
	for by, texts := range map[string][]string{"key": {"page /chat", "key_anna"}, "group": {"No group"},
		"model": {"model-of-anna", "model-of-root"}, "user": {fmt.Sprintf(`href="/admin/users/%d"`, h.anna.ID)}} {
		for _, text := range texts {
			root.expect(root.get("/admin/spend?by="+by), http.StatusOK, text)
		}
	}
}

func TestPasswordAndSessions(t *testing.T) {
	h := newFixture(t)
	v, other := h.signedIn("anna"), h.signedIn("anna")
	v.get("/account/security")
	v.expect(v.post("/account/password", "old", "wrong", "new", "a long new one", "again", "a long new one"),
		http.StatusForbidden, "current password is wrong")
	v.expect(v.post("/account/password", "old", password, "new", "a long new one", "again", "another"),
		http.StatusUnprocessableEntity, "differ")
	v.expect(v.post("/account/password", "old", password, "new", "short", "again", "short"),
		http.StatusUnprocessableEntity, "8 to 512")
	v.sentTo(v.post("/account/password", "old", password, "new", "a long new one", "again", "a long new one"),
		"/account/security?done=password_changed")
	v.expect(v.get("/account/security?done=password_changed"), http.StatusOK, "Your password was changed")
	if res := other.get("/account"); res.StatusCode != http.StatusSeeOther {
		t.Error("another session lives on")
	}
	if v.get("/account?done=%3Cb%3Eevil"); strings.Contains(v.page, "evil") {
		t.Error("an address says what a page says")
	}
	v.sentTo(v.post("/account/sessions/end"), "/signin?done=signed_out")
	v.expect(v.get("/signin?done=signed_out"), http.StatusOK, "You are signed out.")
	if res := v.get("/account"); res.StatusCode != http.StatusSeeOther || len(h.registry.Sessions(h.anna.ID)) != 0 {
		t.Error("signing out everywhere leaves a session")
	}
}

func TestDeveloperTokenIsShownOnce(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.get("/account/tokens")
	v.expect(v.post("/account/tokens", "name", "ci"), http.StatusOK, "not shown again")
	made := h.registry.DeveloperTokens(h.anna.ID)
	token := regexp.MustCompile(`dt_[\w-]+`).FindString(v.page)
	if u, err := h.registry.Developer(token); err != nil || u.ID != h.anna.ID || len(made) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if v.get("/account/tokens"); strings.Contains(v.page, token) {
		t.Error("the token is shown again")
	}
	v.expect(v.post("/account/tokens", "name", ""), http.StatusUnprocessableEntity, "Name must have")
	v.sentTo(v.post("/account/tokens/"+made[0].ID+"/revoke"), "/account/tokens?done=token_revoked")
	if _, err := h.registry.Developer(token); err == nil {
		t.Error("a revoked token works")
	}
}

// TestAdministratorRestrictsUsersAndGroups: an administrator changes ceilings on pages, and a user sees what is
// restricted and can create nothing beyond it.
func TestAdministratorRestrictsUsersAndGroups(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.expect(v.get("/admin/groups"), http.StatusOK, "No such groups")
	v.sentTo(v.post("/admin/groups", "name", "staff"), "/admin/groups/1?done=group_created")
	v.get("/admin/groups")
	v.expect(v.post("/admin/groups", "name", "STAFF"), http.StatusConflict, "There is a group of this name")
	v.expect(v.post("/admin/groups", "name", "a b"), http.StatusUnprocessableEntity, "Name must have")
	v.expect(v.get("/admin/groups/1"), http.StatusOK, "No members")
	v.expect(v.post("/admin/groups/1/members", "user", "missing"), http.StatusUnprocessableEntity,
		"must be the name of a user")
	v.sentTo(v.post("/admin/groups/1/members", "user", "ANNA"), "/admin/groups/1?done=member_added")
	v.get("/admin/groups/1")
	v.expect(v.post("/admin/groups/1/delete"), http.StatusConflict, "has members")
	v.get("/admin/groups/1")
	ceiling := []string{
		"name",
		"crew",
		"scopes_rule",
		"some",
		"scope",
		"chat",
		"models_rule",
		"all",
		"budget",
		"12.50",
		"window",
		"month",
	}
	v.expect(v.post("/admin/groups/1/ceiling", "name", "crew"), http.StatusUnprocessableEntity, "must be chosen")
	v.expect(v.post("/admin/groups/1/ceiling", append(ceiling, "budget", "x")...), http.StatusUnprocessableEntity,
		`value="x"`)
	v.sentTo(v.post("/admin/groups/1/ceiling", ceiling...), "/admin/groups/1?done=ceiling_changed")
	v.expect(v.get("/admin/groups?q=cr"), http.StatusOK,
		"may chat; models: all; budget $12.50 a month; may not create keys")

	anna := h.signedIn("anna")
	anna.expect(anna.get("/account/keys"), http.StatusOK, "The operator restricts your group: may chat")
	anna.expect(anna.get("/account/keys"), http.StatusOK, "You may not create keys")
	anna.expect(anna.post("/account/keys", "name", "laptop", "id", "00000000000000000000000000000000"),
		http.StatusForbidden, "You may not create keys")
	anna.expect(anna.get("/account/tokens"), http.StatusOK, "You may not create tokens")

	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	v.expect(v.get(path), http.StatusOK, "The ceiling of the group")
	v.sentTo(
		v.post(path+"/ceiling", "scopes_rule", "some", "models_rule", "some", "models", "gpt-*", "budget", "",
			"window", "total", "create_keys", "yes"),
		path+"?done=ceiling_changed",
	)
	if u, _ := identity.FindUser(h.state.View(), h.anna.ID); u.Ceiling.Scopes == nil || len(u.Ceiling.Scopes) != 0 ||
		len(u.Ceiling.Models) != 1 || u.Ceiling.NoKeys {
		t.Errorf("%+v", u.Ceiling)
	}
	v.get("/admin/groups/1")
	v.sentTo(v.post(fmt.Sprintf("/admin/groups/1/members/%d/remove", h.anna.ID)), "/admin/groups/1?done=member_removed")
	v.get("/admin/groups/1")
	v.sentTo(v.post("/admin/groups/1/delete"), "/admin/groups?done=group_deleted")
	v.expect(v.get("/admin/groups/1"), http.StatusNotFound, "Not found")
}

// TestThemeIsKeptAndLeadsBack: the theme that a user chose is in every page from then on, and the form leads back to
// the page it was sent from and nowhere else.
func TestThemeIsKeptAndLeadsBack(t *testing.T) {
	v := newFixture(t).signedIn("anna")
	v.expect(v.get("/account/keys?new=1&done=key_revoked"), http.StatusOK, `name="next" value="/account/keys?new=1"`)
	v.sentTo(v.post("/theme", "theme", "dark", "next", "/account/keys?new=1"), "/account/keys?new=1")
	v.expect(v.get("/account/keys"), http.StatusOK, `<html lang="en" data-theme="dark">`)
	v.sentTo(v.post("/theme", "theme", "system", "next", "//evil.example"), "/account")
	v.expect(v.get("/account"), http.StatusOK, `<html lang="en">`)
	v.cookies["stagedoor-theme"] = `"><script>`
	v.expect(v.get("/account"), http.StatusOK, `<html lang="en">`)
}

// TestMistakesOfTheConfigurationAreForAdministrators: they name providers and files, which users need not know.
func TestMistakesOfTheConfigurationAreForAdministrators(t *testing.T) {
	h := newFixture(t)
	h.mistakes = []string{"f.yaml:8:1: <more>: is not known"}
	for name, want := range map[string]bool{"root": true, "anna": false} {
		v := h.signedIn(name)
		for path, status := range map[string]int{"/account": http.StatusOK, "/live": http.StatusOK,
			"/requests/unknown": http.StatusNotFound} {
			v.expect(v.get(path), status, "")
			if got := strings.Contains(v.page, "f.yaml:8:1: &lt;more&gt;: is not known"); got != want {
				t.Errorf("%s sees the mistake on %s: %t", name, path, got)
			}
		}
	}
}

func TestAFormChangesOnlyTheTouchedFieldsOfAKey(t *testing.T) {
	h := newFixture(t)
	_, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.anna.ID, Name: `ci"<b>`,
		Models: []string{"free"}, Budget: 5_000_000, Window: budget.WindowMonth,
		Expires: time.Date(2100, 5, 1, 12, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	path := "/account/keys/" + k.ID
	hour := requestlog.Spent{Step: 7*24 - 1, Owner: "user:anna", Key: k.ID, App: "Codex <b>", Requests: 3}
	h.requests.spent = []requestlog.Spent{hour, {Step: 1, Owner: hour.Owner, Key: k.ID, Requests: 4}}
	anna, root := h.signedIn("anna"), h.signedIn("root")
	anna.expect(anna.get("/account/keys"), http.StatusOK, ">7</a>")
	if !strings.Contains(anna.page, "by <bdi>Codex &lt;b&gt;</bdi>") || strings.Contains(anna.page, "<b>") {
		t.Errorf("the use of the key is not shown as text:\n%s", anna.page)
	}
	anna.expect(anna.get(path), http.StatusOK, "match 1 of")
	was := html.UnescapeString(find(regexp.MustCompile(`name="was" value="([^"]*)"`), anna.page))
	typed := []string{"was", was, "name", k.Name, "models", "free", "allow", "", "rpm", "60", "tpm", "", "slots", "",
		"budget", "5.00", "window", "month", "expiry", "2100-05-01", "disconnect", "finish"}
	// The operator lowers the budget while the page is open.
	amount := int64(1_000_000)
	change := tokens.KeyChange{Budget: tokens.BudgetChange{Amount: &amount}}
	if _, err := h.registry.UpdateKey(t.Context(), k.ID, change); err != nil {
		t.Fatal(err)
	}
	anna.sentTo(anna.post(path+"/edit", typed...), "/account/keys?done=key_changed")
	got := h.registry.UserKeys(h.anna.ID)[0]
	if got.Limits.RPM != 60 || got.OnDisconnect != identity.DisconnectFinish || got.Budget != amount ||
		!got.Expires.Equal(k.Expires) ||
		got.Name != k.Name || got.Scopes != nil || len(got.Models) != 1 {
		t.Errorf("got %+v", got)
	}
	anna.get(path)
	for _, wrong := range [][]string{{"rpm", "many", `value="many"`}, {"scope", "root", "Scopes must"},
		{"disconnect", "x", "must be"}} {
		anna.expect(anna.post(path+"/edit", append(typed, wrong[:2]...)...), http.StatusUnprocessableEntity, wrong[2])
	}
	anna.expect(anna.post(path+"/edit", append(typed, "was", "%")...), http.StatusBadRequest, "broken")
	root.get("/account")
	root.expect(root.post(path+"/edit", typed...), http.StatusNotFound, "Not found")
	root.expect(root.get(path), http.StatusNotFound, "Not found")
	// A user whose ceiling forbids keys changes none of those that an operator has made.
	no := false
	if _, err := h.registry.UpdateUser(t.Context(), h.anna.ID,
		tokens.UserChange{Ceiling: tokens.CeilingChange{CreateKeys: &no}}); err != nil {
		t.Fatal(err)
	}
	anna.expect(anna.get(path), http.StatusOK, "You may not change keys")
	anna.expect(anna.post(path+"/edit", append(typed, "rpm", "99")...), http.StatusForbidden, "may not create keys")
	if h.registry.UserKeys(h.anna.ID)[0].Limits.RPM != 60 {
		t.Error("a refused form changed the key")
	}
}

func TestAKeyIsRotatedOnItsPage(t *testing.T) {
	h := newFixture(t)
	old, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.anna.ID, Name: "ci<b>"})
	if err != nil {
		t.Fatal(err)
	}
	anna, bob := h.signedIn("anna"), h.signedIn("root")
	bob.get("/account/keys")
	bob.expect(bob.post("/account/keys/"+k.ID+"/rotate", "overlap", "1d"), http.StatusNotFound, "")
	anna.expect(anna.get("/account/keys"), http.StatusOK, "/account/keys/"+k.ID)
	anna.expect(anna.post("/account/keys/"+k.ID+"/rotate", "overlap", "1y"), http.StatusBadRequest, "")
	anna.expect(anna.get("/account/keys/"+k.ID), http.StatusOK, "for a day more")
	bob.expect(bob.get("/account/keys/"+k.ID), http.StatusNotFound, "")
	anna.expect(anna.post("/account/keys/"+k.ID+"/rotate", "overlap", "1d"), http.StatusOK,
		"The old secret works until")
	shown := regexp.MustCompile(`sd-[0-9A-Za-z]{43}`).FindString(anna.page)
	for _, secret := range []string{old, shown} {
		if found, ok := identity.AccessOf(h.state).Key(state.HashSecret(secret)); !ok || found.ID != k.ID {
			t.Errorf("%q does not work", secret)
		}
	}
	if shown == old || strings.Contains(anna.page, "<b>") {
		t.Error("the old secret is shown, or a name is no text")
	}
	anna.expect(anna.get("/account/keys"), http.StatusOK, "old secret until")
	if strings.Contains(anna.page, shown) {
		t.Error("the secret is shown again")
	}
	anna.post("/account/keys/"+k.ID+"/rotate", "overlap", "0")
	if _, ok := identity.AccessOf(h.state).Key(state.HashSecret(shown)); ok {
		t.Error("the old secret works without an overlap")
	}
	if all := h.audited(state.AuditQuery{Action: "key.change", Actor: "anna"}); len(all) != 2 {
		t.Errorf("the audit log has %+v", all)
	}
}

// TestAFormKeepsTheScopesOfAKeyThatTheCeilingHides: a key without scopes may do everything, so that a form without
// boxes for the scopes of a key must not take them away.
func TestAFormKeepsTheScopesOfAKeyThatTheCeilingHides(t *testing.T) {
	h := newFixture(t)
	_, k, err := h.registry.CreateKey(t.Context(), tokens.NewKey{User: h.anna.ID, Name: "ci",
		Scopes: []string{"images"}})
	if err != nil {
		t.Fatal(err)
	}
	ceiling := []string{"chat"}
	if _, err := h.registry.UpdateUser(t.Context(), h.anna.ID,
		tokens.UserChange{Ceiling: tokens.CeilingChange{Scopes: &ceiling}}); err != nil {
		t.Fatal(err)
	}
	anna, path := h.signedIn("anna"), "/account/keys/"+k.ID
	for _, step := range []struct {
		name  string
		ticks []string
		want  string
	}{{"renamed", nil, "images"}, {"chat", []string{"chat"}, "images chat"}, {"kept", []string{"chat"}, "images chat"},
		{"removed", nil, "images"}} {
		anna.get(path)
		was := html.UnescapeString(find(regexp.MustCompile(`name="was" value="([^"]*)"`), anna.page))
		typed := []string{"was", was, "name", step.name, "models", "", "allow", "", "rpm", "", "tpm", "", "slots", "",
			"budget", "", "window", "", "expiry", "", "disconnect", ""}
		for _, tick := range step.ticks {
			typed = append(typed, "scope", tick)
		}
		anna.sentTo(anna.post(path+"/edit", typed...), "/account/keys?done=key_changed")
		got := h.registry.UserKeys(h.anna.ID)[0]
		if scopes := strings.Join(got.Scopes, " "); scopes != step.want || got.Name != step.name {
			t.Errorf("%s: the key %s has the scopes %q, want %q", step.name, got.Name, scopes, step.want)
		}
	}
	anna.get(path)
	refused := anna.post(path+"/edit", "was", "name=x", "name", "x", "scope", "videos")
	anna.expect(refused, http.StatusUnprocessableEntity, "must be some of what you may do")
}
