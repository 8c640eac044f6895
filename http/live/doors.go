package live

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/http/access"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// MaxPerOwner is how many watchers one owner may have at a time. A watcher costs
// tens of kilobytes; whoever needs more watches all jobs with one.
const MaxPerOwner = 2000

// Options are what the doors are made of.
type Options struct {
	Logger *slog.Logger
	State  *state.State
	Auth   *auth.Authenticator
	// Sessions knows the people who are signed in; nil: only keys may watch.
	Sessions Sessions
	// Origin is how browsers reach the gateway, scheme://host[:port], beside the
	// host they ask for.
	Origin string
	Now    func() time.Time
}

// Doors are the handlers. Any goroutine may use them.
type Doors struct {
	options  Options
	upgrader websocket.Upgrader

	ctx  context.Context // ends with errDraining
	stop context.CancelCauseFunc

	mu       sync.Mutex
	watchers map[state.Owner]int
	all      int
	gone     chan struct{} // closed when the last one has left after Drain
	draining bool
}

// errDraining ends what is being watched when the gateway stops.
var errDraining = errors.New("the gateway is shutting down")

// New makes the doors.
func New(o Options) *Doors {
	d := &Doors{options: o, watchers: make(map[state.Owner]int), gone: make(chan struct{})}
	d.upgrader = newUpgrader()
	d.ctx, d.stop = context.WithCancelCause(context.Background())
	return d
}

// Drain refuses new watchers and ends the others: sockets are closed with 1001,
// streams end, and both kinds of clients come back to whoever serves then.
func (d *Doors) Drain() {
	d.mu.Lock()
	if !d.draining {
		d.draining = true
		if d.all == 0 {
			close(d.gone)
		}
	}
	d.mu.Unlock()
	d.stop(errDraining)
}

// Wait waits after Drain until every watcher has left. The server does not know
// the connections of sockets, so it does not wait for them.
func (d *Doors) Wait(ctx context.Context) error {
	select {
	case <-d.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Watching is how many watchers there are.
func (d *Doors) Watching() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}

// enter counts a watcher in. Whoever entered leaves.
func (d *Doors) enter(owner state.Owner) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.draining:
		return &dialogue.Error{Status: http.StatusServiceUnavailable, Type: dialogue.TypeAPI, Code: "shutting_down",
			Message: errDraining.Error(), RetryAfter: time.Second}
	case d.watchers[owner] >= MaxPerOwner:
		return &dialogue.Error{Status: http.StatusTooManyRequests, Type: dialogue.TypeRateLimit, Code: "too_many_watchers",
			Message: "too many connections watch already, one of them can watch everything", RetryAfter: 10 * time.Second}
	}
	d.watchers[owner]++
	d.all++
	return nil
}

func (d *Doors) leave(owner state.Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watchers[owner]--; d.watchers[owner] == 0 {
		delete(d.watchers, owner)
	}
	if d.all--; d.all == 0 && d.draining {
		close(d.gone)
	}
}

// lifetime is the context of one watcher: of its request and of the doors.
func (d *Doors) lifetime(r *http.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(d.ctx, func() { cancel(errDraining) })
	return ctx, func() { release(); cancel(context.Canceled) }
}

// refuse answers a request that will watch nothing.
func (d *Doors) refuse(w http.ResponseWriter, err error) {
	e := envelope.From(err)
	if e.Status >= http.StatusInternalServerError && e.Cause != nil {
		d.options.Logger.Warn("request failed", "request_id", access.RequestID(w), "status", e.Status, "cause", e.Cause)
	}
	access.Note(w, slog.Any("error", e.Code))
	envelope.Write(w, envelope.Plain, e)
}
