package adminapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

const fixedToken = "a-token-of-administration"

// guardedMux returns a Guard, its state and a function that requests a path of the API behind the guard.
func guardedMux(t *testing.T) (*Guard, *state.State, func(path string, header ...string) *httptest.ResponseRecorder) {
	t.Helper()
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGuard(s, time.Now)
	mux := http.NewServeMux()
	a := New(Options{State: s, Guard: g})
	a.Routes(func(pattern string, h http.HandlerFunc) {
		if !strings.Contains(pattern, "openapi") {
			h = g.requireToken(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("in")) })
		}
		mux.HandleFunc(pattern, h)
	})
	return g, s, func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", Prefix+path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
}

func TestWithoutATokenTheAPIIsOff(t *testing.T) {
	_, s, get := guardedMux(t)
	defer s.Close()
	for _, path := range []string{"/users", "/openapi.json"} {
		if w := get(path, "Authorization", "Bearer "+fixedToken); w.Code != http.StatusForbidden ||
			!strings.Contains(w.Body.String(), "admin_api_disabled") {
			t.Errorf("%s answered %d %s", path, w.Code, w.Body)
		}
	}
	// The hash of nothing is no token.
	if w := get("/users", "Authorization", "Bearer "); w.Code != http.StatusForbidden {
		t.Errorf("an empty token was answered %d", w.Code)
	}
}

func TestOnlyTheAdminTokenIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, get := guardedMux(t)
		defer s.Close()
		g.SetToken(fixedToken)
		if err := identity.SetAdminToken(t.Context(), s, state.HashSecret("made by command")); err != nil {
			t.Fatal(err)
		}
		secret, k, err := identity.NewKey(time.Now(), strings.NewReader(strings.Repeat("x", 100)))
		if err != nil {
			t.Fatal(err)
		}
		if err := identity.CreateKey(t.Context(), s, k); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			header []string
			status int
		}{
			"of the configuration": {[]string{"Authorization", "Bearer " + fixedToken}, 200},
			"in another case":      {[]string{"Authorization", "bearer " + fixedToken}, 200},
			"made by command":      {[]string{"Authorization", "Bearer made by command"}, 200},
			"none":                 {nil, 401},
			"a wrong one":          {[]string{"Authorization", "Bearer " + fixedToken + "x"}, 401},
			"a part of it":         {[]string{"Authorization", "Bearer " + fixedToken[:10]}, 401},
			"a gateway key":        {[]string{"Authorization", "Bearer " + secret}, 401},
			"in another header":    {[]string{"X-Api-Key", fixedToken}, 401},
			"another scheme":       {[]string{"Authorization", "Basic " + fixedToken}, 401},
			"two": {[]string{"Authorization", "Bearer " + fixedToken, "Authorization", "Bearer x"},
				401},
			"nothing after the scheme": {[]string{"Authorization", "Bearer "}, 401},
		} {
			if w := get("/users", c.header...); w.Code != c.status {
				t.Errorf("a token %s was answered %d, want %d: %s", name, w.Code, c.status, w.Body)
			}
		}
		if w := get("/openapi.json"); w.Code != 200 || !strings.Contains(w.Body.String(), `"openapi":"3.1.0"`) {
			t.Errorf("the description was answered %d", w.Code)
		}
		g.SetToken("")
		if w := get("/users", "Authorization", "Bearer "+fixedToken); w.Code != 401 {
			t.Errorf("a token that was taken away was answered %d", w.Code)
		}
		if err := identity.RemoveAdminToken(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if w := get("/users", "Authorization", "Bearer made by command"); w.Code != 403 {
			t.Errorf("a token that was removed was answered %d", w.Code)
		}
	})
}

func TestGuessesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, get := guardedMux(t)
		defer s.Close()
		g.SetToken(fixedToken)
		var last *httptest.ResponseRecorder
		for range failuresPerMinute + 1 {
			last = get("/users", "Authorization", "Bearer wrong")
		}
		if last.Code != http.StatusTooManyRequests || last.Header().Get("Retry-After") == "" {
			t.Errorf("a guess too many was answered %d: %s", last.Code, last.Body)
		}
		if w := get("/users", "Authorization", "Bearer "+fixedToken); w.Code != 200 {
			t.Errorf("a request with the token was answered %d because of wrong tokens", w.Code)
		}
		time.Sleep(time.Minute)
		if w := get("/users", "Authorization", "Bearer wrong"); w.Code != 401 {
			t.Errorf("a guess a minute later was answered %d", w.Code)
		}
	})
}
