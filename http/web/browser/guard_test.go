package browser_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
)

// registry keeps sessions by cookie.
type registry map[string]tokens.Session

func (r registry) Login(_ context.Context, l tokens.Login) (string, tokens.Session, error) {
	if l.Password != "right" {
		return "", tokens.Session{}, tokens.ErrLogin
	}
	id := strconv.Itoa(len(r) + 1)
	r["cookie-"+id] = tokens.Session{ID: id, Expires: time.Unix(3600, 0)}
	return "cookie-" + id, r["cookie-"+id], nil
}

func (r registry) Session(_ context.Context, cookie string, _ tokens.Sender) (tokens.Session, error) {
	if cookie == "broken" {
		return tokens.Session{}, tokens.ErrUnavailable
	}
	if s, ok := r[cookie]; ok {
		return s, nil
	}
	return tokens.Session{}, tokens.ErrNoSession
}

func (r registry) LoginExternal(context.Context, tokens.ExternalSignIn) (string, tokens.Session, error) {
	return "", tokens.Session{}, tokens.ErrUnlinked
}

func (r registry) LoginPasskey(context.Context, tokens.Credential, tokens.Once,
	tokens.Sender) (string, tokens.Session, error) {
	return "", tokens.Session{}, tokens.ErrPasskey
}

func (r registry) FinishLogin(context.Context, tokens.Halfway, string, tokens.Sender) (string, tokens.Session, error) {
	return "", tokens.Session{}, tokens.ErrCode
}

func (r registry) Logout(_ context.Context, cookie string) error {
	delete(r, cookie)
	return nil
}

func guard(t *testing.T, r registry, origin string) *browser.Guard {
	t.Helper()
	g, err := browser.New(
		browser.Options{
			Registry: r,
			Origin:   origin,
			Key:      []byte("key"),
			Now:      func() time.Time { return time.Unix(0, 0) },
			Random:   rand.Reader,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func request(cookies ...string) *http.Request {
	r := httptest.NewRequest("POST", "/", nil)
	for i := 0; i < len(cookies); i += 2 {
		r.AddCookie(&http.Cookie{Name: cookies[i], Value: cookies[i+1]})
	}
	return r
}

func TestSigningInEndsWhatTheBrowserHadBefore(t *testing.T) {
	r := registry{"old": {ID: "old"}}
	g := guard(t, r, "https://a.example")
	w := httptest.NewRecorder()
	v, err := g.SignIn(w, request("__Host-stagedoor-session", "old", "__Host-stagedoor-guest", "x"), nil,
		tokens.Login{Password: "right"})
	if err != nil || !v.SignedIn() || len(r) != 1 {
		t.Fatalf("%+v %v, sessions %v", v, err, r)
	}
	ages := map[string]int{}
	for _, c := range w.Result().Cookies() {
		ages[c.Name] = c.MaxAge
	}
	if ages["__Host-stagedoor-session"] != 3600 || ages["__Host-stagedoor-guest"] != -1 {
		t.Errorf("cookies live %v", ages)
	}
	if _, err := g.SignIn(httptest.NewRecorder(), request(), nil, tokens.Login{}); !errors.Is(err, tokens.ErrLogin) {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestVisitorsAreToldApart(t *testing.T) {
	g := guard(t, registry{"good": {ID: "1"}}, "http://127.0.0.1:80")
	w := httptest.NewRecorder()
	guest, err := g.EnsureVisitor(w, request())
	if err != nil || guest.SignedIn() || guest.Binding() == "" {
		t.Fatalf("%+v %v", guest, err)
	}
	c := w.Result().Cookies()[0]
	for name, test := range map[string]struct {
		cookies []string
		binding string
		signed  bool
		err     error
	}{
		"nothing":              {nil, "", false, nil},
		"its guest":            {[]string{c.Name, c.Value}, guest.Binding(), false, nil},
		"an invented guest":    {[]string{c.Name, "me"}, "", false, nil},
		"a session":            {[]string{"stagedoor-session", "good"}, "session 1", true, nil},
		"session before guest": {[]string{c.Name, c.Value, "stagedoor-session", "good"}, "session 1", true, nil},
		"a dead session":       {[]string{"stagedoor-session", "dead", c.Name, c.Value}, guest.Binding(), false, nil},
		"a broken registry":    {[]string{"stagedoor-session", "broken"}, "", false, tokens.ErrUnavailable},
	} {
		v, err := g.Visitor(request(test.cookies...))
		if v.Binding() != test.binding || v.SignedIn() != test.signed || !errors.Is(err, test.err) {
			t.Errorf("%s: %q %t %v", name, v.Binding(), v.SignedIn(), err)
		}
	}
}

func TestFormsComeFromThePageTheyWereDrawnFor(t *testing.T) {
	for _, test := range []struct {
		name, origin, purpose string
		header                http.Header
		want                  error
	}{
		{"no header", "https://a.example", "p", nil, nil},
		{"same origin", "https://a.example", "p", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}},
			nil},
		{"typed address", "https://a.example", "p", http.Header{"Sec-Fetch-Site": {"none"}}, nil},
		{"its origin behind a proxy", "https://a.example", "p", http.Header{"Origin": {"https://a.example"}}, nil},
		{"cross-site", "https://a.example", "p", http.Header{"Sec-Fetch-Site": {"cross-site"}}, browser.ErrForged},
		{"same site", "https://a.example", "p", http.Header{"Sec-Fetch-Site": {"same-site"}}, browser.ErrForged},
		{"another origin", "https://a.example", "p", http.Header{"Origin": {"https://b.example"}}, browser.ErrForged},
		{"null", "https://a.example", "p", http.Header{"Origin": {"null"}}, browser.ErrForged},
		{"null on plain http", "http://192.0.2.1", "p", http.Header{"Origin": {"null"}}, nil},
		{"cross-site on plain http", "http://127.0.0.1", "p", http.Header{"Origin": {"null"},
			"Sec-Fetch-Site": {"cross-site"}}, browser.ErrForged},
		{"another purpose", "https://a.example", "q", nil, browser.ErrForged},
	} {
		g := guard(t, registry{}, test.origin)
		v, err := g.EnsureVisitor(httptest.NewRecorder(), request())
		if err != nil {
			t.Fatal(err)
		}
		r := request()
		for name, values := range test.header {
			r.Header[name] = values
		}
		if err := g.CheckForm(r, &v, test.purpose, g.FormToken(&v, "p")); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		var stranger browser.Visitor
		if err := g.CheckForm(r, &stranger, "p", g.FormToken(&stranger, "p")); !errors.Is(err, browser.ErrForged) {
			t.Errorf("%s, from a stranger: %v", test.name, err)
		}
	}
}
