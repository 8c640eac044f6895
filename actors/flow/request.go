package flow

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// About is what is known of a request when it begins.
type About struct {
	ID    string // the request's id
	Shape string // of the client
	// Model is as the client calls it. As much as can be shown of it is copied: it
	// may lie in a body that goes back to its pool before the request is forgotten.
	Model string
	Key   string // the id of the key it was sent with
	Owner string // the user of the key, or the key if it has none
	// Era is that of the keys in which this one was found good, see Registry.Guard.
	Era    uint64
	Stream bool
	// Work says that nobody waits for it: a response in the background.
	Work bool
	// Job says that it outlives connections and processes: a video job. It tells how
	// far it is, and its end is kept elsewhere.
	Job bool
	// Since is when it began, if that was before it was told of; zero: now.
	Since time.Time
}

// maxMarks bounds what a request that is tried again and again keeps: of later
// phases only the last is known.
const maxMarks = 16

// Request is one request. Those who carry it tell what it does, one after the
// other; anybody may look. The methods of a nil Request do nothing.
type Request struct {
	About
	began    time.Time
	registry *Registry
	trace    *trace // nil: no spans are recorded
	shard    *shard
	index    int                     // in the shard, under its lock
	cancel   context.CancelCauseFunc // nil once it has ended, under the shard's lock

	candidate atomic.Pointer[catalog.Candidate]
	attempts  atomic.Int32
	input     atomic.Int64
	output    atomic.Int64
	progress  atomic.Int64 // per cent of a job
	first     atomic.Int64 // nanoseconds to the first piece of answer; 0: none yet
	marked    atomic.Int32
	marks     [maxMarks]atomic.Uint64

	result Result // before the mark of Ended, so that whoever sees that may read it
}

// Result is how a request ended.
type Result struct {
	Took   time.Duration
	Queued time.Duration
	Usage  dialogue.Usage
	Images int // delivered
	Reason string
	// Untouched: the reply passed as its upstream wrote it.
	Untouched        bool
	Degraded, Losses string
	// Status and Code are of the failure the client was told of; 0: there was none.
	Status int
	Code   string
}

// Fail puts the failure that the client was told of into a result, if there was one.
func (r *Result) Fail(err *dialogue.Error) {
	if err == nil {
		return
	}
	r.Status, r.Code, r.Reason = err.Status, "error", ""
	if err.Code != nil {
		r.Code = fmt.Sprint(err.Code)
	}
}

// Attempt tells that the request tries a candidate.
func (r *Request) Attempt(c *catalog.Candidate) {
	if r == nil {
		return
	}
	r.candidate.Store(c)
	r.attempts.Add(1)
}

// Enter tells that the request came into a phase.
func (r *Request) Enter(p Phase) {
	if r == nil {
		return
	}
	r.mark(p, r.registry.now())
}

// EnterAt is Enter for whoever knows what time it is.
func (r *Request) EnterAt(p Phase, now time.Time) {
	if r == nil {
		return
	}
	r.mark(p, now)
}

func (r *Request) mark(p Phase, now time.Time) {
	n := r.marked.Load()
	r.marks[min(n, maxMarks-1)].Store(Mark{p, int(r.attempts.Load()), now.Sub(r.began)}.pack())
	r.marked.Store(min(n+1, maxMarks))
}

// Progress tells how many tokens of output there are by now. The first time is when
// the answer begins.
func (r *Request) Progress(output int64) {
	if r == nil {
		return
	}
	if r.first.Load() == 0 && output > 0 {
		now := r.registry.now()
		r.first.Store(max(int64(now.Sub(r.began)), 1))
		r.mark(Replying, now)
	}
	r.output.Store(output)
}

// Advance tells how much of a job is made, in per cent.
func (r *Request) Advance(percent int) {
	if r != nil {
		r.progress.Store(int64(percent))
	}
}

// Leave takes the request out of those under way without a word of how it ended:
// somebody else goes on with it.
func (r *Request) Leave() {
	if r != nil {
		r.shard.remove(r)
	}
}

// End tells that the request is over. It may be called once.
func (r *Request) End(result Result) {
	if r == nil {
		return
	}
	now := r.registry.now()
	result.Took = now.Sub(r.began)
	r.input.Store(max(result.Usage.InputTotal, 0))
	if told := result.Usage.OutputTotal; told >= 0 {
		r.output.Store(told)
	}
	r.result = result
	r.mark(Ended, now)
	r.registry.end(r)
}

// View is a request as it is at one instant.
type View struct {
	About
	Began    time.Time
	Phase    Phase
	InPhase  time.Duration // how long it has been in it
	Age      time.Duration // or how long it took
	Provider string
	Upstream string // the upstream's name of the model
	Attempts int
	Input    int64
	Output   int64
	Progress int           // per cent of a job
	First    time.Duration // to the first piece of answer; 0: none yet
	Trace    string        // id of its trace; "": none is recorded
	// Result is of a request that has ended; nil: it has not.
	Result *Result
}

// Rate is output tokens per second: of a stream, since its first piece of answer.
func (v *View) Rate() float64 { return rate(v.Output, v.Age, v.First, v.Stream) }

// Rate is that of a View at now, of a request that has not ended.
func (r *Request) Rate(now time.Time) float64 {
	return rate(r.output.Load(), now.Sub(r.began), time.Duration(r.first.Load()), r.Stream)
}

func rate(output int64, age, first time.Duration, stream bool) float64 {
	if stream {
		age -= first
	}
	if first == 0 || age < time.Millisecond {
		return 0
	}
	return float64(output) / age.Seconds()
}

// Phase is what the request is doing.
func (r *Request) Phase() Phase {
	n := r.marked.Load()
	if n == 0 {
		return Starting
	}
	return unpack(r.marks[n-1].Load()).Phase
}

// Output is how many tokens of output there are.
func (r *Request) Output() int64 { return r.output.Load() }

// Provider is who is asked, or was asked last; "": nobody yet.
func (r *Request) Provider() string {
	if c := r.candidate.Load(); c != nil {
		return c.Provider.Name
	}
	return ""
}

// Began is when the request came.
func (r *Request) Began() time.Time { return r.began }

// View looks at all of it.
func (r *Request) View(now time.Time) View {
	v := View{About: r.About, Began: r.began, Age: max(now.Sub(r.began), 0), Attempts: int(r.attempts.Load()), Trace: r.trace.id()}
	if n := r.marked.Load(); n > 0 {
		m := unpack(r.marks[n-1].Load())
		v.Phase, v.InPhase = m.Phase, max(v.Age-m.After, 0)
	}
	if v.Phase == Ended {
		v.Result, v.Age, v.InPhase = &r.result, r.result.Took, 0
	}
	if c := r.candidate.Load(); c != nil {
		v.Provider, v.Upstream = c.Provider.Name, c.Model
	}
	v.Input, v.Output, v.First = r.input.Load(), r.output.Load(), time.Duration(r.first.Load())
	v.Progress = int(r.progress.Load())
	return v
}

// Marks are the phases the request went through.
func (r *Request) Marks() []Mark {
	n := r.marked.Load()
	all := make([]Mark, n)
	for i := range all {
		all[i] = unpack(r.marks[i].Load())
	}
	return all
}

// Spans are those of the request that have ended and were recorded, in the order of
// their ends.
func (r *Request) Spans() []Span { return r.trace.view() }
