// Package envelope turns errors into HTTP replies: the one map from a
// *dialogue.Error to status, headers and body (gateway.md 2.2 and 7,
// decisions.md "Errors"). It is not where errors are made.
package envelope

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/state/share"
)

// Dialect writes the body of an error for the clients of one shape.
type Dialect func(*dialogue.Error) []byte

// Plain is the envelope of every route that belongs to no shape of its own.
func Plain(err *dialogue.Error) []byte {
	return append(err.AppendJSON([]byte(`{"error":`)), '}')
}

// Write answers with err. Anything that is not a *dialogue.Error is a 500 that
// says nothing of its cause.
func Write(w http.ResponseWriter, dialect Dialect, err error) {
	e := sendable(From(err))
	h := w.Header()
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="stagedoor"`)
	}
	if e.RetryAfter > 0 {
		wait := min(e.RetryAfter, upstream.MaxClientRetryAfter)
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		h.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	if e.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	body := dialect(e)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Del("Cache-Control")
	w.WriteHeader(e.Status)
	w.Write(body)
}

// From is the envelope's view of any error.
func From(err error) *dialogue.Error {
	var e *dialogue.Error
	if errors.As(err, &e) {
		return e
	}
	var refused *share.Refused
	if errors.As(err, &refused) {
		return dialogue.PoolRefused(refused.Pool, pools[refused.Pool], refused.Share)
	}
	return &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "internal_error",
		Message: "the gateway met an internal error", Cause: err}
}

// Overloaded is the refusal where a pool is used up.
func Overloaded(pool string) *dialogue.Error {
	return dialogue.PoolRefused(pool, pools[pool], false)
}

// pools are the names of the pools as messages have them. An error has the code
// requests_share_exceeded if the owner's share of the pool "requests" is used up.
var pools = map[string]string{
	share.Requests:   "requests",
	share.Bodies:     "request bodies",
	share.Memory:     "memory for requests",
	share.Background: "background responses",
	share.Videos:     "video jobs",
	share.Content:    "pictures and uploads",
	share.Files:      "files of pictures and uploads",
	share.Watchers:   "connections that watch",
}

// sendable returns e with a status that may be sent. net/http would panic on some, and
// upstream.StatusClientLeft is for logs only: a client that is still there after all is
// told to try again.
func sendable(e *dialogue.Error) *dialogue.Error {
	status := e.Status
	switch {
	case status == upstream.StatusClientLeft:
		status = http.StatusServiceUnavailable
	case status < 400 || status > 599:
		status = http.StatusInternalServerError
	}
	if status == e.Status {
		return e
	}
	sent := *e
	sent.Status = status
	return &sent
}

// NotFound is the 404 of a path that nothing is served at.
func NotFound(path string) *dialogue.Error {
	return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Code: "unknown_url",
		Message: "unknown path " + printable(path)}
}

// ModelNotFound is the error for a model that is not served.
func ModelNotFound(name string) *dialogue.Error {
	return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Param: "model", Code: "model_not_found",
		Message: "the model " + printable(name) + " is not served here"}
}

// MethodNotAllowed is the 405 of a path that is served for other methods.
func MethodNotAllowed(method string, allow []string) *dialogue.Error {
	return &dialogue.Error{Status: 405, Type: dialogue.TypeInvalidRequest, Code: "method_not_allowed",
		Message: "method " + printable(method) + " is not allowed here, use " + strings.Join(allow, " or ")}
}

// printable keeps what a client sent short and harmless in a message.
func printable(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.QuoteToASCII(s)
}
