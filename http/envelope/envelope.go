// Package envelope writes errors as HTTP replies. It maps a *dialogue.Error to status, headers and
// body. The packages that detect an error create it.
//
// # Usage
//
// A handler knows its Dialect from the route and calls Write with whatever error it has. Packages that decide something
// return errors with a code, and actors and state write no status (TestNoStatusIsWrittenInActorsAndState), so that two
// routes cannot answer the same mistake differently.
//
// # What is shown
//
// The message of a *dialogue.Error is written for the client. Any other error was not expected here, and may name
// files, addresses or records: the client gets a 500 with a fixed text, and the cause goes to the log.
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

// Plain encodes an error for the routes that belong to no shape. It is a Dialect.
func Plain(err *dialogue.Error) []byte {
	return append(err.AppendJSON([]byte(`{"error":`)), '}')
}

// SetRetryAfter sets Retry-After to a wait in whole seconds, rounded up so that a client which waits that long is not
// too early, and returns the wait. It is at most upstream.MaxClientRetryAfter, and 0 sets nothing.
func SetRetryAfter(h http.Header, wait time.Duration) time.Duration {
	wait = min(wait, upstream.MaxClientRetryAfter)
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	return wait
}

// Write sends err as the reply. An error that From does not know is sent as a 500 that does not
// mention its cause.
func Write(w http.ResponseWriter, dialect Dialect, err error) {
	e := sendable(From(err))
	h := w.Header()
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="stagedoor"`)
	}
	if e.RetryAfter > 0 {
		wait := SetRetryAfter(h, e.RetryAfter)
		h.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	if e.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	if e.Retry {
		h.Set("X-Should-Retry", "true")
	}
	body := dialect(e)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Del("Cache-Control")
	w.WriteHeader(e.Status)
	w.Write(body)
}

// From returns err as a *dialogue.Error. A refusal of package share becomes the error of its pool,
// and any other error becomes a 500 with err as its Cause.
func From(err error) *dialogue.Error {
	var e *dialogue.Error
	if errors.As(err, &e) {
		return e
	}
	var refused *share.Refused
	if errors.As(err, &refused) {
		return dialogue.PoolRefused(refused.Pool, pools[refused.Pool], refused.Share)
	}
	return dialogue.Internal(err)
}

// Overloaded returns the 503 of a pool that is used up.
func Overloaded(pool string) *dialogue.Error {
	return dialogue.PoolRefused(pool, pools[pool], false)
}

// pools maps the pools to their names in messages. If an owner's share of the pool "requests" is
// used up, the code of the error is requests_share_exceeded.
var pools = map[string]string{
	share.Requests:      "requests",
	share.Bodies:        "request bodies",
	share.Memory:        "memory for requests",
	share.Background:    "background responses",
	share.Videos:        "video jobs",
	share.Content:       "pictures and uploads",
	share.Files:         "files of pictures and uploads",
	share.Watchers:      "connections that watch",
	share.Relays:        "replies that other gateways make",
	share.Sockets:       "memory for WebSockets",
	share.Passwords:     "passwords that are hashed",
	share.SignIns:       "sign-ins at OpenID providers",
	share.Conversations: "conversations",
	share.Kept:          "replies that are kept for repeats",
}

// sendable returns e with a status that may be sent. net/http panics on some numbers, and
// dialogue.StatusClientClosed is for logs only. A client that is still there after all gets a 503.
func sendable(e *dialogue.Error) *dialogue.Error {
	status := e.Status
	switch {
	case status == dialogue.StatusClientClosed:
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

// NotFound returns the 404 for a path without a route. The message asks whether the client meant the path
// similar, unless that is empty.
func NotFound(path, similar string) *dialogue.Error {
	message := "unknown path " + printable(path)
	if similar != "" {
		message += ", did you mean " + similar + "?"
	}
	return dialogue.Refusal(http.StatusNotFound, "unknown_url", message)
}

// ModelNotFound returns the 404 for a model that is not in the catalogue.
func ModelNotFound(name string) *dialogue.Error {
	return dialogue.Refusal(http.StatusNotFound, "model_not_found",
		"the model "+printable(name)+" is not served here").About("model")
}

// MethodNotAllowed returns the 405 for a path that has routes for other methods only.
func MethodNotAllowed(method string, allow []string) *dialogue.Error {
	return dialogue.Refusal(http.StatusMethodNotAllowed, "method_not_allowed",
		"method "+printable(method)+" is not allowed here, use "+strings.Join(allow, " or "))
}

// printable quotes and cuts text of a client so that it can be part of a message.
func printable(s string) string {
	const most = 128
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.QuoteToASCII(s)
}
