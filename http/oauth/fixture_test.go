package oauth_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/tokens"
	"stagedoor/http/oauth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	passwords "stagedoor/state/password"
	"stagedoor/state/schema"
	"stagedoor/test/harness"
)

const (
	issuer      = "https://auth.example.net"
	callback    = "https://app.example.com/cb"
	password    = "correct horse battery"
	challenge   = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	verifier    = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	pathToken   = "/api/oauth2/token"
	formMedia   = "application/x-www-form-urlencoded"
	authorizeAt = "/api/oauth2/authorize"
)

// service is the real service with the real registry and a store in memory.
type service struct {
	t        *testing.T
	handler  http.Handler
	registry *tokens.Client
	app      tokens.App
	secret   string
	user     tokens.User
	offset   *atomic.Int64 // how far the test has moved the clock
	log      *harness.Buffer
	auto     oauth.Auto // the configured meaning of auto_authorize
	codes    *codes
}

type options struct {
	issuer   string
	auto     oauth.Auto
	topUpURL string
	redirect string
	config   tokens.Config
}

// accounts maps usernames to credits and spent amounts.
type accounts map[string][2]int64

func (a accounts) Balance(account string) (credits, spent, held int64) {
	return a[account][0], a[account][1], 1
}

// codes accepts each redeem code of open once and records the credited account.
type codes struct {
	mu       sync.Mutex
	open     map[string]int64
	credited map[string]string
	actor    state.Actor // of the last redemption
}

func (c *codes) Redeem(ctx context.Context, account, code string) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch amount, ok := c.open[code]; {
	case !ok:
		return 0, state.ErrNotFound
	case c.credited[code] != "":
		return 0, money.ErrRedeemed
	default:
		c.credited[code], c.actor = account, state.ActorOf(ctx)
		return amount, nil
	}
}

func start(t *testing.T, change func(*options)) *service {
	t.Helper()
	o := options{issuer: issuer, auto: oauth.AutoLogin, redirect: callback}
	if change != nil {
		change(&o)
	}
	s := &service{t: t, offset: new(atomic.Int64), log: new(harness.Buffer), auto: o.auto,
		codes: &codes{open: map[string]int64{"GOOD": 5_000_000}, credited: map[string]string{}}}
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(s.offset.Load())) }
	store := journal.NewMemory()
	t.Cleanup(func() { store.Close() })
	st, err := schema.Open(store, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s.registry, err = tokens.Start(tokens.Options{System: kittest.Start(t), State: st, Now: now, Config: o.config,
		Passwords: passwords.NewForTests()})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := browser.New(browser.Options{Registry: s.registry, Origin: o.issuer,
		Key: []byte("a key for tests only"), Now: now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	offers := func(_ *browser.Visitor, next string) []pages.Offer {
		return []pages.Offer{{Form: pages.Form{Action: "/signin/with/corp"}, Label: "Corp", Next: next}}
	}
	oauth.New(oauth.Options{Logger: slog.New(slog.NewTextHandler(s.log, nil)), Registry: s.registry, Browser: guard,
		Offers:   offers,
		Passkey:  func(*browser.Visitor, string) *pages.Passkey { return nil },
		Accounts: accounts{"anna": {12_500_000, 3_250_001}}, Redeemer: s.codes,
		Issuer: o.issuer, Auto: func() oauth.Auto { return s.auto }, TopUpURL: func() string { return o.topUpURL },
		Mistakes: func() []string { return nil },
		Now:      now}).Routes(func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, h) })
	s.handler = mux
	s.user = s.addUser("anna")
	if s.secret, s.app, err = s.registry.RegisterApp(t.Context(), tokens.NewApp{Owner: s.user.ID, Name: "Weather",
		Description: "Forecasts", RedirectURI: o.redirect}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) addUser(name string) tokens.User {
	s.t.Helper()
	u, err := s.registry.CreateUser(s.t.Context(), tokens.NewUser{Username: name, Email: name + "@example.com",
		Password: password})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s *service) pass(d time.Duration) { s.offset.Add(int64(d)) }

// client is a browser that keeps cookies and follows no redirects.
type client struct {
	*service
	cookies map[string]string
	header  http.Header
}

func (s *service) browser() *client {
	return &client{s, map[string]string{}, http.Header{}}
}

func (c *client) do(method, target string, form url.Values) *httptest.ResponseRecorder {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, target, body)
	if form != nil {
		r.Header.Set("Content-Type", formMedia)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	for name, value := range c.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	for _, k := range w.Result().Cookies() {
		if c.cookies[k.Name] = k.Value; k.MaxAge < 0 {
			delete(c.cookies, k.Name)
		}
	}
	return w
}

// query returns the address of a valid authorization request, changed by pairs. A name that begins
// with + adds a value, and the value - removes the parameter.
func (s *service) query(pairs ...string) string {
	q := url.Values{"client_id": {s.app.ClientID}, "redirect_uri": {s.app.RedirectURI}, "response_type": {"code"},
		"scope": {"profile balance"}, "state": {"xyz"}}
	for i := 0; i < len(pairs); i += 2 {
		switch name, value := pairs[i], pairs[i+1]; {
		case name[0] == '+':
			q.Add(name[1:], value)
		case value == "-":
			q.Del(name)
		default:
			q.Set(name, value)
		}
	}
	return authorizeAt + "?" + q.Encode()
}

var hiddenFields = regexp.MustCompile(`<input type="hidden" name="id" value="([^"]*)">\s*<input type="hidden" name="token" value="([^"]*)">`)

// formOf returns the hidden fields of the first form of a page other than the sign-out form.
func formOf(t *testing.T, w *httptest.ResponseRecorder) url.Values {
	t.Helper()
	m := hiddenFields.FindStringSubmatch(w.Body.String())
	if m == nil {
		t.Fatalf("no form on the page, status %d:\n%s", w.Code, w.Body)
	}
	return url.Values{"id": {html.UnescapeString(m[1])}, "token": {html.UnescapeString(m[2])}}
}

func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for name, values := range form {
		out[name] = values
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// signIn submits the sign-in form of page and returns the response.
func (c *client) signIn(page *httptest.ResponseRecorder, username string) *httptest.ResponseRecorder {
	c.t.Helper()
	return c.do("POST", "/api/oauth2/sign-in", with(formOf(c.t, page), "username", username, "password", password))
}

// follow requests the page to which a response redirects.
func (c *client) follow(w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	c.t.Helper()
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/") {
		c.t.Fatalf("status %d to %q, want 303 to a page of ours:\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return c.do("GET", w.Header().Get("Location"), nil)
}

func (c *client) decide(page *httptest.ResponseRecorder, decision string) *httptest.ResponseRecorder {
	c.t.Helper()
	return c.do("POST", "/api/oauth2/consent", with(formOf(c.t, page), "decision", decision))
}

// codeOf returns the code in a redirect.
func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	code := returned(t, w).Get("code")
	if code == "" {
		t.Fatalf("no code: status %d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return code
}

// returned returns the parameters of a redirect to the app.
func returned(t *testing.T, w *httptest.ResponseRecorder) url.Values {
	t.Helper()
	u, err := url.Parse(w.Header().Get("Location"))
	if err != nil || (w.Code != http.StatusFound && w.Code != http.StatusSeeOther) {
		t.Fatalf("status %d to %q: %v\n%s", w.Code, w.Header().Get("Location"), err, w.Body)
	}
	return u.Query()
}

// authorize completes all pages in a new browser and returns the code.
func (s *service) authorize(pairs ...string) string {
	s.t.Helper()
	c := s.browser()
	return codeOf(s.t, c.decide(c.follow(c.signIn(c.do("GET", s.query(pairs...), nil), "anna")), "allow"))
}

// post sends a form to path and returns the status, headers and decoded body.
func (s *service) post(path string, pairs ...string) (int, http.Header, map[string]any) {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", formMedia)
	return s.send(r)
}

func (s *service) send(r *http.Request) (int, http.Header, map[string]any) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	var body map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			s.t.Fatalf("%s %s: status %d, not JSON: %s", r.Method, r.URL.Path, w.Code, w.Body)
		}
	}
	return w.Code, w.Header(), body
}

func (s *service) exchange(code string, pairs ...string) (int, map[string]any) {
	s.t.Helper()
	status, _, body := s.post(pathToken, append([]string{"grant_type", "authorization_code", "code", code,
		"redirect_uri", s.app.RedirectURI,
		"client_id", s.app.ClientID, "client_secret", s.secret}, pairs...)...)
	return status, body
}

// tokens completes the whole flow and redeems the code.
func (s *service) tokens(pairs ...string) (access, refresh string) {
	s.t.Helper()
	status, body := s.exchange(s.authorize(pairs...))
	if status != http.StatusOK {
		s.t.Fatalf("exchange: %d %v", status, body)
	}
	return body["access_token"].(string), body["refresh_token"].(string)
}

func (s *service) get(path, token string) (int, http.Header, map[string]any) {
	s.t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return s.send(r)
}
