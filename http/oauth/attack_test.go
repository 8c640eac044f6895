package oauth_test

import (
	"encoding/base64"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
)

// redirectVariants are addresses that some parser or reader might mistake for callback.
var redirectVariants = []string{
	callback + "/", "https://APP.example.com/cb", "https://app.example.com/CB", "https://app.example.com:443/cb",
	"http://app.example.com/cb",
	callback + "?x=1", callback + "?", callback + "#f", callback + "#", callback + "/../cb", callback + "/..%2fcb",
	"https://app.example.com/%63b", "https://app.example.com/c%2562", "https://app.example.com//cb", callback +
		";x", callback + "%00",
	callback + "%0d%0aX:1", " " + callback, callback +
		" ", "https://app.example.com/\tcb", "https://app.example.com/\ncb", callback + "\r\nX: 1",
	`https:\\app.example.com\cb`, "https:/app.example.com/cb", "//app.example.com/cb", "app.example.com/cb", "/cb",
	"https://user@app.example.com/cb", "https://app.example.com@evil.example/cb",
	"https://app.example.com:pw@evil.example/cb",
	"https://app.example.com.evil.example/cb", "https://evilapp.example.com/cb", "https://x.app.example.com/cb",
	"https://app.example.com./cb",
	"https://аpp.example.com/cb", "https://xn--pp-6kc.example.com/cb", "https://app．example．com/cb",
	"HTTPS://app.example.com/cb",
	"javascript:alert(1)", "data:text/html,x", "myapp:/cb", "https://app.example.com:444/cb", "https://127.1/cb",
	"https://2130706433/cb",
	"https://[::ffff:127.0.0.1]/cb", "*", "https://*.example.com/cb", "https://app.example.com/*", callback +
		"\u0301", callback + "+", callback + "%20",
	callback + "\x00", callback + "\xff", callback + strings.Repeat("a", 8<<10), `"><script>alert(1)</script>`, " ", "",
}

func TestOnlyTheRegisteredAddressIsEverRedirectedTo(t *testing.T) {
	s := start(t, nil)
	signedIn := s.browser()
	s.authorize()
	signedIn.signIn(signedIn.do("GET", s.query(), nil), "anna")
	targets := map[string]string{"missing": s.query("redirect_uri", "-"), "good and bad": s.query("+redirect_uri",
		"https://evil.example/"),
		"bad and good": s.query("redirect_uri", "https://evil.example/", "+redirect_uri",
			callback), "good and good": s.query("+redirect_uri", callback),
		"two clients": s.query("+client_id", s.app.ClientID), "no client": s.query("client_id",
			"-"), "unknown client": s.query("client_id", "ci_x"),
		"broken query": s.query() + "&x=%zz", "semicolon": strings.ReplaceAll(s.query(), "&", ";")}
	for _, v := range redirectVariants {
		targets[v] = s.query("redirect_uri", v)
	}
	for name, target := range targets {
		for who, c := range map[string]*client{"guest": s.browser(), "user": signedIn} {
			for _, target := range []string{target, target + "&auto_authorize=true"} {
				w := c.do("GET", target, nil)
				if w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" ||
					strings.Contains(w.Body.String(), "<form") {
					t.Errorf("%q as %s: status %d to %q", name, who, w.Code, w.Header().Get("Location"))
				}
				if strings.Contains(w.Body.String(), "<script") {
					t.Errorf("%q is on the page as it came", name)
				}
				checkPage(t, name, w)
			}
		}
	}
}

func TestThePageNamesWhatIsWrongWithTheApp(t *testing.T) {
	s := start(t, nil)
	long := "<b>" + strings.Repeat("x", 4<<10)
	for want, target := range map[string]string{
		"client_id is missing":              s.query("client_id", "-"),
		"client_id is repeated":             s.query("+client_id", s.app.ClientID),
		"client_id is unknown: ci_x":        s.query("client_id", "ci_x"),
		"client_id is unknown: &lt;b&gt;xx": s.query("client_id", long),
		"redirect_uri is missing":           s.query("redirect_uri", ""),
		"redirect_uri is repeated":          s.query("+redirect_uri", callback),
	} {
		w := s.browser().do("GET", target, nil)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d, %s", want, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), long[3:]) {
			t.Errorf("%s: the page repeats the whole value", want)
		}
	}
	if err := s.registry.DisableApp(t.Context(), s.app.ID); err != nil {
		t.Fatal(err)
	}
	w := s.browser().do("GET", s.query(), nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "an app that was switched off") {
		t.Errorf("a disabled app: status %d, %s", w.Code, w.Body)
	}
}

func TestLoopbackAddressHasNoOtherSpelling(t *testing.T) {
	const registered = "http://127.0.0.1:3000/cb"
	s := start(t, func(o *options) { o.redirect = registered })
	for _, v := range []string{"http://127.0.0.1:3001/cb", "http://127.0.0.1/cb", "http://127.1:3000/cb",
		"http://2130706433:3000/cb", "http://localhost:3000/cb",
		"http://[::ffff:127.0.0.1]:3000/cb", "http://[::1]:3000/cb", "http://0.0.0.0:3000/cb",
		"https://127.0.0.1:3000/cb"} {
		if w := s.browser().do("GET", s.query("redirect_uri", v), nil); w.Code != http.StatusBadRequest ||
			w.Header().Get("Location") != "" {
			t.Errorf("%s: status %d", v, w.Code)
		}
	}
	if w := s.browser().do("GET", s.query(), nil); w.Code != http.StatusOK ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "form-action 'self' https: http:;") {
		t.Errorf("the registered one: status %d, %s", w.Code, w.Header().Get("Content-Security-Policy"))
	}
}

// checkPage checks that an HTML response cannot be framed, loads nothing from other sites and does
// not leak its address (attacks D3 and F2 of test/attacks_test.go).
func checkPage(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	h := w.Header()
	for _, want := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
		"form-action "} {
		if !strings.Contains(h.Get("Content-Security-Policy"), want) {
			t.Errorf("%s: no %s in %q", name, want, h.Get("Content-Security-Policy"))
		}
	}
	for field, want := range map[string]string{"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
		"Content-Type": "text/html; charset=utf-8"} {
		if h.Get(field) != want {
			t.Errorf("%s: %s is %q, want %q", name, field, h.Get(field), want)
		}
	}
	for _, attribute := range []string{`src="`, `href="`, `action="`} {
		for _, rest := range strings.Split(w.Body.String(), attribute)[1:] {
			if !strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "//") {
				t.Errorf("%s: the page has %s%.40s", name, attribute, rest)
			}
		}
	}
	for _, no := range []string{"<script", "style=", " onclick", "<iframe"} {
		if strings.Contains(w.Body.String(), no) {
			t.Errorf("%s: the page has %s", name, no)
		}
	}
}

func TestPagesAreUnframedAndLoadNothingForeign(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	page := c.do("GET", s.query(), nil)
	consent := c.follow(c.signIn(page, "anna"))
	for name, w := range map[string]*httptest.ResponseRecorder{"sign in": page, "consent": consent,
		"stale":          c.signIn(page, "anna"),
		"no transaction": c.do("GET", "/api/oauth2/sign-in", nil), "no visit": c.do("GET", "/topup", nil)} {
		checkPage(t, name, w)
	}
}

// Once the redirect address was checked, errors go to the app with state and iss if the user has
// signed in. Before that they are shown on a page with a link to the app (attack E1, RFC 9700
// 4.11.2).
func TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter(t *testing.T) {
	s := start(t, nil)
	user := s.browser()
	user.signIn(user.do("GET", s.query(), nil), "anna")
	for name, test := range map[string]struct {
		pairs []string
		want  string
		state string
	}{
		"no response_type":    {[]string{"response_type", "-"}, "invalid_request", "xyz"},
		"empty response_type": {[]string{"response_type", ""}, "invalid_request", "xyz"},
		"token":               {[]string{"response_type", "token"}, "unsupported_response_type", "xyz"},
		"code token":          {[]string{"response_type", "code token"}, "unsupported_response_type", "xyz"},
		"no state":            {[]string{"state", "-"}, "invalid_request", ""},
		"empty state":         {[]string{"state", ""}, "invalid_request", ""},
		"two states":          {[]string{"+state", "abc"}, "invalid_request", ""},
		"state too long":      {[]string{"state", strings.Repeat("s", 4097)}, "invalid_request", ""},
		"two scopes":          {[]string{"+scope", "profile"}, "invalid_request", "xyz"},
		"two response_types":  {[]string{"+response_type", "code"}, "invalid_request", "xyz"},
		"two auto_authorize": {[]string{"auto_authorize", "true", "+auto_authorize", "true"}, "invalid_request",
			"xyz"},
		"an unknown one, twice": {[]string{"x", "1", "+x", "2"}, "invalid_request", "xyz"},
		"twice before the type": {[]string{"response_type", "token", "+scope", "x"}, "invalid_request", "xyz"},
		"unknown scope":         {[]string{"scope", "profile admin"}, "invalid_scope", "xyz"},
		"scope in capitals":     {[]string{"scope", "PROFILE"}, "invalid_scope", "xyz"},
		"scopes with a tab":     {[]string{"scope", "profile\tbalance"}, "invalid_scope", "xyz"},
		"scope of 2 KB":         {[]string{"scope", strings.Repeat("p", 2<<10)}, "invalid_scope", "xyz"},
		"developer scope":       {[]string{"scope", "developer"}, "invalid_scope", "xyz"},
		"plain challenge": {[]string{"code_challenge", challenge, "code_challenge_method", "plain"},
			"invalid_request", "xyz"},
		"challenge without method": {[]string{"code_challenge", challenge}, "invalid_request", "xyz"},
		"method without challenge": {[]string{"code_challenge_method", "S256"}, "invalid_request", "xyz"},
		"challenge of 42": {[]string{"code_challenge", challenge[:42], "code_challenge_method", "S256"},
			"invalid_request", "xyz"},
		"challenge with padding": {[]string{"code_challenge", challenge + "=", "code_challenge_method", "S256"},
			"invalid_request", "xyz"},
	} {
		page := s.browser().do("GET", s.query(test.pairs...), nil)
		if page.Code != http.StatusBadRequest || page.Header().Get("Location") != "" ||
			!strings.Contains(page.Body.String(), test.want) {
			t.Errorf("%s, before sign-in: %d to %q\n%s", name, page.Code, page.Header().Get("Location"), page.Body)
		}
		link := backLink.FindStringSubmatch(page.Body.String())
		w := user.do("GET", s.query(test.pairs...), nil)
		q := returned(t, w)
		if w.Code != http.StatusFound || !strings.HasPrefix(w.Header().Get("Location"), callback+"?error=") ||
			q.Get("error") != test.want ||
			q.Get("state") != test.state || q.Get("iss") != issuer || q.Has("code") || len(q["state"]) > 1 {
			t.Errorf("%s: %d to %q, want %s", name, w.Code, w.Header().Get("Location"), test.want)
		}
		if link == nil || html.UnescapeString(link[1]) != w.Header().Get("Location") {
			t.Errorf("%s: the link %q does not lead where the redirect does", name, link)
		}
		for which, h := range map[string]http.Header{"redirect": w.Header(), "page": page.Header()} {
			if h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s, %s: headers %v", name, which, h)
			}
		}
	}
}

var backLink = regexp.MustCompile(`<a class="button primary" href="([^"]*)">Go back to app\.example\.com</a>`)

func TestScopesAreNormalised(t *testing.T) {
	s := start(t, nil)
	for scope, want := range map[string]string{"-": "profile", "": "profile", "balance profile": "profile balance",
		"profile profile": "profile", "balance": "balance"} {
		if _, body := s.exchange(s.authorize("scope", scope)); body["scope"] != want {
			t.Errorf("scope %q: granted %v, want %s", scope, body["scope"], want)
		}
	}
}

func TestStateComesBackAsItWas(t *testing.T) {
	s := start(t, nil)
	for _, state := range []string{"a\r\nSet-Cookie: x=1", `"quoted"`, "a&b=c#d", "Grüße ✓", "a+b c%20", "\xff\xfe",
		strings.Repeat("s", 4096), "<script>", "1"} {
		c := s.browser()
		w := c.signIn(c.do("GET", s.query("state", state, "auto_authorize", "true"), nil), "anna")
		if q := returned(t, w); len(q["state"]) != 1 || q.Get("state") != state || len(q["code"]) != 1 {
			t.Errorf("%.40q came back as %.40q", state, q["state"])
		}
		if strings.ContainsAny(w.Header().Get("Location"), "\r\n\"<>#") || w.Header().Get("Set-Cookie") == "x=1" {
			t.Errorf("%.40q: Location %q", state, w.Header().Get("Location"))
		}
	}
}

// A form is accepted only from the browser it was rendered for (attacks D2, D4 and D6).
func TestForeignFormsAreRefused(t *testing.T) {
	s := start(t, nil)
	s.addUser("mallory")
	begin := func() (*client, url.Values) {
		c := s.browser()
		form := formOf(t, c.do("GET", s.query(), nil))
		return c, with(form, "username", "anna", "password", password)
	}
	consent := func(user string) (*client, url.Values) {
		c := s.browser()
		return c, with(formOf(t, c.follow(c.signIn(c.do("GET", s.query(), nil), user))), "decision", "allow")
	}
	for name, attack := range map[string]func() *httptest.ResponseRecorder{
		"sign-in without a token": func() *httptest.ResponseRecorder {
			c, form := begin()
			return c.do("POST", "/api/oauth2/sign-in", with(form, "token", ""))
		},
		"sign-in without cookies": func() *httptest.ResponseRecorder {
			_, form := begin()
			return s.browser().do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in in another browser": func() *httptest.ResponseRecorder {
			_, form := begin()
			c, _ := begin()
			return c.do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in with another page's token": func() *httptest.ResponseRecorder {
			c, form := begin()
			other := formOf(t, c.do("GET", s.query("state", "b"), nil))
			return c.do("POST", "/api/oauth2/sign-in", with(form, "token", other.Get("token")))
		},
		"sign-in from another site": func() *httptest.ResponseRecorder {
			c, form := begin()
			c.header.Set("Sec-Fetch-Site", "cross-site")
			return c.do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in from a subdomain": func() *httptest.ResponseRecorder {
			c, form := begin()
			c.header.Set("Sec-Fetch-Site", "same-site")
			return c.do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in with a foreign Origin": func() *httptest.ResponseRecorder {
			c, form := begin()
			c.header.Set("Origin", "https://evil.example")
			return c.do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in with a null Origin": func() *httptest.ResponseRecorder {
			c, form := begin()
			c.header.Set("Origin", "null")
			return c.do("POST", "/api/oauth2/sign-in", form)
		},
		"sign-in without a session going on to the consent": func() *httptest.ResponseRecorder {
			c, form := begin()
			return c.do("POST", "/api/oauth2/consent", with(form, "decision", "allow"))
		},
		"consent without a token": func() *httptest.ResponseRecorder {
			c, form := consent("anna")
			return c.do("POST", "/api/oauth2/consent", with(form, "token", ""))
		},
		"consent in another's session": func() *httptest.ResponseRecorder {
			c, _ := consent("anna")
			_, form := consent("mallory")
			return c.do("POST", "/api/oauth2/consent", form)
		},
		"consent with another's token": func() *httptest.ResponseRecorder {
			c, form := consent("anna")
			_, other := consent("mallory")
			return c.do("POST", "/api/oauth2/consent", with(form, "token", other.Get("token")))
		},
		"consent without a session": func() *httptest.ResponseRecorder {
			c, form := consent("anna")
			c.cookies = map[string]string{}
			return c.do("POST", "/api/oauth2/consent", form)
		},
		"consent from another site": func() *httptest.ResponseRecorder {
			c, form := consent("anna")
			c.header.Set("Sec-Fetch-Site", "cross-site")
			return c.do("POST", "/api/oauth2/consent", form)
		},
		"the page of another's consent": func() *httptest.ResponseRecorder {
			c, _ := consent("anna")
			_, form := consent("mallory")
			return c.do("GET", "/api/oauth2/consent?request="+form.Get("id"), nil)
		},
	} {
		w := attack()
		if w.Code != http.StatusForbidden || w.Header().Get("Location") != "" {
			t.Errorf("%s: status %d to %q", name, w.Code, w.Header().Get("Location"))
		}
		checkPage(t, name, w)
		if len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: cookies %v", name, w.Result().Cookies())
		}
	}
	// The same forms are good where they belong.
	c, form := begin()
	c.header.Set("Sec-Fetch-Site", "same-origin")
	c.header.Set("Origin", "null") // as Referrer-Policy: no-referrer makes it
	c.follow(c.do("POST", "/api/oauth2/sign-in", form))
	c, form = consent("anna")
	c.header.Set("Origin", issuer)
	codeOf(t, c.do("POST", "/api/oauth2/consent", form))
}

func TestGetRequestsNeverDecide(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	form := with(formOf(t, c.follow(c.signIn(c.do("GET", s.query(), nil), "anna"))), "decision", "allow")
	w := c.do("GET", "/api/oauth2/consent?request="+form.Get("id")+"&"+form.Encode(), nil)
	if w.Header().Get("Location") != "" {
		t.Errorf("status %d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestSessionBeginsAnewAtSignIn(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	page := c.do("GET", s.query(), nil)
	guest := c.cookies["__Host-stagedoor-guest"]
	w := c.signIn(page, "anna")
	for _, k := range w.Result().Cookies() {
		if !strings.HasPrefix(k.Name, "__Host-") || !k.Secure || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode ||
			k.Path != "/" || k.Domain != "" {
			t.Errorf("cookie %v", k)
		}
	}
	first := c.cookies["__Host-stagedoor-session"]
	if guest == "" || first == "" || c.cookies["__Host-stagedoor-guest"] != "" {
		t.Fatalf("cookies %v", c.cookies)
	}
	// The guest that was there before can't go on with what it began.
	planted := s.browser()
	planted.cookies["__Host-stagedoor-guest"] = guest
	if w := planted.do("GET", w.Header().Get("Location"), nil); w.Code != http.StatusForbidden {
		t.Errorf("the guest's cookie opens the consent page: %d", w.Code)
	}
	// A planted session ends when another user signs in.
	victim := s.browser()
	page = victim.do("GET", s.query(), nil)
	victim.cookies["__Host-stagedoor-session"] = first
	victim.do("POST", "/api/oauth2/sign-in", with(formOf(t, page), "username", "anna", "password", password))
	if victim.cookies["__Host-stagedoor-session"] != first {
		t.Error("signing in with a planted session changed something: its form was drawn for a guest")
	}
}

func TestCookiesWithoutTLSHaveNoSecureName(t *testing.T) {
	s := start(t, func(o *options) { o.issuer = "http://127.0.0.1:8080" })
	c := s.browser()
	for _, k := range c.signIn(c.do("GET", s.query(), nil), "anna").Result().Cookies() {
		if strings.HasPrefix(k.Name, "__Host-") || k.Secure || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode {
			t.Errorf("cookie %v", k)
		}
	}
}

// No value from the browser decides where it goes after signing in (attack D5).
func TestSignInLeadsNowhereElse(t *testing.T) {
	s := start(t, nil)
	for _, name := range []string{"next", "return_to", "redirect", "redirect_uri", "continue", "url"} {
		c := s.browser()
		form := formOf(t, c.do("GET", s.query(), nil))
		w := c.do("POST", "/api/oauth2/sign-in?"+name+"=//evil.example", with(form, "username", "anna", "password",
			password, name, "//evil.example"))
		if to := w.Header().Get("Location"); !strings.HasPrefix(to, "/api/oauth2/consent?request=") {
			t.Errorf("%s: sent to %q", name, to)
		}
	}
}

func TestWrongPasswordsAreSlowedDown(t *testing.T) {
	s := start(t, nil)
	c := s.browser()
	form := with(formOf(t, c.do("GET", s.query(), nil)), "username", "anna", "password", "wrong")
	for range 5 {
		if w := c.do("POST", "/api/oauth2/sign-in", form); w.Code != http.StatusForbidden ||
			!strings.Contains(w.Body.String(), "Wrong username or password") {
			t.Fatalf("status %d:\n%s", w.Code, w.Body)
		}
	}
	w := c.do("POST", "/api/oauth2/sign-in", with(form, "password", password))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" ||
		c.cookies["__Host-stagedoor-session"] != "" {
		t.Errorf("the sixth: status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}

// Wrong passwords from elsewhere delay neither a browser that has signed in before nor a new
// browser at another address.
func TestStrangersCannotLockOutAUserInAKnownBrowser(t *testing.T) {
	s := start(t, nil)
	s.addUser("mallory")
	known := s.browser()
	known.signIn(known.do("GET", s.query(), nil), "anna")
	device := known.cookies["__Host-stagedoor-device"]
	other := s.browser()
	other.signIn(other.do("GET", s.query(), nil), "mallory")
	if device == "" || other.cookies["__Host-stagedoor-device"] == "" {
		t.Fatal("a browser that has signed in keeps no device cookie")
	}
	attempt := func(password string, cookies map[string]string) int {
		c := s.browser()
		maps.Copy(c.cookies, cookies)
		form := formOf(t, c.do("GET", s.query(), nil))
		return c.do("POST", "/api/oauth2/sign-in", with(form, "username", "anna", "password", password)).Code
	}
	for range 10 {
		attempt("wrong", nil)
	}
	for name, test := range map[string]struct {
		cookies map[string]string
		want    int
	}{
		"an unknown browser at the stranger's address": {nil, http.StatusTooManyRequests},
		"a browser that another user is known in":      {map[string]string{"__Host-stagedoor-device": other.cookies["__Host-stagedoor-device"]}, http.StatusTooManyRequests},
		"an invented device":                           {map[string]string{"__Host-stagedoor-device": device[:len(device)-4] + "AAAA"}, http.StatusTooManyRequests},
		"the known browser": {map[string]string{"__Host-stagedoor-device": device},
			http.StatusSeeOther},
	} {
		if got := attempt(password, test.cookies); got != test.want {
			t.Errorf("%s: status %d, want %d", name, got, test.want)
		}
	}
	codes := map[int]int{}
	for range 10 {
		codes[attempt("wrong", map[string]string{"__Host-stagedoor-device": device})]++
	}
	if codes[http.StatusForbidden] != 5 || codes[http.StatusTooManyRequests] != 5 {
		t.Errorf("ten guesses in a known browser: %v", codes)
	}
}

// The page does not reveal whether a user exists (attack G1).
func TestUnknownUserAndWrongPasswordLookTheSame(t *testing.T) {
	s := start(t, nil)
	body := map[string]string{}
	for _, name := range []string{"anna", "unknown"} {
		c := s.browser()
		form := formOf(t, c.do("GET", s.query(), nil))
		w := c.do("POST", "/api/oauth2/sign-in", with(form, "username", name, "password", "wrong"))
		body[name] = strings.NewReplacer(name, "NAME", form.Get("id"), "ID", form.Get("token"),
			"TOKEN").Replace(w.Body.String())
	}
	if body["anna"] != body["unknown"] {
		t.Errorf("the pages differ:\n%s\n%s", body["anna"], body["unknown"])
	}
}

func TestHostileNamesAreText(t *testing.T) {
	s := start(t, nil)
	const name = `<img src=x onerror=alert(1)>"'&`
	_, a, err := s.registry.RegisterApp(t.Context(), tokens.NewApp{Owner: s.user.ID, Name: name,
		Description: "</p><script>x</script>\u202eevil", RedirectURI: callback})
	must(t, err)
	s.app = a
	c := s.browser()
	page := c.do("GET", s.query(), nil)
	consent := c.follow(c.signIn(page, "anna"))
	for which, w := range map[string]*httptest.ResponseRecorder{"sign in": page, "consent": consent} {
		if strings.Contains(w.Body.String(), "<img src=x") || !strings.Contains(w.Body.String(),
			"<bdi>&lt;img src=x onerror=alert(1)&gt;") {
			t.Errorf("%s: the name is not text", which)
		}
		checkPage(t, which, w)
	}
}

// The Host header appears in no response and no redirect (attack H4).
func TestHostHeaderIsNeverBelieved(t *testing.T) {
	s := start(t, nil)
	access, _ := s.tokens()
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/api/oauth2/topup"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("Forwarded", "host=evil.example")
		r.Header.Set("Authorization", "Bearer "+access)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "evil") || !strings.Contains(w.Body.String(),
			issuer) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	c := s.browser()
	c.header.Set("X-Forwarded-Host", "evil.example")
	w := c.signIn(c.do("GET", s.query("auto_authorize", "true"), nil), "anna")
	if returned(t, w).Get("iss") != issuer {
		t.Errorf("sent to %q", w.Header().Get("Location"))
	}
}

func TestMetadataListsWhatWorks(t *testing.T) {
	s := start(t, nil)
	status, _, m := s.get("/.well-known/oauth-authorization-server", "")
	if status != http.StatusOK || m["issuer"] != issuer || m["authorization_response_iss_parameter_supported"] != true {
		t.Errorf("%d %v", status, m)
	}
	for name, path := range map[string]string{"authorization_endpoint": "authorize", "token_endpoint": "token",
		"revocation_endpoint":    "revoke",
		"introspection_endpoint": "introspect", "userinfo_endpoint": "userinfo"} {
		if m[name] != issuer+"/api/oauth2/"+path {
			t.Errorf("%s is %v", name, m[name])
		}
	}
}

// The state of a sign-in travels in the browser, so a flood of other requests cannot evict it.
func TestAFloodOfRequestsEndsNoSignIn(t *testing.T) {
	s := start(t, nil)
	access, _ := s.tokens()
	c := s.browser()
	first := c.do("GET", s.query(), nil)
	link := s.linkOf(access)
	payer := s.browser()
	page := payer.follow(payer.do("GET", s.linkOf(access), nil))
	for range 10_001 {
		s.browser().do("GET", s.query(), nil)
	}
	for range 10_001 {
		s.get("/api/oauth2/topup", access)
	}
	flooder := s.browser()
	flooder.signIn(flooder.do("GET", s.query(), nil), "anna")
	for range 10_001 {
		flooder.do("GET", "/topup?account=own", nil)
	}
	if w := c.follow(c.signIn(first, "anna")); w.Code != http.StatusOK {
		t.Errorf("the sign-in in progress: %d", w.Code)
	}
	if w := s.browser().do("GET", link, nil); w.Code != http.StatusSeeOther {
		t.Errorf("the top-up link: %d", w.Code)
	}
	if w := payer.do("POST", "/topup", with(formOf(t, page), "code", "GOOD")); w.Code != http.StatusSeeOther {
		t.Errorf("the top-up page that was open: %d", w.Code)
	}
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}
