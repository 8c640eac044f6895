package kept

import (
	"errors"
	"sync"
	"time"

	"stagedoor/state"
	"stagedoor/state/share"
)

const (
	// MaxReply bounds the bytes that are kept of one reply.
	MaxReply = 8 << 20
	// Keep bounds the time that a record stays after its end.
	Keep = 10 * time.Minute
	// Least bytes may be held by an owner while they are free, even where its share is smaller.
	Least = 1 << 20
	// recordBytes counts a record without the bytes of its reply.
	recordBytes = 2 << 10
)

// ErrReused is the error for a key whose request differs from the one that it was first used for.
var ErrReused = errors.New("the key was used for another request")

// Request describes a request whose reply is kept.
type Request struct {
	// ID is the request id, by which the owner's clients find the record.
	ID    string
	Owner state.Owner
	// Key is the client's idempotency key, or "" without one. Asked is the hash of what the request asks for.
	Key   string
	Asked state.Hash
	// Scope and Model must be permitted to a key with which the reply is read.
	Scope, Model string
	Policy       Policy
	// Cancel ends the request because no client is left. It must not wait.
	Cancel func()
}

// Policy says what becomes of a request when no client is left that reads its reply.
type Policy uint8

// The policies.
const (
	// Cancel ends the request.
	Cancel Policy = iota
	// Finish lets the request run to its end.
	Finish
	// Detach is Finish for a client that will resume the stream, whose events therefore have ids.
	Detach
)

// ref finds a record of an owner.
type ref struct {
	owner state.Owner
	name  string
}

// Registry has the records of all owners.
type Registry struct {
	pool *share.Pool
	now  func() time.Time

	mu        sync.Mutex
	byKey     map[ref]*Record
	byRequest map[ref]*Record
	ended     map[state.Owner][]*Record // the oldest first
}

// New returns a registry whose records may hold the units of pool, which are bytes.
func New(pool *share.Pool, now func() time.Time) *Registry {
	return &Registry{pool: pool, now: now, byKey: make(map[ref]*Record), byRequest: make(map[ref]*Record),
		ended: make(map[state.Owner][]*Record)}
}

// Pool returns the pool of the bytes that are kept, for metrics and for its size.
func (g *Registry) Pool() *share.Pool { return g.pool }

// Now returns the time by the clock of the registry.
func (g *Registry) Now() time.Time { return g.now() }

// Begin returns the record of a request. begun reports whether the caller must make the reply. Otherwise another
// request of the owner with the same key makes it. Begin calls stored if no record has the key: stored reports whether
// an earlier reply is kept elsewhere, and Begin returns no record then. Begin returns ErrReused if the key was used for
// something else, and a *share.Refused if there is no room for a further record. The caller is a client of the record
// and calls Leave once.
func (g *Registry) Begin(q Request, stored func() bool) (r *Record, begun bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.Key != "" {
		switch r = g.byKey[ref{q.Owner, q.Key}]; {
		case r == nil:
		case !r.request.Asked.Equal(q.Asked):
			return nil, false, ErrReused
		default:
			r.clients++
			return r, false, nil
		}
		if stored() {
			return nil, false, nil
		}
	}
	if err := g.take(q.Owner, recordBytes); err != nil {
		return nil, false, err
	}
	r = &Record{registry: g, request: q, held: recordBytes, clients: 1}
	if q.Key != "" {
		g.byKey[ref{q.Owner, q.Key}] = r
	}
	g.byRequest[ref{q.Owner, q.ID}] = r // a later request with the same id of a client takes its place
	return r, true, nil
}

// Find returns the record of a request of an owner, or nil. The caller is a client of the record and calls Leave once.
func (g *Registry) Find(owner state.Owner, id string) *Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.byRequest[ref{owner, id}]
	if r == nil || r.over && !g.now().Before(r.expires) {
		return nil
	}
	r.clients++
	return r
}

// Has reports whether there is a record with an idempotency key of an owner.
func (g *Registry) Has(owner state.Owner, key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byKey[ref{owner, key}] != nil
}

// FindKey returns the record with an idempotency key of an owner, or nil, and the hash of what its request asks for.
// The caller is a client of the record and calls Leave once.
func (g *Registry) FindKey(owner state.Owner, key string) (*Record, state.Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.byKey[ref{owner, key}]
	if r == nil || key == "" {
		return nil, state.Hash{}
	}
	r.clients++
	return r, r.request.Asked
}

// Sweep forgets the records that have expired. It is called from time to time, to free their memory.
func (g *Registry) Sweep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, list := range g.ended {
		for _, r := range list {
			if now.Before(r.expires) {
				break
			}
			g.forget(r)
		}
	}
}

// take claims bytes for an owner. Records that have ended make room: those of the owner if its share is used up, and
// else those of the owner that has most. g.mu must be held.
func (g *Registry) take(owner state.Owner, n int64) error {
	for {
		refused := g.pool.Refusal(string(owner), n)
		if refused == nil {
			return g.pool.Take(string(owner), n)
		}
		from := owner
		if !refused.Share {
			from = state.Owner(g.pool.Largest())
		}
		oldest := g.ended[from]
		if len(oldest) == 0 {
			g.pool.CountRefusal(refused)
			return refused
		}
		g.forget(oldest[0])
	}
}

// release frees the key of r, so that the next request with this key makes a reply of its own. g.mu must be held.
func (g *Registry) release(r *Record) {
	if at := (ref{r.request.Owner, r.request.Key}); g.byKey[at] == r {
		delete(g.byKey, at)
	}
}

// forget removes r, which must be the record of its owner that ended first, and frees its bytes. Clients that read it
// can read on. g.mu must be held.
func (g *Registry) forget(r *Record) {
	owner := r.request.Owner
	g.release(r)
	if at := (ref{owner, r.request.ID}); g.byRequest[at] == r {
		delete(g.byRequest, at)
	}
	g.ended[owner][0] = nil
	if g.ended[owner] = g.ended[owner][1:]; len(g.ended[owner]) == 0 {
		delete(g.ended, owner)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.pool.Give(string(owner), r.held)
	r.held = 0
}
