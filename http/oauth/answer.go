package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/dialogue"
)

// refusal is an error of a protocol endpoint: a status and a flat body (RFC 6749
// 5.2, RFC 6750 3).
type refusal struct {
	status int
	word   string // "": the body has none (RFC 6750 3.1, no authentication at all)
	text   string
	// challenge is the scheme of WWW-Authenticate, with what belongs to it.
	challenge string
	retry     time.Duration
}

func (r *refusal) Error() string { return r.text }

func invalidRequest(text string) *refusal {
	return &refusal{status: http.StatusBadRequest, word: "invalid_request", text: text}
}

// retryUnavailable is when to come back if nobody knows better.
const retryUnavailable = 5 * time.Second

// refusalOf finds what an endpoint says about an error of the registry. For what
// should not happen it says nothing.
func refusalOf(err error) *refusal {
	var own *refusal
	if errors.As(err, &own) {
		return own
	}
	var known *tokens.Error
	if !errors.As(err, &known) || known.Word == "" {
		return &refusal{status: http.StatusInternalServerError, word: "server_error", text: "the service met an internal error"}
	}
	r := &refusal{status: http.StatusBadRequest, word: known.Word, text: known.Description}
	var limited *tokens.Limited
	switch {
	case errors.As(err, &limited):
		r.status, r.retry = http.StatusTooManyRequests, limited.RetryAfter
	case errors.Is(err, tokens.ErrUnavailable):
		r.status, r.retry = http.StatusServiceUnavailable, retryUnavailable
	case errors.Is(err, tokens.ErrInvalidClient), errors.Is(err, tokens.ErrInvalidToken):
		r.status = http.StatusUnauthorized
	}
	return r
}

// refuse answers with an error. The cause of a 5xx is for the log.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := refusalOf(err)
	if f.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", err)
	}
	if f.challenge != "" {
		w.Header().Set("WWW-Authenticate", f.challenge)
	}
	setRetry(w.Header(), f.retry)
	var body any = struct{}{}
	if f.word != "" {
		body = flat{f.word, f.text}
	}
	answer(w, f.status, body)
}

func setRetry(h http.Header, wait time.Duration) {
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
}

// flat is the body of an error.
type flat struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// answer writes JSON that nobody may keep.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	pages.NoStore(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

// Dialect is how errors that no handler makes, 404, 405 and panics, look to the
// clients of a path; nil: the path is not this service's.
func Dialect(path string) func(*dialogue.Error) []byte {
	switch {
	case strings.HasPrefix(path, "/api/oauth2/"):
		return appendFlat
	case path == pathApps || strings.HasPrefix(path, pathApps+"/"):
		return appendEnvelope
	}
	return nil
}

func appendFlat(e *dialogue.Error) []byte {
	word := "invalid_request"
	if e.Status >= http.StatusInternalServerError {
		word = "server_error"
	}
	b, _ := json.Marshal(flat{word, describable(e.Message)}) // strings always can be
	return b
}

func appendEnvelope(e *dialogue.Error) []byte {
	b, _ := json.Marshal(envelope{Message: e.Message}) // strings always can be
	return b
}

// describable keeps to the characters of error_description (RFC 6749 5.2).
func describable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, text)
}
