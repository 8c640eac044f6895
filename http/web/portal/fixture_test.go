package portal_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/idp"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/portal"
	"stagedoor/providers/catalog"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/journal"
	passwords "stagedoor/state/password"
	"stagedoor/state/schema"
)

const (
	origin   = "https://gateway.example.net"
	password = "correct horse battery"
)

// fixture has a portal over the real registry and ledger, and a store in memory.
type fixture struct {
	t         *testing.T
	handler   http.Handler
	registry  *tokens.Client
	state     *state.State
	ledger    *ledger.Client
	guard     *browser.Guard
	providers *idp.Client
	log       bytes.Buffer
	forwards  []string // what came through the page of videos
	anna      tokens.User
	root      tokens.User
	firstKey  string   // that the first page may show; "": none
	reply     string   // of the API; "": an empty one
	demanded  bool     // administrators must have a second factor
	remaining int      // requests of an erased user that are at work
	mistakes  []string // of the configuration file on disk
	ids       []string // the request ids with which the API answered
	requests  *requestLog
	settings  *fakeSettings
	recorded  *recorded
	overview  *httpflow.Overview
	later     time.Duration // by which the clock of the pages is ahead
	alerts    string        // where alerts go
}

func newFixture(t *testing.T) *fixture {
	h := newEmptyFixture(t)
	h.anna, h.root = h.user("anna", false), h.user("root", true)
	return h
}

// newEmptyFixture is a portal without users.
func newEmptyFixture(t *testing.T) *fixture { return newFixtureWith(t, nil) }

// newFixtureWith is newEmptyFixture with a mail server; nil: none.
func newFixtureWith(t *testing.T, mail *mailer.Client) *fixture {
	t.Helper()
	h := &fixture{t: t, requests: new(requestLog), settings: new(fakeSettings), recorded: new(recorded),
		overview: newOverview(t)}
	var err error
	if h.state, err = schema.Open(journal.NewMemory(), time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.state.Close() })
	system := kittest.Start(t)
	h.registry, err = tokens.Start(tokens.Options{System: system, State: h.state, Now: time.Now,
		Passwords: passwords.NewForTests()})
	if err != nil {
		t.Fatal(err)
	}
	if h.ledger, err = ledger.New(system, h.state); err != nil {
		t.Fatal(err)
	}
	guard, err := browser.New(
		browser.Options{
			Registry: h.registry,
			Origin:   origin,
			Key:      []byte("a key for tests only"),

			MustEnrol: h.demands,
			Now:       time.Now,
			Random:    rand.Reader,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	h.guard = guard
	served, mistakes := catalog.New([]catalog.Provider{
		{Name: "anthropic", Shape: "messages", BaseURL: "https://api.anthropic.com/v1", APIKeys: []string{"k"}},
		{Name: "simulator", Shape: catalog.Sandbox},
	}, []catalog.Model{
		{Pattern: "claude-sonnet-4-5", Targets: []catalog.Route{{Provider: "anthropic", Model: "claude-sonnet-4-5"}},
			Fallback: []catalog.Route{{Provider: "simulator", Model: "m"}}},
		{Pattern: "free", Targets: []catalog.Route{{Provider: "simulator", Model: "m"}}},
		{Pattern: "film", Targets: []catalog.Route{{Provider: "simulator", Model: "m"}},
			Price: &catalog.Price{PerSecond: 100_000}},
		{Pattern: "still", Targets: []catalog.Route{{Provider: "simulator", Model: "m"}},
			Price: &catalog.Price{PerImage: 40_000}},
		{Pattern: "print", Targets: []catalog.Route{{Provider: "simulator", Model: "m"}},
			Fallback: []catalog.Route{{Provider: "simulator", Model: "n", Price: &catalog.Price{PerImage: 90_000}}},
			Price:    &catalog.Price{PerImage: 50_000}},
		{Pattern: "etching", Targets: []catalog.Route{{Provider: "simulator", Model: "m"}},
			Price: &catalog.Price{PerImage: 60_000, ImageInput: 10_000_000}},
		{Pattern: "reel-*", Targets: []catalog.Route{
			{Provider: "anthropic", Model: "*", Price: &catalog.Price{PerSecond: 10_000}},
			{Provider: "simulator", Model: "*", Price: &catalog.Price{PerSecond: 400_000}}}},
		{Pattern: "odd-*", Targets: []catalog.Route{{Provider: "anthropic", Model: "*"}}},
	})
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	mux := http.NewServeMux()
	h.providers = idp.New(origin, time.Now)
	p := portal.New(
		portal.Options{
			Logger:     slog.New(slog.NewTextHandler(&h.log, nil)),
			Registry:   h.registry,
			Ledger:     h.ledger,
			State:      h.state,
			Browser:    guard,
			Providers:  h.providers,
			Mail:       mail,
			KeyName:    func(id string) string { return map[string]string{"cfg_deploy": "deploy"}[id] },
			Address:    origin,
			FirstKey:   func(*http.Request) string { return h.firstKey },
			Catalog:    func() *catalog.Catalog { return served },
			TextModels: func() []string { return []string{"gpt-4", "small", "free"} },
			VideoPrice: func(plan []catalog.Candidate, _ video.Operation, seconds int64) (int64, error) {
				return plan[0].Price.PerSecond * seconds, nil
			},
			TopUpURL:   func() string { return "" },
			Mistakes:   func() []string { return h.mistakes },
			RequestLog: h.requests,
			Recordings: h.recorded,
			Demands:    h.demands,
			Settings:   h.settings,
			Overview:   h.overview,
			AlertsTo:   func() string { return h.alerts },
			Erase: func(ctx context.Context, user int64) (int, error) {
				_, err := h.registry.EraseUser(ctx, user)
				return h.remaining, err
			},
			Now:    func() time.Time { return time.Now().Add(h.later) },
			Random: rand.Reader,
		},
	)
	p.Routes(func(pattern string, f http.HandlerFunc) { mux.HandleFunc(pattern, f) })
	api := http.NewServeMux()
	api.HandleFunc("/v1/", h.served)
	add := func(pattern string, f http.HandlerFunc) { mux.HandleFunc(pattern, f) }
	p.ForwardRoutes(add, add, api)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !p.Missing(w, r) {
			http.NotFound(w, r)
		}
	})
	h.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "id of "+r.URL.Path) // as http/server does
		mux.ServeHTTP(w, r)
	})
	return h
}

// served stands for the API and notes the key and the path of each request.
func (h *fixture) served(w http.ResponseWriter, r *http.Request) {
	key, err := auth.New(nil, time.Now).Authenticate(r, false)
	h.ids = append(h.ids, w.Header().Get("X-Request-Id"))
	h.forwards = append(h.forwards, fmt.Sprintf("%s %s by %s may %v: %v", r.Method, r.URL, key.User, key.Scopes, err))
	if h.reply != "" {
		io.WriteString(w, h.reply)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *fixture) demands(u *tokens.User) bool { return h.demanded && u.Admin }

func (h *fixture) user(name string, admin bool) tokens.User {
	h.t.Helper()
	u, err := h.registry.CreateUser(h.t.Context(),
		tokens.NewUser{Username: name, Email: name + "@example.com", Password: password, Admin: admin})
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

// visitor is a browser: it keeps cookies and knows the token of the last page.
type visitor struct {
	*fixture
	cookies map[string]string
	page    string
	// local makes its requests those of a browser on the gateway's own machine.
	local bool
	agent string // its User-Agent
}

func (h *fixture) visitor() *visitor { return &visitor{fixture: h, cookies: map[string]string{}} }

// signedIn returns the browser of a signed-in user.
func (h *fixture) signedIn(name string) *visitor {
	h.t.Helper()
	v := h.visitor()
	v.get("/signin")
	if res := v.post("/signin", "username", name, "password", password); res.StatusCode != http.StatusSeeOther {
		h.t.Fatalf("sign in: %d\n%s", res.StatusCode, v.page)
	}
	v.get("/account")
	return v
}

func (v *visitor) get(path string) *http.Response {
	return v.do(httptest.NewRequest(http.MethodGet, origin+path, nil))
}

var (
	hiddenToken = regexp.MustCompile(`name="token" value="([^"]*)"`)
	hiddenID    = regexp.MustCompile(`name="id" value="([^"]+)"`)
)

func find(re *regexp.Regexp, page string) string {
	if m := re.FindStringSubmatch(page); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// post sends a form of the last page with some fields.
func (v *visitor) post(path string, pairs ...string) *http.Response {
	form := url.Values{"token": {find(hiddenToken, v.page)}, "id": {find(hiddenID, v.page)}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.send(path, form, nil)
}

func (v *visitor) send(path string, form url.Values, header http.Header) *http.Response {
	r := httptest.NewRequest(http.MethodPost, origin+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, values := range header {
		r.Header[name] = values
	}
	return v.do(r)
}

func (v *visitor) do(r *http.Request) *http.Response {
	v.t.Helper()
	r.Header.Set("User-Agent", v.agent)
	if v.local {
		r.RemoteAddr, r.Host = "127.0.0.1:4000", "localhost:8080"
	}
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	res := w.Result()
	for _, c := range res.Cookies() {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode {
			v.t.Errorf("cookie %v", c)
		}
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if res.StatusCode != http.StatusSeeOther {
		v.page = string(body)
		v.protected(res)
	}
	return res
}

// protected: every page has the headers that pages need.
func (v *visitor) protected(res *http.Response) {
	v.t.Helper()
	policy := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action"} {
		if !strings.Contains(policy, part) {
			v.t.Errorf("policy %q lacks %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || res.Header.Get("Cache-Control") != "no-store" {
		v.t.Errorf("headers %v", res.Header)
	}
}

func (v *visitor) expect(res *http.Response, status int, text string) {
	v.t.Helper()
	if res.StatusCode != status || !strings.Contains(v.page, text) {
		v.t.Errorf("%d, want %d with %q:\n%s", res.StatusCode, status, text, v.page)
	}
}

func (v *visitor) sentTo(res *http.Response, location string) {
	v.t.Helper()
	if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != location {
		v.t.Errorf("%d to %q, want %q\n%s", res.StatusCode, got, location, v.page)
	}
}
