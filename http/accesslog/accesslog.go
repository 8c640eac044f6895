// Package accesslog writes one log line per request, with its method, path, status and duration.
// The server begins and ends the line, and the handlers add attributes with Note. Prompts,
// replies, query strings and keys are never logged.
//
// # Usage
//
// The server calls Begin and hands the Reply to the handlers as their http.ResponseWriter, and End after the handler
// has returned. Handlers add attributes with Note, Outcome and Quiet, which find the Reply among the writers that wrap
// it. A handler that is tested without a server therefore needs no Reply, and its notes are lost without an error.
//
// # Bounds
//
// Clients choose the method and the path, so both are cut. The number of attributes is fixed, because a Reply must not
// grow while a request runs for hours.
//
// # Concurrency
//
// A Reply belongs to the goroutine of its request.
package accesslog

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// maxPath bounds the method and the path in a line, because clients choose them.
const maxPath = 128

// Reply is a ResponseWriter that records the status of the reply and the attributes of its line.
type Reply struct {
	http.ResponseWriter
	logger  *slog.Logger
	request *http.Request
	level   slog.Level
	started time.Time
	status  int         // as written; 0 before the header is sent
	outcome int         // set by Outcome; 0 if it is the status written
	route   string      // the pattern that matched the path
	trace   string      // the id of the trace, or ""
	attrs   []slog.Attr // nil, or `first` attributes that End fills in and those of Note
	room    *[most]slog.Attr
}

// Begin starts the line of a request. End finishes it.
func Begin(logger *slog.Logger, w http.ResponseWriter, r *http.Request) *Reply {
	return &Reply{ResponseWriter: w, logger: logger, request: r, started: time.Now()}
}

// Unwrap implements the interface that http.ResponseController looks for.
func (a *Reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *Reply) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *Reply) Write(p []byte) (int, error) {
	a.status = cmp.Or(a.status, http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Begun reports whether the header of the reply was sent.
func (a *Reply) Begun() bool { return a.status != 0 }

// Status returns the status that the line reports: the one set by Outcome, or else the one sent.
func (a *Reply) Status() int {
	if a.outcome != 0 {
		return a.outcome
	}
	return a.status
}

// Began returns the time at which Begin was called.
func (a *Reply) Began() time.Time { return a.started }

// Route returns the pattern that matched the request's path, or "" if none did.
func (a *Reply) Route() string { return a.route }

// Routed sets the pattern that matched the path of the request that w answers.
func Routed(w http.ResponseWriter, route string) {
	if a := of(w); a != nil {
		a.route = route
	}
}

// Traced adds the id of the request's trace to the line.
func (a *Reply) Traced(id string) { a.trace = id }

// Path returns the path of a request, cut to the length that a line holds.
func Path(r *http.Request) string { return cut(r.URL.Path) }

// RequestID returns the request id that the server set on a reply.
func RequestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// End writes the line. id is the request id. The Reply takes no notes afterwards.
func (a *Reply) End(id string) {
	r := a.request
	if !a.logger.Enabled(r.Context(), a.level) {
		return
	}
	status := a.Status()
	Note(a) // reserves the first attributes if no handler has noted any
	if a.trace != "" {
		a.attrs = append(a.attrs, slog.String("trace_id", a.trace))
	}
	own := [first]slog.Attr{
		slog.String("request_id", id), slog.String("method", cut(r.Method)), slog.String("path", cut(r.URL.Path)),
		slog.Int("status", status), slog.Duration("duration", time.Since(a.started)),
	}
	copy(a.attrs, own[:])
	// A group without a name is written inline, and saves a copy of the attributes.
	a.logger.LogAttrs(r.Context(), a.level, "request", slog.Attr{Value: slog.GroupValue(a.attrs...)})
	clear(a.room[:])
	rooms.Put(a.room)
	a.room, a.attrs = nil, nil
}

// A line begins with `first` attributes that End sets. The pooled arrays have room for the
// attributes that handlers usually add, so most lines do not allocate.
const (
	first = 5
	most  = first + 16
)

// rooms pools the arrays that lines are assembled in. slog handlers do not keep them.
var rooms = sync.Pool{New: func() any { return new([most]slog.Attr) }}

// Note adds attributes to the line of the request that w answers. It does nothing if no Reply is
// among the writers that w wraps.
func Note(w http.ResponseWriter, attrs ...slog.Attr) {
	a := of(w)
	if a == nil {
		return
	}
	if a.attrs == nil {
		a.room = rooms.Get().(*[most]slog.Attr)
		a.attrs = a.room[:first]
	}
	a.attrs = append(a.attrs, attrs...)
}

// Outcome sets the status that the line reports, where it differs from the status that was sent,
// as for a stream that broke or a client that left (499).
func Outcome(w http.ResponseWriter, status int) {
	if a := of(w); a != nil {
		a.outcome = status
	}
}

// Quiet logs the line at level debug. Use it for paths that are polled, such as health checks.
func Quiet(w http.ResponseWriter) {
	if a := of(w); a != nil {
		a.level = slog.LevelDebug
	}
}

// Wanted reports whether the line will be written, so that callers can skip the work of making
// attributes.
func Wanted(w http.ResponseWriter) bool {
	a := of(w)
	return a != nil && a.logger.Enabled(a.request.Context(), a.level)
}

// of returns the Reply among the writers that w wraps, or nil.
func of(w http.ResponseWriter) *Reply {
	for {
		if a, ok := w.(*Reply); ok {
			return a
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = outer.Unwrap()
	}
}

func cut(s string) string {
	if len(s) > maxPath {
		return s[:maxPath]
	}
	return s
}
