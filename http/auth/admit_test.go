package auth_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// code returns the code of a 429 with a Retry-After, or "" if err is nil.
func code(t *testing.T, err error) string {
	t.Helper()
	var e *dialogue.Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e) || e.Status != 429 || e.RetryAfter < time.Second:
		t.Fatalf("got %+v, want a 429 that says when to come back", err)
	}
	return e.Code.(string)
}

func TestRepliesReportTheLimitsOfTheKey(t *testing.T) {
	limits := throttle.NewKeys(10)
	key := identity.Key{ID: "key_1", Limits: identity.Limits{RPM: 1}}
	for i, want := range []string{"", "rate_limit_exceeded"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		pass, err := auth.Admit(w, r, limits, &key, now)
		if got := code(t, err); got != want || (pass == nil) != (want != "") {
			t.Fatalf("request %d: got %v, %v", i, pass, err)
		}
		h := w.Header()
		if h.Get("X-Ratelimit-Limit-Requests") != "1" || h.Get("X-Ratelimit-Remaining-Requests") != "0" ||
			h.Get("X-Ratelimit-Reset-Requests") == "" {
			t.Errorf("request %d: got %v", i, h)
		}
		if h.Get("X-Ratelimit-Limit-Tokens") != "" {
			t.Errorf("request %d: a limit the key does not have has headers: %v", i, h)
		}
	}
}

func TestTokensAreCountedOnceTheyAreKnown(t *testing.T) {
	limits := throttle.NewKeys(10)
	key := identity.Key{ID: "key_1", Limits: identity.Limits{TPM: 100}}
	for i, want := range []string{"", "rate_limit_exceeded"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		pass, err := auth.Admit(w, r, limits, &key, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := code(t, auth.Charge(w, pass, 80, now)); got != want {
			t.Errorf("request %d: got %q", i, got)
		}
		if left := w.Header().Get("X-Ratelimit-Remaining-Tokens"); left != "20" {
			t.Errorf("request %d: %q tokens are left", i, left)
		}
	}
}

// The concurrency of a key limits its requests in flight, and the share of an owner limits the
// requests of all its keys. A refused request holds nothing of either.
func TestConcurrencyAndShareAreCheckedBeforeTheBody(t *testing.T) {
	limits, i := throttle.NewKeys(10), overload.New(overload.Limits{Requests: 4})
	one := identity.Key{ID: "one", User: "u", Limits: identity.Limits{Concurrency: 1}}
	free := identity.Key{ID: "free", User: "u"}
	ask := func(key *identity.Key) (end func(), got string) {
		body := strings.NewReader("{}")
		counted, s, err := i.Enter(httptest.NewRequest(http.MethodPost, "/", body))
		if err != nil {
			t.Fatal(err)
		}
		pass, err := auth.Admit(httptest.NewRecorder(), counted, limits, key, now)
		if body.Len() != 2 {
			t.Error("the body was read")
		}
		end = func() { pass.Release(0); s.End() }
		if err != nil {
			end()
		}
		return end, code(t, err)
	}
	end, got := ask(&one)
	if got != "" {
		t.Fatal(got)
	}
	if _, got := ask(&one); got != "rate_limit_exceeded" {
		t.Errorf("a second request of a key with concurrency 1: %q", got)
	}
	if _, got := ask(&free); got != "" {
		t.Errorf("another key of the user: %q", got)
	}
	end()
	again, got := ask(&one)
	if got != "" {
		t.Errorf("after the first has ended: %q", got)
	}
	defer again()
	if _, got := ask(&free); got != "requests_share_exceeded" {
		t.Errorf("beyond the user's share: %q", got)
	}
}

// A watcher counts by the rate of its key and not by its concurrency.
func TestWatchersCountByTheRateOnly(t *testing.T) {
	limits := throttle.NewKeys(10)
	key := identity.Key{ID: "key_1", Limits: identity.Limits{RPM: 3, Concurrency: 1}}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	if _, err := auth.Admit(w, r, limits, &key, now); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "rate_limit_exceeded"} {
		if got := code(t, auth.AdmitWatcher(w, r, limits, &key, now)); got != want {
			t.Errorf("watcher %d: %q", i, got)
		}
	}
}

func TestOnlyCausesOfServerErrorsAreLogged(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		logged bool
	}{
		{&dialogue.Error{Status: 503, Code: "c", Message: "m", Cause: errors.New("the reason")}, 503, true},
		{&dialogue.Error{Status: 400, Code: "c", Message: "m", Cause: errors.New("the reason")}, 400, false},
	} {
		var log bytes.Buffer
		w := httptest.NewRecorder()
		w.Header().Set("X-Request-Id", "req_1")
		auth.Refuse(w, slog.New(slog.NewTextHandler(&log, nil)), envelope.Plain, c.err)
		if w.Code != c.status || strings.Contains(w.Body.String(), "the reason") {
			t.Errorf("%d: sent %d %s", c.status, w.Code, w.Body)
		}
		if got := strings.Contains(log.String(), "the reason") && strings.Contains(log.String(),
			"req_1"); got != c.logged {
			t.Errorf("%d: logged %q", c.status, log.String())
		}
	}
}

// TestARouteWithoutAScopeRefusesEveryKey checks that a forgotten scope is not treated as a
// permission.
func TestARouteWithoutAScopeRefusesEveryKey(t *testing.T) {
	a := auth.New(nil, func() time.Time { return now })
	a.SetFixed([]identity.Key{{ID: "key_1", Hash: state.HashSecret("sd-1"), Enabled: true}})
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Authorization", "Bearer sd-1")
	if _, err := a.Identify(r, "any", false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Identify(r, "", false); envelope.From(err).Status != 500 {
		t.Errorf("got %v, want a refusal", err)
	}
}
