package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/upstream"
)

func TestStatusAndHeadersFollowTheError(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		status  int
		code    any
		headers map[string]string // "": absent
	}{
		{"a refusal", dialogue.Invalid("n", "must be 1"), 400, "invalid_value",
			map[string]string{"Retry-After": "", "WWW-Authenticate": "", "X-Should-Retry": ""}},
		{"wrapped", fmt.Errorf("while: %w", dialogue.Missing("model")), 400, "missing_required_parameter", nil},
		{"no key", &dialogue.Error{Status: 401, Code: "missing_api_key"}, 401, "missing_api_key",
			map[string]string{"WWW-Authenticate": `Bearer realm="stagedoor"`}},
		{"wait", &dialogue.Error{Status: 429, RetryAfter: 1500 * time.Millisecond}, 429, nil,
			map[string]string{"Retry-After": "2", "Retry-After-Ms": "1500"}},
		{"wait for long", &dialogue.Error{Status: 429, RetryAfter: time.Hour}, 429, nil,
			map[string]string{"Retry-After": "60", "Retry-After-Ms": "60000"}},
		{"wait a moment", &dialogue.Error{Status: 503, RetryAfter: time.Millisecond}, 503, nil,
			map[string]string{"Retry-After": "1"}},
		{"no use in trying", &dialogue.Error{Status: 429, NoRetry: true}, 429, nil,
			map[string]string{"X-Should-Retry": "false"}},
		{"an unknown error", errors.New("secret detail"), 500, "internal_error", nil},
		{"no error", nil, 500, "internal_error", nil},
		{"a status that is none", &dialogue.Error{Status: 200}, 500, nil, nil},
		{"nor this", &dialogue.Error{Status: 1000}, 500, nil, nil},
		{"nor none at all", &dialogue.Error{}, 500, nil, nil},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "no-cache")
		envelope.Write(w, envelope.Plain, c.err)
		if w.Code != c.status || w.Header().Get("Content-Type") != "application/json" ||
			w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: %d %v", c.name, w.Code, w.Header())
		}
		for name, value := range c.headers {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, value)
			}
		}
		var body struct{ Error map[string]any }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Error) != 4 ||
			body.Error["code"] != c.code {
			t.Errorf("%s: %s, %v", c.name, w.Body, err)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: the cause is shown: %s", c.name, w.Body)
		}
	}
}

func TestWhatAClientSentIsQuotedAndCut(t *testing.T) {
	long := "/" + strings.Repeat("ä\x1b[31m\r\n", 1000)
	for name, e := range map[string]*dialogue.Error{
		"path": envelope.NotFound(long, ""), "method": envelope.MethodNotAllowed(long, []string{"GET", "HEAD"}),
	} {
		if len(e.Message) > 1000 || strings.ContainsAny(e.Message, "\r\n\x1b") {
			t.Errorf("%s: %q", name, e.Message)
		}
	}
	if e := envelope.MethodNotAllowed("PUT", []string{"GET", "HEAD"}); e.Status != 405 ||
		!strings.Contains(e.Message, "GET or HEAD") {
		t.Errorf("%+v", e)
	}
}

// TestTheStatusOfAClientThatLeftIsNeverSent: neither as status nor in a body, whatever
// made the error.
func TestTheStatusOfAClientThatLeftIsNeverSent(t *testing.T) {
	left := upstream.CancelledBy(upstream.ErrClient).Err
	refused := upstream.Refused(dialogue.Traits{}, 499, nil,
		&dialogue.Error{Status: 499, Message: "Client Closed Request"}).Err
	for name, e := range map[string]*dialogue.Error{"the gateway's own": left, "an upstream's": refused} {
		for shape, dialect := range map[string]envelope.Dialect{"plain": envelope.Plain,
			"gemini": gemini.Shape.Envelope} {
			w := httptest.NewRecorder()
			envelope.Write(w, dialect, e)
			if w.Code < 500 || w.Code > 503 || strings.Contains(w.Body.String(), "499") {
				t.Errorf("%s, %s: sent %d %s", name, shape, w.Code, w.Body)
			}
		}
	}
	if left.Status != dialogue.StatusClientClosed {
		t.Errorf("the log would say %d", left.Status)
	}
}
