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

// Options configure Handlers.
type Options struct {
	Logger *slog.Logger
	State  *state.State
	Auth   *auth.Authenticator
	// Limits enforces the limits of keys.
	Limits *throttle.Keys
	// Watchers limits all requests that watch. A watcher costs tens of kilobytes.
	Watchers *share.Pool
	// Sessions recognises signed-in users. If it is nil, only keys may watch.
	Sessions Sessions
	// Origin is an origin of the gateway's pages, scheme://host[:port], in addition to
	// the host of each request.
	Origin string
	Now    func() time.Time
}

// Handlers has the HTTP handlers for watching. It is safe for concurrent use.
type Handlers struct {
	options  Options
	upgrader websocket.Upgrader

	ctx  context.Context // ends with ErrDraining
	stop context.CancelCauseFunc

	mu       sync.Mutex
	all      int
	empty    chan struct{} // closed when the last watcher has left after Drain
	draining bool
}

// ErrDraining ends all watchers when the gateway shuts down.
var ErrDraining = errors.New("the gateway is shutting down")

// New returns Handlers.
func New(o Options) *Handlers {
	hs := &Handlers{options: o, empty: make(chan struct{})}
	hs.upgrader = newUpgrader()
	hs.ctx, hs.stop = context.WithCancelCause(context.Background())
	return hs
}

// Drain refuses new watchers and ends the others. Sockets are closed with 1001 and streams end, so that
// both kinds of clients reconnect to another process.
func (hs *Handlers) Drain() {
	hs.mu.Lock()
	if !hs.draining {
		hs.draining = true
		if hs.all == 0 {
			close(hs.empty)
		}
	}
	hs.mu.Unlock()
	hs.stop(ErrDraining)
}

// Wait returns after Drain when every watcher has left. http.Server.Shutdown does not wait for sockets,
// because their connections are hijacked.
func (hs *Handlers) Wait(ctx context.Context) error {
	select {
	case <-hs.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Watching returns the number of watchers.
func (hs *Handlers) Watching() int {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.all
}

// enter adds a watcher, or returns the error that refuses it. The caller calls leave when the watcher
// has ended.
func (hs *Handlers) enter(owner state.Owner) error {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.draining {
		return dialogue.ShuttingDown(ErrDraining)
	}
	if err := hs.options.Watchers.Take(string(owner), 1); err != nil {
		return err
	}
	hs.all++
	return nil
}

// leave removes a watcher that enter added. The last one to leave after Drain lets Wait return.
func (hs *Handlers) leave(owner state.Owner) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.options.Watchers.Give(string(owner), 1)
	if hs.all--; hs.all == 0 && hs.draining {
		close(hs.empty)
	}
}

// lifetime returns the context of one watcher. It ends with the request, with Drain, or with the error
// of still as soon as the watcher may not watch any more.
func (hs *Handlers) lifetime(r *http.Request, still func() error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	release := context.AfterFunc(hs.ctx, func() { cancel(ErrDraining) })
	leave := hs.options.Auth.While(still, cancel)
	return ctx, func() { leave(); release(); cancel(context.Canceled) }
}

// refuse writes the error of a request that may not watch, in the plain envelope, and logs the cause of a failure of
// the gateway (5xx).
func (hs *Handlers) refuse(w http.ResponseWriter, err error) {
	e := envelope.From(err)
	if e.Status >= http.StatusInternalServerError && e.Cause != nil {
		hs.options.Logger.Warn("request failed", "request_id", accesslog.RequestID(w), "status", e.Status, "cause",
			e.Cause)
	}
	accesslog.Note(w, slog.Any("error", e.Code))
	envelope.Write(w, envelope.Plain, e)
}
