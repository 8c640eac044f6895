package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
	"stagedoor/providers/dialogue"
)

// protocolError is an error response of a protocol endpoint, with the flat body of RFC 6749 5.2 and
// RFC 6750 3.
type protocolError struct {
	status      int
	code        string // error code; "" in errors of app registration only, whose body has none
	description string
	// challenge is the value of WWW-Authenticate; "" sends none.
	challenge  string
	retryAfter time.Duration
}

func (r *protocolError) Error() string { return r.description }

// invalidRequest returns a 400 with the code invalid_request.
func invalidRequest(text string) *protocolError {
	return &protocolError{status: http.StatusBadRequest, code: "invalid_request", description: text}
}

// retryUnavailable is the Retry-After of failures whose duration is unknown.
const retryUnavailable = 5 * time.Second

// protocolErrorOf returns the response for an error of this package or the registry. An unexpected
// error becomes a 500 that does not reveal its cause.
func protocolErrorOf(err error) *protocolError {
	var own *protocolError
	if errors.As(err, &own) {
		return own
	}
	var known *tokens.Error
	if !errors.As(err, &known) || known.Word == "" {
		return &protocolError{status: http.StatusInternalServerError, code: "server_error",
			description: "the service met an internal error"}
	}
	r := &protocolError{status: http.StatusBadRequest, code: known.Word, description: known.Description}
	var limited *tokens.Limited
	switch {
	case errors.As(err, &limited):
		r.status, r.retryAfter = http.StatusTooManyRequests, limited.RetryAfter
	case errors.Is(err, tokens.ErrUnavailable):
		r.status, r.retryAfter = http.StatusServiceUnavailable, retryUnavailable
	case errors.Is(err, tokens.ErrInvalidClient), errors.Is(err, tokens.ErrInvalidToken):
		r.status = http.StatusUnauthorized
	}
	return r
}

// writeError writes err as the response. It logs the cause of a 5xx unless the client has left.
func (s *Service) writeError(w http.ResponseWriter, r *http.Request, err error) {
	f := protocolErrorOf(err)
	if f.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", err)
	}
	if f.challenge != "" {
		w.Header().Set("WWW-Authenticate", f.challenge)
	}
	envelope.SetRetryAfter(w.Header(), f.retryAfter)
	writeJSON(w, f.status, errorBody{f.code, f.description})
}

// errorBody is the flat body of RFC 6749 5.2.
type errorBody struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// writeJSON writes body as a JSON response that must not be cached.
func writeJSON(w http.ResponseWriter, status int, body any) {
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

// Dialect returns the encoder for errors that no handler of this package writes (404, 405, panics)
// on its paths. It returns nil if path does not belong to this service.
func Dialect(path string) func(*dialogue.Error) []byte {
	switch {
	case strings.HasPrefix(path, "/api/oauth2/"):
		return appendErrorBody
	case path == pathApps || strings.HasPrefix(path, pathApps+"/"):
		return appendEnvelope
	}
	return nil
}

func appendErrorBody(e *dialogue.Error) []byte {
	code := "invalid_request"
	if e.Status >= http.StatusInternalServerError {
		code = "server_error"
	}
	b, _ := json.Marshal(errorBody{code, errorText(e.Message)}) // strings can always be encoded
	return b
}

func appendEnvelope(e *dialogue.Error) []byte {
	b, _ := json.Marshal(appEnvelope{Message: e.Message}) // strings can always be encoded
	return b
}

// errorText replaces the characters that error_description must not contain (RFC 6749 5.2).
func errorText(text string) string {
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
