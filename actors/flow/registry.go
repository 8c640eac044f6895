package flow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/state/share"
)

// The number of ended requests that are kept. Failed requests have places of their own, because a busy gateway would
// lose them within moments. Of both, an owner with many requests pushes out its own.
const (
	keepEnded  = 1024
	keepFailed = 512
)

// shardCount reduces contention of requests that begin and end at the same time.
const shardCount = 16

// Registry has the requests of a gateway. It is safe for concurrent use. A nil Registry keeps nothing.
type Registry struct {
	clock  func() time.Time
	shards [shardCount]shard
	next   atomic.Uint64
	ended  *share.Latest[*Request]
	failed *share.Latest[*Request]
	spans  Spans
	guard  atomic.Pointer[guard]

	recorder atomic.Pointer[recorder]

	refusals refusals
	leftOut  atomic.Int64

	providers, models meters // see Hour and ModelHour

	// Totals of the ended requests. Readers add the requests in flight.
	count    atomic.Int64
	failures atomic.Int64
	output   atomic.Int64
	charged  atomic.Int64 // also of requests in flight
}

// shard has a part of the requests in flight.
type shard struct {
	mu  sync.Mutex
	all []*Request
	_   [32]byte // keeps shards that are used at the same time on different cache lines
}

// New returns a Registry.
func New(clock func() time.Time) *Registry {
	r := &Registry{
		clock:  clock,
		ended:  share.NewLatest[*Request](keepEnded),
		failed: share.NewLatest[*Request](keepFailed),
	}
	r.spans.open = make(map[traceID]*trace)
	return r
}

func (r *Registry) now() time.Time { return r.clock() }

// guard holds the argument of Guard.
type guard struct {
	generation func() uint64
	stale      func()
}

// Guard makes the Registry call stale for each request whose key was checked in an earlier generation of the keys,
// because the key may have become unusable before the request was in flight. Video jobs are not guarded.
func (r *Registry) Guard(generation func() uint64, stale func()) {
	if r != nil {
		r.guard.Store(&guard{generation, stale})
	}
}

// recorder holds the arguments of SetRecorder.
type recorder struct {
	record func(*Request)
	keeps  func() bool
}

// SetRecorder makes the Registry pass each request that has ended, with its cost, to record. It is called on the
// goroutine of the request, so it must not wait. keeps reports whether record keeps anything at present; while it does
// not, refused requests are neither counted nor passed.
func (r *Registry) SetRecorder(record func(*Request), keeps func() bool) {
	r.recorder.Store(&recorder{record, keeps})
}

// Spans returns the span processor that collects the spans of requests.
func (r *Registry) Spans() *Spans { return &r.spans }

// Begin adds a request to those in flight. cancel ends the request, and its cause becomes the client's error. The
// caller calls End when the request is over.
func (r *Registry) Begin(ctx context.Context, about About, cancel context.CancelCauseFunc) *Request {
	if r == nil {
		return nil
	}
	about.Model = shown(about.Model)
	number := r.next.Add(1)
	req := &Request{
		About:    about,
		number:   number,
		began:    cmp.Or(about.Since, r.now()),
		registry: r,
		trace:    r.spans.claim(ctx),
		cancel:   cancel,
		shard:    &r.shards[number%shardCount],
	}
	req.mark(Starting, req.began)
	s := req.shard
	s.mu.Lock()
	req.index = len(s.all)
	s.all = append(s.all, req)
	s.mu.Unlock()
	if g := r.guard.Load(); g != nil && !about.Job && about.KeyGeneration != g.generation() {
		g.stale()
	}
	return req
}

// end moves a request from those in flight to the ended ones.
func (r *Registry) end(req *Request) {
	req.shard.remove(req)
	r.count.Add(1)
	r.output.Add(req.output.Load())
	places := r.ended
	if status := req.result.Status; status != 0 {
		places = r.failed
		if status != dialogue.StatusClientClosed {
			r.failures.Add(1)
		}
	}
	if gone, full := places.Add(req.Owner, req); full {
		r.spans.forget(gone.trace)
	}
}

// remove takes a request out of the list. The last one takes its place, so that the cost does not
// depend on how many there are.
func (s *shard) remove(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.all) - 1
	moved := s.all[last]
	s.all[req.index], moved.index = moved, req.index
	s.all[last] = nil
	s.all = s.all[:last]
	if cap(s.all) > 256 && last < cap(s.all)/4 {
		s.all = slices.Clone(s.all) // returns the memory of a burst
	}
	req.cancel = nil
}

// InFlight returns the number of requests in flight.
func (r *Registry) InFlight() (n int) {
	if r == nil {
		return 0
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += len(s.all)
		s.mu.Unlock()
	}
	return n
}

// Active appends the requests in flight to buffer, in no order.
func (r *Registry) Active(buffer []*Request) []*Request {
	if r == nil {
		return buffer
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		buffer = append(buffer, s.all...)
		s.mu.Unlock()
	}
	return buffer
}

// Recent returns the requests that ended last, the latest first.
func (r *Registry) Recent() []*Request {
	if r == nil {
		return nil
	}
	all := r.failed.All(r.ended.All(nil))
	slices.SortStableFunc(all, func(a, b *Request) int { return b.over().Compare(a.over()) })
	return all
}

// Ended returns the kept ended requests with an id, the latest first. Clients choose ids, so several requests may have
// the same one.
func (r *Registry) Ended(id string) []*Request {
	return slices.DeleteFunc(r.Recent(), func(q *Request) bool { return q.ID != id })
}

// over returns when an ended request ended.
func (r *Request) over() time.Time { return r.began.Add(r.result.Took) }

// Find returns the request with an id, in flight or ended, or nil.
func (r *Registry) Find(id string) *Request {
	if r == nil || id == "" {
		return nil
	}
	for _, list := range [][]*Request{r.Active(nil), r.Recent()} {
		for _, req := range list {
			if req.ID == id {
				return req
			}
		}
	}
	return nil
}

// Totals counts the requests that have ended since the start. Those whose client left did not fail.
type Totals struct {
	Ended, Failed int64
	Output        int64 // tokens
	Charged       int64 // micro-dollars, those of requests that have begun included
}

// Totals returns the counters, which are read one after the other.
func (r *Registry) Totals() Totals {
	if r == nil {
		return Totals{}
	}
	return Totals{Ended: r.count.Load(), Failed: r.failures.Load(), Output: r.output.Load(),
		Charged: r.charged.Load()}
}

// Reasons for which a request cannot be cancelled.
var (
	ErrUnknown = errors.New("there is no such request")
	ErrOver    = errors.New("the request has ended")
)

// Cancelled is the error of a client whose request an operator has ended. Clients should not repeat the request by
// themselves, because the operator did not want it.
var Cancelled = dialogue.CancelledByOperator()

// Cancel ends a request. Its client gets Cancelled in the envelope of its shape. The error is ErrUnknown if no request
// of this id is under way, and ErrOver if it ended while it was being cancelled, so that its client has the reply.
func (r *Registry) Cancel(id string) error {
	req := r.Find(id)
	if req == nil {
		return ErrUnknown
	}
	if !req.Cancel(Cancelled) {
		return ErrOver
	}
	return nil
}

// Cancel ends a request with a cause that its client gets in the envelope of its shape. It returns false if the request
// has ended.
func (r *Request) Cancel(cause error) bool {
	r.shard.mu.Lock()
	cancel := r.cancel
	r.shard.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel(cause)
	return true
}
