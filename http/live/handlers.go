package live

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Options are what the doors are made of.
type Options struct {
	Logger *slog.Logger
	State  *state.State
	Auth   *auth.Authenticator
	// Limits are the keys' own.
	Limits *throttle.Keys
	// Watchers is the pool of all that watch. A watcher costs tens of kilobytes.
	Watchers *share.Pool
	// Sessions knows the people who are signed in; nil: only keys may watch.
	Sessions Sessions
	// Origin is how browsers reach the gateway, scheme://host[:port], beside the
	// host they ask for.
	Origin string
	Now    func() time.Time
}

// Doors are the handlers. Any goroutine may use them.
type Handlers struct {
	options  Options
	upgrader websocket.Upgrader

	ctx  context.Context // ends with errDraining
	stop context.CancelCauseFunc

	mu       sync.Mutex
	all      int
	gone     chan struct{} // closed when the last one has left after Drain
	draining bool
}

// errDraining ends what is being watched when the gateway stops.
var errDraining = errors.New("the gateway is shutting down")

// New makes the doors.
func New(o Options) *Handlers {
	hs := &Handlers{options: o, gone: make(chan struct{})}
	hs.upgrader = newUpgrader()
	hs.ctx, hs.stop = context.WithCancelCause(context.Background())
	return hs
}

// Drain refuses new watchers and ends the others: sockets are closed with 1001,
// streams end, and both kinds of clients come back to whoever serves then.
func (hs *Handlers) Drain() {
	hs.mu.Lock()
	if !hs.draining {
		hs.draining = true
		if hs.all == 0 {
			close(hs.gone)
		}
	}
	hs.mu.Unlock()
	hs.stop(errDraining)
}

// Wait waits after Drain until every watcher has left. The server does not know
// the connections of sockets, so it does not wait for them.
func (hs *Handlers) Wait(ctx context.Context) error {
	select {
	case <-hs.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Watching is how many watchers there are.
func (hs *Handlers) Watching() int {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.all
}

// enter counts a watcher in. The caller calls leave when its watching has ended.
func (hs *Handlers) enter(owner state.Owner) error {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.draining {
		return &dialogue.Error{Status: http.StatusServiceUnavailable, Type: dialogue.TypeAPI, Code: "shutting_down",
			Message: errDraining.Error(), RetryAfter: time.Second}
	}
	if err := hs.options.Watchers.Take(string(owner), 1); err != nil {
		return err
	}
	hs.all++
	return nil
}

func (hs *Handlers) leave(owner state.Owner) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.options.Watchers.Give(string(owner), 1)
	if hs.all--; hs.all == 0 && hs.draining {
		close(hs.gone)
	}
}

// lifetime is the context of one watcher: it ends with its request, with the doors, and
// with the error of still as soon as the watcher must not watch any more.
func (hs *Handlers) lifetime(r *http.Request, still func() error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(hs.ctx, func() { cancel(errDraining) })
	leave := hs.options.Auth.While(still, cancel)
	return ctx, func() { leave(); release(); cancel(context.Canceled) }
}

// refuse answers a request that will watch nothing.
func (hs *Handlers) refuse(w http.ResponseWriter, err error) {
	e := envelope.From(err)
	if e.Status >= http.StatusInternalServerError && e.Cause != nil {
		hs.options.Logger.Warn("request failed", "request_id", accesslog.RequestID(w), "status", e.Status, "cause", e.Cause)
	}
	accesslog.Note(w, slog.Any("error", e.Code))
	envelope.Write(w, envelope.Plain, e)
}
