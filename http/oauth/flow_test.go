package oauth_test

import (
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/oauth"
	"stagedoor/state"
)

func TestWholeFlow(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	page := c.do("GET", s.query("code_challenge", challenge, "code_challenge_method", "S256"), nil)
	consent := c.follow(c.signIn(page, "anna"))
	auto := s.browser().do("GET", s.query("auto_authorize", "true"), nil)
	for _, want := range []string{"Weather", "app.example.com", "Your profile", "Your balance"} {
		if !strings.Contains(consent.Body.String(), want) || !strings.Contains(auto.Body.String(), want) {
			t.Errorf("a page on which the user says yes does not say %q", want)
		}
	}
	if !strings.Contains(page.Body.String(), "Weather") || !strings.Contains(page.Body.String(), "app.example.com") {
		t.Error("the sign-in page does not name the app and its host")
	}
	w := c.decide(consent, "allow")
	if w.Code != http.StatusSeeOther {
		t.Errorf("after a POST: status %d, want 303", w.Code)
	}
	q := returned(t, w)
	if !strings.HasPrefix(w.Header().Get("Location"), callback+"?") || q.Get("state") != "xyz" ||
		q.Get("iss") != issuer || len(q) != 3 {
		t.Errorf("redirect to %q", w.Header().Get("Location"))
	}
	status, body := s.exchange(q.Get("code"), "code_verifier", verifier)
	if status != http.StatusOK || body["token_type"] != "Bearer" || body["expires_in"] != 7200.0 ||
		body["scope"] != "profile balance" {
		t.Fatalf("exchange: %d %v", status, body)
	}
	status, _, info := s.get("/api/oauth2/userinfo", body["access_token"].(string))
	want := map[string]any{"sub": strconv.FormatInt(s.user.ID, 10), "id": float64(s.user.ID), "username": "anna",
		"email": "anna@example.com", "quota": 9249999.0,
		"used_quota": 3250001.0, "balance_formatted": "9.249999", "created_time": float64(s.user.Created.Unix()),
		"status": 1.0}
	if status != http.StatusOK || len(info) != len(want) {
		t.Fatalf("userinfo: %d %v", status, info)
	}
	for name, v := range want {
		if info[name] != v {
			t.Errorf("userinfo %s: got %v, want %v", name, info[name], v)
		}
	}
	status, _, again := s.post(pathToken, "grant_type", "refresh_token", "refresh_token",
		body["refresh_token"].(string),
		"client_id", s.app.ClientID, "client_secret", s.secret)
	if status != http.StatusOK || again["refresh_token"] == body["refresh_token"] ||
		again["access_token"] == body["access_token"] {
		t.Errorf("refresh: %d %v", status, again)
	}
}

func TestFieldsOfUserinfoFollowTheScopes(t *testing.T) {
	s := start(t, nil)
	always := []string{"created_time", "id", "status", "sub"}
	profile, balance := []string{"email", "username"}, []string{"balance_formatted", "quota", "used_quota"}
	for scope, want := range map[string][]string{
		"-": append(profile, always...), "profile": append(profile, always...), "balance": append(balance, always...),
		"balance profile": append(append(profile, balance...), always...),
	} {
		access, _ := s.tokens("scope", scope)
		status, _, info := s.get("/api/oauth2/userinfo", access)
		if status != http.StatusOK || len(info) != len(want) {
			t.Errorf("scope %s: %d %v, want fields %v", scope, status, info, want)
		}
		for _, name := range want {
			if _, ok := info[name]; !ok {
				t.Errorf("scope %s: no %s", scope, name)
			}
		}
	}
}

func TestDenyingSendsOnlyAnErrorToTheApp(t *testing.T) {
	s := start(t, nil)
	for name, end := range map[string]func(*client, *httptest.ResponseRecorder) *httptest.ResponseRecorder{
		"on the sign-in page": func(c *client, page *httptest.ResponseRecorder) *httptest.ResponseRecorder {
			return c.do("POST", "/api/oauth2/sign-in", with(formOf(t, page), "decision", "deny"))
		},
		"on the consent page": func(c *client, page *httptest.ResponseRecorder) *httptest.ResponseRecorder {
			return c.decide(c.follow(c.signIn(page, "anna")), "deny")
		},
	} {
		c := s.browser()
		q := returned(t, end(c, c.do("GET", s.query(), nil)))
		if q.Get("error") != "access_denied" || q.Get("state") != "xyz" || q.Get("iss") != issuer || q.Has("code") {
			t.Errorf("%s: %v", name, q)
		}
	}
}

func TestAnotherAccountCanBeUsed(t *testing.T) {
	s := start(t, nil)
	s.addUser("bob")
	c := s.browser()
	consent := c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))
	before := c.cookies["__Host-stagedoor-session"]
	page := c.follow(c.decide(consent, "switch"))
	if _, err := s.registry.Session(t.Context(), before, tokens.Sender{}); err == nil {
		t.Error("the old session is alive")
	}
	code := codeOf(t, c.decide(c.follow(c.signIn(page, "bob")), "allow"))
	_, body := s.exchange(code)
	if _, _, info := s.get("/api/oauth2/userinfo", body["access_token"].(string)); info["username"] != "bob" {
		t.Errorf("userinfo: %v", info)
	}
}

// Each variant is sent with and without a session and a consent. The result must be a code at once,
// a page, or nothing.
func TestAutoAuthorizeAsksUnlessTheUserSaidYes(t *testing.T) {
	const atOnce, afterSignIn, consentPage, nothing = "code at once", "code after sign-in", "consent page", "nothing"
	for name, test := range map[string]struct {
		mode      oauth.Auto
		session   bool
		consented string // scopes said yes to before
		pairs     []string
		header    http.Header
		want      string
	}{
		"no session":                   {want: afterSignIn},
		"no session, consented only":   {mode: oauth.AutoConsented, want: consentPage},
		"no session, consented before": {mode: oauth.AutoConsented, consented: "profile balance", want: afterSignIn},
		"no session, never":            {mode: oauth.AutoNever, consented: "profile balance", want: consentPage},
		"no session, TRUE":             {pairs: []string{"auto_authorize", "TRUE"}, want: consentPage},
		"session":                      {session: true, want: consentPage},
		"session and consent":          {session: true, consented: "profile balance", want: atOnce},
		"session and consent, never": {mode: oauth.AutoNever, session: true, consented: "profile balance",
			want: consentPage},
		"session, consented only": {mode: oauth.AutoConsented, session: true, consented: "profile balance",
			want: atOnce},
		"narrower than before": {session: true, consented: "profile balance",
			pairs: []string{"scope", "balance"}, want: atOnce},
		"wider than before": {session: true, consented: "profile", want: consentPage},
		"without the parameter": {session: true, consented: "profile balance",
			pairs: []string{"auto_authorize", "-"}, want: consentPage},
		"TRUE": {session: true, consented: "profile balance",
			pairs: []string{"auto_authorize", "TRUE"}, want: consentPage},
		"1": {session: true, consented: "profile balance",
			pairs: []string{"auto_authorize", "1"}, want: consentPage},
		"in a frame": {session: true, consented: "profile balance",
			header: http.Header{"Sec-Fetch-Dest": {"iframe"}, "Sec-Fetch-Mode": {"navigate"}}, want: consentPage},
		"by a script": {session: true, consented: "profile balance",
			header: http.Header{"Sec-Fetch-Dest": {"empty"}, "Sec-Fetch-Mode": {"no-cors"}}, want: consentPage},
		"by navigation": {session: true, consented: "profile balance",
			header: http.Header{"Sec-Fetch-Dest": {"document"}, "Sec-Fetch-Mode": {"navigate"}}, want: atOnce},
		"prefetched": {session: true, consented: "profile balance",
			header: http.Header{"Sec-Purpose": {"prefetch;prerender"}}, want: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(o *options) {
				if test.mode != "" {
					o.auto = test.mode
				}
			})
			if test.consented != "" {
				s.authorize("scope", test.consented)
			}
			c := s.browser()
			if test.session {
				c.signIn(c.do("GET", s.query(), nil), "anna")
			}
			c.header = test.header
			w := c.do("GET", s.query(append([]string{"auto_authorize", "true"}, test.pairs...)...), nil)
			c.header = nil
			if got := outcome(c, w, test.session, atOnce, afterSignIn, consentPage, nothing); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The configuration may change while a user types. The request keeps the meaning that its page has
// announced.
func TestAutoAuthorizeKeepsItsMeaningDuringARequest(t *testing.T) {
	for name, test := range map[string]struct {
		before, after oauth.Auto
		named         bool // the sign-in page says that it is the consent
	}{
		"allowed meanwhile":   {oauth.AutoConsented, oauth.AutoLogin, false},
		"forbidden meanwhile": {oauth.AutoLogin, oauth.AutoNever, true},
	} {
		s := start(t, func(o *options) { o.auto = test.before })
		c := s.browser()
		page := c.do("GET", s.query("auto_authorize", "true"), nil)
		s.auto = test.after
		w := c.signIn(page, "anna")
		if code := strings.Contains(w.Header().Get("Location"), "?code="); code != test.named {
			t.Errorf("%s: a code at once is %t: %s", name, code, w.Header().Get("Location"))
		}
		again := s.browser().do("GET", s.query("auto_authorize", "true"), nil)
		if named := strings.Contains(again.Body.String(),
			"By signing in you let"); named != (test.after == oauth.AutoLogin) {
			t.Errorf("%s: the next page says that it is the last: %t", name, named)
		}
	}
}

func outcome(c *client, w *httptest.ResponseRecorder, session bool, atOnce, afterSignIn, consentPage,
	nothing string) string {
	switch {
	case w.Code == http.StatusNoContent:
		return nothing
	case w.Code == http.StatusFound && strings.Contains(w.Header().Get("Location"), "?code="):
		return atOnce
	case w.Code != http.StatusOK:
		return "status " + http.StatusText(w.Code)
	case strings.Contains(w.Body.String(), "Allow access?"):
		return consentPage
	case session:
		return "sign-in page"
	}
	named := strings.Contains(w.Body.String(), "By signing in you let")
	w = c.signIn(w, "anna")
	if strings.HasPrefix(w.Header().Get("Location"), "/") {
		if c.follow(w); named {
			return "a page that says it is the last, and one after it"
		}
		return consentPage
	}
	return map[bool]string{true: afterSignIn, false: "code without a word"}[strings.Contains(w.Header().Get("Location"),
		"?code=")]
}

func TestConsentIsForgottenAfterNinetyDaysAndWhenRevoked(t *testing.T) {
	for name, end := range map[string]func(*service){
		"90 days":    func(s *service) { s.pass(90*24*time.Hour + time.Second) },
		"revoked":    func(s *service) { must(t, s.registry.RevokeUserApp(t.Context(), s.user.ID, s.app.ID)) },
		"not at all": func(*service) {},
	} {
		s := start(t, nil)
		s.authorize()
		end(s)
		c := s.browser()
		c.signIn(c.do("GET", s.query(), nil), "anna")
		w := c.do("GET", s.query("auto_authorize", "true"), nil)
		if asked := w.Code == http.StatusOK; asked != (name != "not at all") {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// topUpLink returns the path of a fresh top-up link for the user anna.
func (s *service) topUpLink() string {
	s.t.Helper()
	access, _ := s.tokens("scope", "balance")
	return s.linkOf(access)
}

func (s *service) linkOf(access string) string {
	s.t.Helper()
	_, _, body := s.get("/api/oauth2/topup", access)
	address, _ := body["topup_url"].(string)
	if !strings.HasPrefix(address, issuer+"/topup?ticket=") || strings.Contains(address, access) {
		s.t.Fatalf("topup_url %q", address)
	}
	return strings.TrimPrefix(address, issuer)
}

func TestTopUpLinkWorksOnceInOneBrowser(t *testing.T) {
	s := start(t, nil)
	target := s.topUpLink()
	c := s.browser()
	if w := c.do("HEAD", target, nil); w.Code != http.StatusNoContent {
		t.Errorf("HEAD: %d", w.Code)
	}
	page := c.follow(c.do("GET", target, nil))
	for _, text := range []string{"<bdi>anna</bdi>", "$9.249999", "$3.250001"} {
		if !strings.Contains(page.Body.String(), text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	for name, again := range map[string]*client{"the same browser": c, "another": s.browser()} {
		if w := again.do("GET", target, nil); w.Code != http.StatusBadRequest {
			t.Errorf("a second time in %s: %d", name, w.Code)
		}
	}
	if w := s.browser().do("GET", "/topup", nil); w.Code != http.StatusForbidden {
		t.Errorf("a browser without the link: %d", w.Code)
	}
	thief := s.browser()
	thief.do("GET", s.query(), nil) // has a guest cookie of its own
	thief.cookies["__Host-stagedoor-topup"] = c.cookies["__Host-stagedoor-topup"]
	if w := thief.do("GET", "/topup", nil); w.Code != http.StatusForbidden {
		t.Errorf("another browser with the cookie of the page: %d", w.Code)
	}
}

func TestTopUpLinkEndsWithTheGrantOfItsApp(t *testing.T) {
	for name, end := range map[string]func(*service) error{
		"revoked": func(s *service) error {
			return s.registry.RevokeUserApp(t.Context(), s.user.ID, s.app.ID)
		},
		"the app disabled": func(s *service) error { return s.registry.DisableApp(t.Context(), s.app.ID) },
		"the app deleted":  func(s *service) error { return s.registry.DeleteApp(t.Context(), s.app.ID) },
	} {
		s := start(t, nil)
		target := s.topUpLink()
		must(t, end(s))
		if w := s.browser().do("GET", target, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func TestATopUpIsAuditedUnderTheUserWhoRedeems(t *testing.T) {
	s := start(t, nil)
	s.addUser("bob")
	s.codes.open["SECOND"] = 1
	bob, stranger := s.browser(), s.browser()
	bob.signIn(bob.do("GET", s.query(), nil), "bob")
	for code, c := range map[string]*client{"GOOD": bob, "SECOND": stranger} {
		page := c.follow(c.do("GET", s.topUpLink(), nil))
		c.do("POST", "/topup", with(formOf(t, page), "code", code, "confirm", "anna"))
		want := state.Actor{Kind: state.ActorUser, Name: "bob"}
		if c == stranger {
			want = state.Actor{Kind: state.ActorVisitor}
		}
		got := s.codes.actor
		if got.Kind != want.Kind || got.Name != want.Name || s.codes.credited[code] != "anna" {
			t.Errorf("%s has the actor %+v, credited %v", code, got, s.codes.credited)
		}
	}
}

// A user who follows a link of another account must not pay for it unknowingly.
func TestTopUpPageNamesTheAccountAndAsksBeforeCreditingAnother(t *testing.T) {
	s := start(t, nil)
	s.addUser("bob")
	bob := s.browser()
	bob.signIn(bob.do("GET", s.query(), nil), "bob")
	page := bob.follow(bob.do("GET", s.topUpLink(), nil))
	for _, text := range []string{"signed in as <strong><bdi>bob</bdi>",
		"Credit the account of <strong><bdi>anna</bdi>", "Top up your own account"} {
		if !strings.Contains(page.Body.String(), text) {
			t.Errorf("the page lacks %q:\n%s", text, page.Body)
		}
	}
	for _, confirm := range []string{"", "bob", "yes"} {
		w := bob.do("POST", "/topup", with(formOf(t, page), "code", "GOOD", "confirm", confirm))
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(),
			"Confirm that the code is for the account of anna") {
			t.Errorf("confirm %q: %d\n%s", confirm, w.Code, w.Body)
		}
	}
	if len(s.codes.credited) != 0 {
		t.Fatalf("credited %v", s.codes.credited)
	}
	done := bob.follow(bob.do("POST", "/topup", with(formOf(t, page), "code", "GOOD", "confirm", "anna")))
	if !strings.Contains(done.Body.String(), "added to the balance of anna") || s.codes.credited["GOOD"] != "anna" {
		t.Errorf("credited %v\n%s", s.codes.credited, done.Body)
	}
	// The own account needs no confirmation.
	own := bob.follow(bob.do("GET", "/topup?account=own", nil))
	if strings.Contains(own.Body.String(), "confirm") || !strings.Contains(own.Body.String(), "<bdi>bob</bdi>") {
		t.Errorf("the own account:\n%s", own.Body)
	}
}

func TestTopUpFormCreditsTheAccountThatItsPageNamed(t *testing.T) {
	s := start(t, nil)
	s.addUser("bob")
	bob := s.browser()
	bob.signIn(bob.do("GET", s.query(), nil), "bob")
	own := bob.follow(bob.do("GET", "/topup?account=own", nil))
	bob.follow(bob.do("GET", s.topUpLink(), nil)) // in another tab
	w := bob.do("POST", "/topup", with(formOf(t, own), "code", "GOOD", "confirm", "anna"))
	if w.Code != http.StatusForbidden || len(s.codes.credited) != 0 {
		t.Errorf("status %d, credited %v", w.Code, s.codes.credited)
	}
}

func TestTopUpNeedsTheScopeBalance(t *testing.T) {
	for _, own := range []string{"", "https://pay.example.org/"} {
		s := start(t, func(o *options) { o.topUpURL = own })
		access, _ := s.tokens("scope", "profile")
		status, h, body := s.get("/api/oauth2/topup", access)
		if status != http.StatusForbidden || body["error"] != "insufficient_scope" || body["topup_url"] != nil ||
			!strings.Contains(h.Get("WWW-Authenticate"), `scope="balance"`) {
			t.Errorf("%d %v %v", status, body, h)
		}
	}
}

func TestTopUpLinkExpires(t *testing.T) {
	s := start(t, nil)
	target := s.topUpLink()
	s.pass(10*time.Minute + time.Second)
	if w := s.browser().do("GET", target, nil); w.Code != http.StatusBadRequest {
		t.Errorf("status %d", w.Code)
	}
}

func TestRedeemCodeIsAddedOnce(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	page := c.follow(c.do("GET", s.topUpLink(), nil))
	if w := c.do("POST", "/topup", with(formOf(t, page), "code", "WRONG")); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(w.Body.String(), "no such code") {
		t.Errorf("wrong code: %d", w.Code)
	}
	if w := c.do("POST", "/topup", with(formOf(t, page), "code", "GOOD", "token",
		"x")); w.Code != http.StatusForbidden {
		t.Errorf("without a token: %d", w.Code)
	}
	done := c.follow(c.do("POST", "/topup", with(formOf(t, page), "code", " GOOD ")))
	if !strings.Contains(done.Body.String(), "$5.00 was added") {
		t.Errorf("after redeeming:\n%s", done.Body)
	}
	if w := c.do("POST", "/topup", with(formOf(t, done), "code", "GOOD")); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(w.Body.String(), "used already") {
		t.Errorf("a second time: %d", w.Code)
	}
}

func TestOperatorsTopUpAddressIsReturned(t *testing.T) {
	s := start(t, func(o *options) { o.topUpURL = "https://pay.example.org/" })
	access, _ := s.tokens("scope", "balance")
	if status, _, body := s.get("/api/oauth2/topup", access); status != http.StatusOK ||
		body["topup_url"] != "https://pay.example.org/" {
		t.Errorf("%d %v", status, body)
	}
}

func TestDevelopersRegisterApps(t *testing.T) {
	s := start(t, nil)
	token, _, err := s.registry.CreateDeveloperToken(t.Context(), s.user.ID, "laptop")
	must(t, err)
	access, _ := s.tokens()
	const good = `{"name":"Notes","description":"Keeps notes","redirect_uri":"https://notes.example.com/cb"}`
	for name, test := range map[string]struct {
		authorization, media, body string
		status                     int
		message                    string
	}{
		"good":               {"Bearer " + token, "application/json", good, 200, ""},
		"scheme in capitals": {"BEARER " + token, "application/json; charset=utf-8", good, 200, ""},
		"no description": {"Bearer " + token, "application/json",
			`{"name":"N","redirect_uri":"http://127.0.0.1:9000/cb"}`, 200, ""},
		"no token":     {"", "application/json", good, 401, "developer token"},
		"wrong token":  {"Bearer " + token + "x", "application/json", good, 401, "developer token"},
		"access token": {"Bearer " + access, "application/json", good, 403, "developer token"},
		"not JSON":     {"Bearer " + token, "application/json", `{"name":`, 400, "JSON"},
		"a form":       {"Bearer " + token, formMedia, "name=N", 415, "application/json"},
		"no name": {"Bearer " + token, "application/json", `{"redirect_uri":"https://a.example/cb"}`, 400,
			"name"},
		"no redirect": {"Bearer " + token, "application/json", `{"name":"N"}`, 400, "redirect_uri"},
		"name a number": {"Bearer " + token, "application/json",
			`{"name":1,"redirect_uri":"https://a.example/cb"}`, 400, "name"},
		"name twice": {"Bearer " + token, "application/json",
			`{"name":"a","name":"b","redirect_uri":"https://a.example/cb"}`, 400, "JSON"},
		"name in capitals": {"Bearer " + token, "application/json",
			`{"NAME":"a","redirect_uri":"https://a.example/cb"}`, 400, "name"},
		"http": {"Bearer " + token, "application/json",
			`{"name":"N","redirect_uri":"http://a.example/cb"}`, 400, "redirect_uri"},
		"javascript": {"Bearer " + token, "application/json",
			`{"name":"N","redirect_uri":"javascript:alert(1)"}`, 400, "redirect_uri"},
		"fragment": {"Bearer " + token, "application/json",
			`{"name":"N","redirect_uri":"https://a.example/cb#f"}`, 400, "redirect_uri"},
		"long name": {"Bearer " + token, "application/json", `{"name":"` + strings.Repeat("n", 101) +
			`","redirect_uri":"https://a.example/cb"}`, 400, "name"},
		"10 KB description": {"Bearer " + token, "application/json",
			`{"name":"N","description":"` + strings.Repeat("d", 10<<10) +
				`","redirect_uri":"https://a.example/cb"}`, 400, "description"},
		"1 MB": {"Bearer " + token, "application/json", `{"name":"` + strings.Repeat("n", 1<<20) + `"}`,
			413, "large"},
	} {
		r := httptest.NewRequest("POST", "/api/oauth_apps", strings.NewReader(test.body))
		r.Header.Set("Content-Type", test.media)
		if test.authorization != "" {
			r.Header.Set("Authorization", test.authorization)
		}
		status, h, body := s.send(r)
		message, _ := body["message"].(string)
		if status != test.status || body["success"] != (test.status == 200) || !strings.Contains(message,
			test.message) || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v, want %d %q", name, status, body, test.status, test.message)
		}
		if status != 200 {
			if _, ok := body["data"]; ok || message == "" {
				t.Errorf("%s: %v", name, body)
			}
			continue
		}
		data := body["data"].(map[string]any)
		if len(data) != 6 || message != "" {
			t.Errorf("%s: %v", name, body)
		}
		if a, err := s.registry.AppByClientID(data["client_id"].(string)); err != nil || a.Owner != s.user.ID ||
			float64(a.ID) != data["id"] {
			t.Errorf("%s: %v %v", name, a, err)
		}
	}
}

func TestStaleAndRepeatedFormsGetNoCode(t *testing.T) {
	s := start(t, nil)
	t.Run("consent twice", func(t *testing.T) {
		c := s.browser()
		consent := c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))
		codeOf(t, c.decide(consent, "allow"))
		if w := c.decide(consent, "allow"); w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
	t.Run("sign-in twice", func(t *testing.T) {
		c := s.browser()
		page := c.do("GET", s.query("auto_authorize", "true"), nil)
		guest := c.cookies["__Host-stagedoor-guest"]
		codeOf(t, c.signIn(page, "anna"))
		if w := c.signIn(page, "anna"); w.Code != http.StatusForbidden {
			t.Errorf("status %d", w.Code)
		}
		again := s.browser() // a second click before the first answer
		again.cookies["__Host-stagedoor-guest"] = guest
		if w := again.signIn(page, "anna"); w.Code != http.StatusBadRequest {
			t.Errorf("at the same time: status %d to %q", w.Code, w.Header().Get("Location"))
		}
	})
	t.Run("consent many times at once", func(t *testing.T) {
		c := s.browser()
		form := with(formOf(t, c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))), "decision", "allow")
		var wg sync.WaitGroup
		var codes atomic.Int32
		for range 16 {
			one := &client{s, maps.Clone(c.cookies), http.Header{}}
			wg.Go(func() {
				if w := one.do("POST", "/api/oauth2/consent", form); strings.Contains(w.Header().Get("Location"),
					"?code=") {
					codes.Add(1)
				}
			})
		}
		wg.Wait()
		if codes.Load() != 1 {
			t.Errorf("%d codes", codes.Load())
		}
	})
	t.Run("step by step for more than half an hour", func(t *testing.T) {
		c := s.browser()
		page := c.do("GET", s.query(), nil)
		for range 3 {
			s.pass(9 * time.Minute)
			page = c.follow(c.decide(c.follow(c.signIn(page, "anna")), "switch"))
		}
		s.pass(4 * time.Minute)
		if w := c.signIn(page, "anna"); w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
	t.Run("after 11 minutes", func(t *testing.T) {
		c := s.browser()
		page := c.do("GET", s.query(), nil)
		s.pass(11 * time.Minute)
		if w := c.signIn(page, "anna"); w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
	t.Run("app disabled meanwhile", func(t *testing.T) {
		c := s.browser()
		consent := c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))
		must(t, s.registry.DisableApp(t.Context(), s.app.ID))
		if w := c.decide(consent, "allow"); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
			t.Errorf("status %d to %q", w.Code, w.Header().Get("Location"))
		}
		_, err := s.registry.UpdateApp(t.Context(), s.app.ID, tokens.AppChange{Enabled: new(true)})
		must(t, err)
	})
	t.Run("user disabled meanwhile", func(t *testing.T) {
		c := s.browser()
		consent := c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))
		if _, err := s.registry.SetUserStatus(t.Context(), s.user.ID, tokens.StatusDisabled); err != nil {
			t.Fatal(err)
		}
		if w := c.decide(consent, "allow"); w.Code != http.StatusForbidden {
			t.Errorf("status %d to %q", w.Code, w.Header().Get("Location"))
		}
	})
}

func TestRedirectKeepsTheQueryOfTheRegisteredAddress(t *testing.T) {
	for redirect, want := range map[string]string{
		"https://app.example.com/cb?a=1&b=%2f": "https://app.example.com/cb?a=1&b=%2f&code=",
		"https://app.example.com/cb?":          "https://app.example.com/cb?code=",
		"http://[::1]:3000/cb":                 "http://[::1]:3000/cb?code=",
		"https://app.example.com":              "https://app.example.com?code=",
	} {
		s := start(t, func(o *options) { o.redirect = redirect })
		c := s.browser()
		w := c.signIn(c.do("GET", s.query("auto_authorize", "true"), nil), "anna")
		if got := w.Header().Get("Location"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: sent to %q", redirect, got)
		}
		if u, err := url.Parse(w.Header().Get("Location")); err != nil || u.Query().Get("state") != "xyz" {
			t.Errorf("%s: %v", redirect, u)
		}
	}
}

func TestAnAppGetsNoCodeBeforeTheSecondFactor(t *testing.T) {
	s := start(t, nil)
	secret := []byte("12345678901234567890")
	recovery, err := s.registry.EnableSecondFactor(t.Context(), s.user.ID, "", secret,
		tokens.CodeAt(secret, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	c := s.browser()
	page := c.signIn(c.do("GET", s.query(), nil), "anna")
	half := regexp.MustCompile(`name="halfway" value="([^"]+)"`).FindStringSubmatch(page.Body.String())
	if page.Code != http.StatusOK || half == nil {
		t.Fatalf("%d\n%s", page.Code, page.Body)
	}
	refused := c.do("POST", "/api/oauth2/sign-in", with(formOf(t, page), "halfway", half[1], "code", "000000"))
	if refused.Code != http.StatusForbidden || !strings.Contains(refused.Body.String(), "The code is wrong") {
		t.Errorf("%d\n%s", refused.Code, refused.Body)
	}
	signedIn := c.do("POST", "/api/oauth2/sign-in", with(formOf(t, refused), "halfway", half[1], "code", recovery[0]))
	codeOf(t, c.decide(c.follow(signedIn), "allow"))
}

func TestAUserWhoSignsInAtAProviderComesBackToTheRequestAndIsAsked(t *testing.T) {
	s := start(t, nil)
	const other = "https://other.example.com/back"
	uris := []string{callback, other}
	_, err := s.registry.UpdateApp(t.Context(), s.app.ID, tokens.AppChange{RedirectURIs: &uris})
	must(t, err)
	c := s.browser()
	page := c.do("GET", s.query("code_challenge", challenge, "code_challenge_method", "S256", "auto_authorize", "true",
		"state", "<s>&x=1", "redirect_uri", other), nil)
	offered := regexp.MustCompile(`action="/signin/with/corp">(?s:.*?)name="next" value="([^"]*)"`).
		FindStringSubmatch(page.Body.String())
	if offered == nil {
		t.Fatalf("the page offers no provider: %s", page.Body)
	}
	next := html.UnescapeString(offered[1])
	c = s.browser()
	c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))
	consent := c.do("GET", next, nil)
	if !strings.Contains(consent.Body.String(), "Allow access?") {
		t.Fatalf("%s leads to %d %s", next, consent.Code, consent.Body)
	}
	w := c.decide(consent, "allow")
	q := returned(t, w)
	if to := w.Header().Get("Location"); !strings.HasPrefix(to, other+"?code=") || q.Get("state") != "<s>&x=1" {
		t.Errorf("the browser goes to %s, want %s with the code and the state", to, other)
	}
	status, _, body := s.post(pathToken, "grant_type", "authorization_code", "code", q.Get("code"),
		"redirect_uri", other, "client_id", s.app.ClientID, "client_secret", s.secret, "code_verifier", verifier)
	if status != http.StatusOK {
		t.Errorf("%d %v", status, body)
	}
}
