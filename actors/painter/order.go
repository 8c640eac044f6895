package painter

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// Order is one request, checked and routed, as its door hands it over. It is not
// changed after Begin.
type Order struct {
	ID      string // request id
	Request *picture.Request
	Header  http.Header // the client's, for the sandbox
	// Plan is what to try, in order; never empty.
	Plan []catalog.Candidate
	// Key is the id of the key that the request came with. Owner is its user, or the key if it
	// has no user: throttles let owners take turns.
	Key, Owner string
	// Era is that of the keys in which the key was found good, see flow.Registry.Guard.
	Era    uint64
	Class  int
	Tokens int // the estimate the throttles reserve
	// Meter, if set, holds and settles the request's money.
	Meter Meter
	// Keep makes a picture available under an address of the gateway's own. It is
	// called unless Request.Inline, and must be durable when it returns.
	Keep func(ctx context.Context, mediaType string, content io.Reader) (address string, err error)
}

// Meter keeps the money of one request. Its calls come one after the other, but
// from several goroutines.
type Meter interface {
	// Begin is told of the candidate before it is asked, at every attempt. An
	// error ends the request.
	Begin(ctx context.Context, c *catalog.Candidate) *dialogue.Error
	// End settles. For a good reply it is called before the client sees it, and
	// an error is told instead. It is called when all is over for any other
	// request, and for one whose End failed.
	End(ctx context.Context, o *Outcome) *dialogue.Error
}

// Meta is how the request was served.
type Meta struct {
	Provider string
	Model    string // the upstream's name
	Losses   string // X-Stagedoor-Losses
	Queued   time.Duration
	Attempts int
}

// Outcome is how a request ended: Reply or Err.
type Outcome struct {
	Meta
	Reply *picture.Reply
	Err   *dialogue.Error
	// Delivered is how many images there are to be paid for.
	Delivered int
	Usage     *picture.Usage
	// Accepted: the provider answered a call of the last attempt with a 2xx status.
	Accepted bool
	// Made is how many images the provider delivered, also if the client has left since.
	Made int
	// Partials are the partial images that were passed on, Begun the images that had one,
	// and Whole those of them whose last partial image is the picture.
	Partials, Begun, Whole int
	// Committed: the client has seen a partial image.
	Committed bool
}

// window is how many partial images may wait for the door. Each is megabytes.
const window = 2

// Reply is a request under way.
type Reply struct {
	partials chan *picture.Partial
	done     chan struct{}
	cancel   context.CancelCauseFunc
	meta     atomic.Pointer[Meta]
	flow     *flow.Request // nil: nobody can look

	once    sync.Once
	outcome Outcome
}

func newReply(cancel context.CancelCauseFunc) *Reply {
	return &Reply{partials: make(chan *picture.Partial, window), done: make(chan struct{}), cancel: cancel}
}

// Partials brings the images on the way. It is never closed: Done ends it. Some
// may be left in it then.
func (r *Reply) Partials() <-chan *picture.Partial { return r.partials }

// Done is closed when the request is over.
func (r *Reply) Done() <-chan struct{} { return r.done }

// Meta is how the request is served, once there is a partial image.
func (r *Reply) Meta() *Meta { return r.meta.Load() }

// Outcome says how the request went. It may be called once Done is closed.
func (r *Reply) Outcome() *Outcome { return &r.outcome }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.cancel(upstream.ErrClient) }

// finish ends the request, the first time it is called.
func (r *Reply) finish(o Outcome) {
	r.once.Do(func() {
		r.outcome = o
		r.flow.End(resultOf(&o))
		close(r.done)
	})
	r.cancel(context.Canceled)
}

// over reports whether the request has ended.
func (r *Reply) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// send hands a partial image to the door and waits while its window is full.
func (r *Reply) send(ctx context.Context, m Meta, p *picture.Partial) error {
	if r.meta.CompareAndSwap(nil, &m) {
		r.flow.Enter(flow.Replying)
	}
	select {
	case r.partials <- p:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
