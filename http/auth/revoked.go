package auth

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/state/identity"
)

// watch lists the requests that end when their key becomes unusable. One goroutine, EndRevoked,
// checks them when a key changes, so requests cost nothing extra while no key changes.
type watch struct {
	revisions revisions     // of this process
	wake      chan struct{} // holds one wake-up
	mu        sync.Mutex
	requests  map[*watchedRequest]struct{}
}

// watchedRequest is a request that ends when its check fails, with the error of the check.
type watchedRequest struct {
	still func() error
	end   context.CancelCauseFunc
}

func newWatch() *watch {
	return &watch{wake: make(chan struct{}, 1), requests: make(map[*watchedRequest]struct{})}
}

// look wakes EndRevoked.
func (w *watch) look() {
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// KeyGeneration returns a number that changes whenever a key may have become unusable: a key was changed,
// revoked or expired, a user was disabled, or the configuration has other keys. A key that was
// found usable stays usable until the number changes. Callers read it before they look up the key.
func (a *Authenticator) KeyGeneration() uint64 {
	generation := a.watch.revisions.count.Load()
	if a.store != nil {
		generation += a.store.AccessVersion()
	}
	return generation
}

// While calls still at each change of KeyGeneration, and end with the error of still once it returns one. The
// caller calls leave when its request has ended. While is for requests that only watch; EndRevoked
// finds those of actors/flow by itself.
func (a *Authenticator) While(still func() error, end context.CancelCauseFunc) (leave func()) {
	g := &watchedRequest{still, end}
	w := a.watch
	w.mu.Lock()
	w.requests[g] = struct{}{}
	w.mu.Unlock()
	if err := still(); err != nil { // the key may have changed before the request was added
		end(err)
	}
	return func() {
		w.mu.Lock()
		delete(w.requests, g)
		w.mu.Unlock()
	}
}

// Watch returns a context of r that ends when the key of r becomes unusable. Its cause is then the
// error to send to the client. The caller calls leave when the request has ended.
func (a *Authenticator) Watch(r *http.Request, key *identity.Key) (ctx context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	still := func() error { return a.usable(key.ID) }
	if _, delegated := identifiedAs(r); delegated { // the key exists for this request only
		user := key.User
		still = func() error {
			if a.store != nil && a.store.Blocked(user) {
				return userDisabled()
			}
			return nil
		}
	}
	forget := a.While(still, cancel)
	return ctx, func() { forget(); cancel(context.Canceled) }
}

// usable returns an error if requests with the key are refused from every address.
func (a *Authenticator) usable(id string) error {
	key, err := a.ByID(id)
	if err != nil {
		return err
	}
	if err := key.Permits("", "", netip.Addr{}, a.now()); err != nil && !errors.Is(err, identity.ErrAddressForbidden) {
		return unusable(err)
	}
	a.expires(&key)
	return nil
}

// expires records when a key in use expires, so that EndRevoked wakes up then.
func (a *Authenticator) expires(key *identity.Key) {
	if !key.Expires.IsZero() && a.watch.revisions.expire(key.Expires) {
		a.watch.look()
	}
}

// together is the time in which EndRevoked collects changes before it checks the requests, so that many
// changes at once cost one check.
const together = 50 * time.Millisecond

// EndRevoked ends requests in flight whose keys have become unusable, until ctx ends. These are the
// requests of active, including background responses, and those of While. Their clients get the
// reason as an error in their shape. Video jobs continue, because they are paid for and other keys
// of their user can see them. EndRevoked must be called once only.
func (a *Authenticator) EndRevoked(ctx context.Context, active *flow.Registry) {
	active.Guard(a.KeyGeneration, a.watch.look)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var buffer []*flow.Request
	for {
		var changed <-chan struct{} // taken before the keys are read, so that no change is missed
		if a.store != nil {
			changed = a.store.WatchAccess()
		}
		a.watch.revisions.advance(a.now())
		buffer = a.endRevoked(active, buffer)
		timer.Stop()
		var expired <-chan time.Time
		if next := a.watch.revisions.next(); !next.IsZero() {
			timer.Reset(max(next.Sub(a.now()), 0))
			expired = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-a.watch.wake:
		case <-expired:
		}
		rest := time.NewTimer(together)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// endRevoked checks all requests once. It returns its buffer for the next call.
func (a *Authenticator) endRevoked(active *flow.Registry, buffer []*flow.Request) []*flow.Request {
	verdicts := make(map[string]error)
	buffer = active.Active(buffer[:0])
	for _, req := range buffer {
		if req.Job {
			continue
		}
		err, known := verdicts[req.Key]
		if !known {
			err = a.usable(req.Key)
			verdicts[req.Key] = err
		}
		if err != nil {
			req.Cancel(err)
		}
	}
	clear(buffer)
	w := a.watch
	w.mu.Lock()
	guests := slices.Collect(maps.Keys(w.requests))
	w.mu.Unlock()
	for _, g := range guests {
		if err := g.still(); err != nil {
			g.end(err)
		}
	}
	return buffer
}
