// Package access sees to it that every request leaves one line in the log: who
// asked for what, how it ended and how long it took. The server begins and ends
// the line, the doors add what they know. Prompts, replies, query strings and
// keys are nothing for it.
package accesslog

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// maxPath is how much of a path a line holds; clients choose it.
const maxPath = 128

// Reply is a ResponseWriter that remembers what the line needs.
type Reply struct {
	http.ResponseWriter
	logger  *slog.Logger
	request *http.Request
	level   slog.Level
	started time.Time
	status  int         // as written; 0: nothing yet
	outcome int         // as a door says; 0: the same
	route   string      // of the path that served it
	trace   string      // id of its trace, or ""
	attrs   []slog.Attr // nil, or first of them to be filled in and those of Note
	room    *[most]slog.Attr
}

// Begin starts the line of a request. End finishes it.
func Begin(logger *slog.Logger, w http.ResponseWriter, r *http.Request) *Reply {
	return &Reply{ResponseWriter: w, logger: logger, request: r, started: time.Now()}
}

// Unwrap lets an http.ResponseController through.
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
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Begun reports whether the reply's status is out.
func (a *Reply) Begun() bool { return a.status != 0 }

// Status is how the request ended, as the line tells it.
func (a *Reply) Status() int {
	if a.outcome != 0 {
		return a.outcome
	}
	return a.status
}

// Began is when the request came.
func (a *Reply) Began() time.Time { return a.started }

// Route is the pattern of the path that served it; "": nobody did.
func (a *Reply) Route() string { return a.route }

// Routed tells which pattern served the request that w answers.
func Routed(w http.ResponseWriter, route string) {
	if a := of(w); a != nil {
		a.route = route
	}
}

// Traced puts the id of the request's trace into the line.
func (a *Reply) Traced(id string) { a.trace = id }

// Path is as much of a request's path as a line holds.
func Path(r *http.Request) string { return cut(r.URL.Path) }

// RequestID is the id that the server put on a reply.
func RequestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// End writes the line. id is the request's.
func (a *Reply) End(id string) {
	r := a.request
	if !a.logger.Enabled(r.Context(), a.level) {
		return
	}
	status := a.Status()
	Note(a) // there may have been none
	if a.trace != "" {
		a.attrs = append(a.attrs, slog.String("trace_id", a.trace))
	}
	own := [first]slog.Attr{slog.String("request_id", id), slog.String("method", cut(r.Method)), slog.String("path", cut(r.URL.Path)),
		slog.Int("status", status), slog.Duration("duration", time.Since(a.started))}
	copy(a.attrs, own[:])
	// A group without a name is written as what is in it, and costs no copy.
	a.logger.LogAttrs(r.Context(), a.level, "request", slog.Attr{Value: slog.GroupValue(a.attrs...)})
	clear(a.room[:])
	rooms.Put(a.room)
	a.room, a.attrs = nil, nil
}

// The line begins with first attributes of its own, which End knows; most lines
// have room for all that doors note.
const (
	first = 5
	most  = first + 16
)

// rooms are what lines are put together in. Handlers keep nothing of a line.
var rooms = sync.Pool{New: func() any { return new([most]slog.Attr) }}

// Note adds to the line of the request that w answers.
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

// Outcome sets the status the line tells where it is not the one that was sent:
// a stream that broke, a client that left (499).
func Outcome(w http.ResponseWriter, status int) {
	if a := of(w); a != nil {
		a.outcome = status
	}
}

// Quiet moves the line to debug, for what is asked every second.
func Quiet(w http.ResponseWriter) {
	if a := of(w); a != nil {
		a.level = slog.LevelDebug
	}
}

// Wanted reports whether the line will be written, so that nobody makes
// attributes in vain.
func Wanted(w http.ResponseWriter) bool {
	a := of(w)
	return a != nil && a.logger.Enabled(a.request.Context(), a.level)
}

// of finds the Reply among the writers that were put around each other.
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
