package admission_test

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
	"stagedoor/http/admission"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

func TestClientIsToldWhereItsKeyStands(t *testing.T) {
	limits, now := throttle.NewKeys(10), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := state.Key{ID: "key_1", Limits: state.Limits{RPM: 1}}
	for i, want := range []struct{ remaining, code string }{{"0", ""}, {"0", "rate_limit_exceeded"}} {
		h := make(http.Header)
		pass, err := admission.Count(h, limits, &key, 5, now)
		var refused *dialogue.Error
		if errors.As(err, &refused) != (want.code != "") || (pass == nil) != (want.code != "") {
			t.Fatalf("request %d: got %v, %v", i, pass, err)
		}
		if refused != nil && (refused.Status != 429 || refused.Code != want.code || refused.RetryAfter < time.Second) {
			t.Errorf("request %d: got %+v", i, refused)
		}
		if h.Get("X-Ratelimit-Limit-Requests") != "1" || h.Get("X-Ratelimit-Remaining-Requests") != want.remaining || h.Get("X-Ratelimit-Reset-Requests") == "" {
			t.Errorf("request %d: got %v", i, h)
		}
		if h.Get("X-Ratelimit-Limit-Tokens") != "" {
			t.Errorf("request %d: a limit the key does not have is told: %v", i, h)
		}
	}
}

// What failed inside is for the log, and what a client did wrong is not.
func TestOnlyWhatFailedInsideIsLogged(t *testing.T) {
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
		admission.Refuse(w, slog.New(slog.NewTextHandler(&log, nil)), envelope.Plain, c.err)
		if w.Code != c.status || strings.Contains(w.Body.String(), "the reason") {
			t.Errorf("%d: told %d %s", c.status, w.Code, w.Body)
		}
		if got := strings.Contains(log.String(), "the reason") && strings.Contains(log.String(), "req_1"); got != c.logged {
			t.Errorf("%d: logged %q", c.status, log.String())
		}
	}
}
