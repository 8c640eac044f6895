package flow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/state/share"
)

// How many requests that ended are remembered. Those that failed have places of
// their own: a busy gateway would forget them within moments. Of both, an owner with many
// requests pushes out its own.
const (
	keepEnded  = 1024
	keepFailed = 512
)

// shardCount spreads those who begin and end at the same time.
const shardCount = 16

// Registry is the requests of a gateway. Any goroutine may use it; a nil one
// remembers nothing.
type Registry struct {
	clock  func() time.Time
	shards [shardCount]shard
	next   atomic.Uint64
	ended  *share.Latest[*Request]
	failed *share.Latest[*Request]
	spans  Spans
	guard  atomic.Pointer[guard]

	// Totals of what has ended. What is under way is added by who looks.
	count    atomic.Int64
	failures atomic.Int64
	output   atomic.Int64
}

// shard is some of the requests under way.
type shard struct {
	mu  sync.Mutex
	all []*Request
	_   [32]byte // shards that are used at once share no cache line
}

// New makes a registry.
func New(clock func() time.Time) *Registry {
	r := &Registry{clock: clock, ended: share.NewLatest[*Request](keepEnded), failed: share.NewLatest[*Request](keepFailed)}
	r.spans.open = make(map[traceID]*trace)
	return r
}

func (r *Registry) now() time.Time { return r.clock() }

// guard holds the argument of Guard.
type guard struct {
	era   func() uint64
	stale func()
}

// Guard has stale called for each request that begins with a key that was found good
// in an earlier era: the key may have become unusable before the request was among
// those under way. Video jobs are not guarded.
func (r *Registry) Guard(era func() uint64, stale func()) {
	if r != nil {
		r.guard.Store(&guard{era, stale})
	}
}

// Spans takes the spans of requests that are recorded: a processor for whoever makes
// them.
func (r *Registry) Spans() *Spans { return &r.spans }

// Begin counts a request in. cancel ends it; its cause is what the client is told.
// Whoever began it calls End.
func (r *Registry) Begin(ctx context.Context, about About, cancel context.CancelCauseFunc) *Request {
	if r == nil {
		return nil
	}
	about.Model = strings.Clone(strings.ToValidUTF8(about.Model[:min(len(about.Model), maxText)], "\ufffd"))
	req := &Request{About: about, began: cmp.Or(about.Since, r.now()), registry: r, trace: r.spans.claim(ctx), cancel: cancel,
		shard: &r.shards[r.next.Add(1)%shardCount]}
	req.mark(Starting, req.began)
	s := req.shard
	s.mu.Lock()
	req.index = len(s.all)
	s.all = append(s.all, req)
	s.mu.Unlock()
	if g := r.guard.Load(); g != nil && !about.Job && about.Era != g.era() {
		g.stale()
	}
	return req
}

// end takes a request out of those under way and remembers it.
func (r *Registry) end(req *Request) {
	req.shard.remove(req)
	r.count.Add(1)
	r.output.Add(req.output.Load())
	places := r.ended
	if req.result.Status != 0 {
		r.failures.Add(1)
		places = r.failed
	}
	if gone, full := places.Add(req.Owner, req); full {
		r.spans.forget(gone.trace)
	}
}

func (s *shard) remove(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.all) - 1
	moved := s.all[last]
	s.all[req.index], moved.index = moved, req.index
	s.all[last] = nil
	s.all = s.all[:last]
	if cap(s.all) > 256 && last < cap(s.all)/4 {
		s.all = slices.Clone(s.all) // one burst is not kept for ever
	}
	req.cancel = nil
}

// Active appends the requests under way to buffer, in no order.
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

// Recent are the requests that ended lately, the last one first.
func (r *Registry) Recent() []*Request {
	if r == nil {
		return nil
	}
	all := r.failed.All(r.ended.All(nil))
	slices.SortStableFunc(all, func(a, b *Request) int { return b.over().Compare(a.over()) })
	return all
}

// Ended are the remembered requests of an id that clients may have chosen more than
// once, the last one first.
func (r *Registry) Ended(id string) []*Request {
	return slices.DeleteFunc(r.Recent(), func(q *Request) bool { return q.ID != id })
}

// over is when an ended request was over.
func (r *Request) over() time.Time { return r.began.Add(r.result.Took) }

// Find is the request of an id, under way or remembered; nil: there is none.
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

// Totals count what has ended since the start.
type Totals struct {
	Ended, Failed int64
	Output        int64 // tokens
}

// Totals reads the counters, one by one.
func (r *Registry) Totals() Totals {
	if r == nil {
		return Totals{}
	}
	return Totals{Ended: r.count.Load(), Failed: r.failures.Load(), Output: r.output.Load()}
}

// Why a request cannot be cancelled.
var (
	ErrUnknown = errors.New("there is no such request")
	ErrOver    = errors.New("the request has ended")
)

// Cancelled is what the client of a request is told that an operator has ended. It
// should not be sent again by itself: somebody did not want it.
var Cancelled = dialogue.CancelledByOperator()

// Cancel ends a request. Its client is told so in its shape's words.
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

// Cancel ends a request for a reason that its client is told in its shape's words. It
// returns false for one that has ended.
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
