package auth

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/state"
)

// watch is what has to end with the use of keys: one goroutine, EndRevoked, looks for
// it when a key changes, so that a request pays nothing for it while none does.
type watch struct {
	era    revisions
	wake   chan struct{} // holds one wake-up
	mu     sync.Mutex
	guests map[*guest]struct{}
}

// guest is a request that ends when its check fails.
type guest struct {
	still func() error
	end   context.CancelCauseFunc
}

func newWatch() *watch {
	return &watch{wake: make(chan struct{}, 1), guests: make(map[*guest]struct{})}
}

// look makes EndRevoked look again.
func (w *watch) look() {
	select {
	case w.wake <- struct{}{}:
	default: // it will
	}
}

// Era changes whenever a key may have become unusable: a key was changed, revoked or
// has expired, a user was disabled, the configuration has other keys. A key that was
// found good is good until then. It is read before the key is looked up.
func (a *Authenticator) Era() uint64 {
	era := a.watch.era.count.Load()
	if a.store != nil {
		era += a.store.KeyEra()
	}
	return era
}

// While has end called with the error of still as soon as that returns one, at each
// change of Era. The caller calls leave when its request has ended. While is for
// requests that only watch; those of actors/flow are known to EndRevoked anyway.
func (a *Authenticator) While(still func() error, end context.CancelCauseFunc) (leave func()) {
	g := &guest{still, end}
	w := a.watch
	w.mu.Lock()
	w.guests[g] = struct{}{}
	w.mu.Unlock()
	if err := still(); err != nil { // it changed before the guest was known
		end(err)
	}
	return func() {
		w.mu.Lock()
		delete(w.guests, g)
		w.mu.Unlock()
	}
}

// Watch returns the context of a request that ends when the request's key cannot be
// used any more, with the error that its client is told as its cause. The caller calls
// leave when the request has ended.
func (a *Authenticator) Watch(r *http.Request, key *state.Key) (ctx context.Context, leave func()) {
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

// usable returns the error with which a key is refused wherever it is used from.
func (a *Authenticator) usable(id string) error {
	key, err := a.ByID(id)
	if err != nil {
		return err
	}
	if err := key.Permits("", "", netip.Addr{}, a.now()); err != nil && !errors.Is(err, state.ErrAddressForbidden) {
		return unusable(err)
	}
	a.expires(&key)
	return nil
}

// expires notes when the use of a key ends by itself.
func (a *Authenticator) expires(key *state.Key) {
	if !key.Expires.IsZero() && a.watch.era.expire(key.Expires) {
		a.watch.look()
	}
}

// together is how long changes are gathered before the requests are looked through, so
// that many changes at once cost one look.
const together = 50 * time.Millisecond

// EndRevoked ends what is under way with keys that cannot be used any more, until ctx
// ends: requests of active, background responses included, and those of While. Their
// clients are told why in the words of their shape. Video jobs go on: they are paid
// for, and other keys of their user see them. It is called once.
func (a *Authenticator) EndRevoked(ctx context.Context, active *flow.Registry) {
	active.Guard(a.Era, a.watch.look)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var buffer []*flow.Request
	for {
		var changed <-chan struct{} // of the store, taken before its keys are read
		if a.store != nil {
			changed = a.store.WatchAccess()
		}
		a.watch.era.advance(a.now())
		buffer = a.endRevoked(active, buffer)
		timer.Stop()
		var expired <-chan time.Time
		if next := a.watch.era.next(); !next.IsZero() {
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

// endRevoked looks once. It returns its buffer.
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
	guests := make([]*guest, 0, len(w.guests))
	for g := range w.guests {
		guests = append(guests, g)
	}
	w.mu.Unlock()
	for _, g := range guests {
		if err := g.still(); err != nil {
			g.end(err)
		}
	}
	return buffer
}
