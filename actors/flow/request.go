package flow

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// About describes a request when it begins.
type About struct {
	ID    string // the request's id
	Shape string // the client's
	// Model is the client's name of the model. Begin copies as much as can be shown, because the name may be part
	// of a body that is reused before the request is forgotten.
	Model string
	Key   string // the id of the key of the request
	Owner string // the user of the key, or the key if it has none
	App   string // from AppOf
	// KeyGeneration is that of the keys when this key was checked; see Registry.Guard.
	KeyGeneration uint64
	Stream        bool
	// Work is set if no client waits, as for a background response.
	Work bool
	// Job is set for a video job, which outlives connections and processes. It reports progress in per cent, and
	// its end is stored elsewhere.
	Job bool
	// Since is the beginning of a request that began earlier. Zero means now.
	Since time.Time
}

// maxMarks bounds the marks of a request that is retried again and again. Of later phases only the last one is kept.
const maxMarks = 16

// Request is one request. The code that serves it reports from one goroutine at a time, and any goroutine may read. The
// methods of a nil Request do nothing.
type Request struct {
	About
	number   uint64
	began    time.Time
	registry *Registry
	trace    *trace // nil if no spans are recorded
	shard    *shard
	index    int                     // in the shard, under its lock
	cancel   context.CancelCauseFunc // nil after the end; guarded by the shard's lock

	candidate atomic.Pointer[catalog.Candidate]
	attempts  atomic.Int32 // the number of the attempt that is shown
	input     atomic.Int64
	output    atomic.Int64
	progress  atomic.Int64 // per cent of a job
	first     atomic.Int64 // nanoseconds until the first chunk, or 0
	marked    atomic.Int32
	marks     [maxMarks]atomic.Uint64
	charged   atomic.Int64 // micro-dollars
	begun     int          // attempts; with tries of the code that serves it, and complete before the mark of Ended
	tries     []Try

	result Result // written before the mark of Ended, so that a reader who sees the mark may read it
}

// Result describes how a request ended.
type Result struct {
	Took   time.Duration
	Queued time.Duration
	Usage  dialogue.Usage
	Images int // delivered
	// ServiceTier is the service tier that the reply names, or "".
	ServiceTier string
	Reason      string
	// Untouched is set if the reply passed as its upstream wrote it.
	Untouched        bool
	Degraded, Losses string
	// Status and Code describe the client's error. They are 0 and "" without one.
	Status int
	Code   string
	// Text is the message of that error, or "" if it has words of an upstream, which may quote the prompt.
	Text string
}

// Fail sets the status, the code and the text of the client's error, if there is one.
func (r *Result) Fail(err *dialogue.Error) {
	if err == nil {
		return
	}
	r.Status, r.Code, r.Reason, r.Text = err.Status, "error", "", ""
	if err.Code != nil {
		r.Code = fmt.Sprint(err.Code)
	}
	if !err.Foreign {
		r.Text = err.Message
	}
}

// Try is one attempt of a request.
type Try struct {
	Provider, Model string
	// Sent is the time from the beginning of the request to the permit of the attempt, or 0 if it got none.
	Sent time.Duration
	// Status and Failure say why the attempt failed. They are 0 and "" for one that did not.
	Status  int
	Failure string
}

// Attempt reports that the request tries a candidate. Attempts are numbered from 1.
func (r *Request) Attempt(c *catalog.Candidate) {
	r.Hedge(c)
	if r != nil {
		r.Choose(c, r.begun)
	}
}

// Choose reports which one of the attempts under way delivers the reply.
func (r *Request) Choose(c *catalog.Candidate, number int) {
	if r != nil {
		r.candidate.Store(c)
		r.attempts.Store(int32(number))
	}
}

// Hedge reports that the request tries a further candidate while an attempt is under way, which is still the one that
// is shown.
func (r *Request) Hedge(c *catalog.Candidate) {
	if r == nil {
		return
	}
	r.begun++
	var try Try
	if c != nil {
		try = Try{Provider: c.Provider.Name, Model: c.Model}
	}
	if len(r.tries) == maxMarks { // as of the marks, the last one counts
		r.tries[maxMarks-1] = try
		return
	}
	r.tries = append(r.tries, try)
}

// Sent reports that an attempt got the permit of its provider's limiter.
func (r *Request) Sent(number int, now time.Time) {
	if r != nil && (number < maxMarks || number == r.begun) {
		r.tries[min(number, maxMarks)-1].Sent = max(now.Sub(r.began), 1)
	}
}

// Failed reports why an attempt failed.
func (r *Request) Failed(number, status int, failure string) {
	if r != nil && (number < maxMarks || number == r.begun) {
		try := &r.tries[min(number, maxMarks)-1]
		try.Status, try.Failure = status, failure
	}
}

// Tries returns the attempts of a request that has ended, at most sixteen: the first ones and the last one.
func (r *Request) Tries() []Try { return r.tries }

// Record adds the attempts to the figures of their providers (Registry.Hour) and hands the request to the function of
// Registry.SetRecorder. It may be called once, after End and, if money is held for the request, after the settlement.
func (r *Request) Record() {
	if r == nil {
		return
	}
	r.registry.measure(r)
	if to := r.registry.recorder.Load(); to != nil {
		to.record(r)
	}
}

// charging is the key of a context in which the cost of a request is settled.
type charging struct{}

// Charging returns a context for the settlement of the request. AddCharge finds the request there.
func (r *Request) Charging(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, charging{}, r)
}

// AddCharge adds an amount in micro-dollars to the cost of the request that is settled in ctx, if there is one.
func AddCharge(ctx context.Context, amount int64) {
	if r, ok := ctx.Value(charging{}).(*Request); ok {
		r.charged.Add(amount)
		r.registry.charged.Add(amount)
	}
}

// Charged returns what the request was charged, in micro-dollars. It is complete when Record is called.
func (r *Request) Charged() int64 { return r.charged.Load() }

// Enter reports that the request entered a phase.
func (r *Request) Enter(p Phase) {
	if r == nil {
		return
	}
	r.mark(p, r.registry.now())
}

// EnterAt reports what Enter does, for callers that know the time.
func (r *Request) EnterAt(p Phase, now time.Time) {
	if r == nil {
		return
	}
	r.mark(p, now)
}

// mark adds a mark. The end is the last one: a late report of the code that served the request is ignored.
func (r *Request) mark(p Phase, now time.Time) {
	n := r.marked.Load()
	if n > 0 && r.Latest().Phase == Ended {
		return
	}
	r.marks[min(n, maxMarks-1)].Store(Mark{p, int(r.attempts.Load()), now.Sub(r.began)}.pack())
	r.marked.Store(min(n+1, maxMarks))
}

// Progress reports the number of output tokens so far. The first call marks the beginning of the reply.
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

// Advance reports the progress of a job in per cent.
func (r *Request) Advance(percent int) {
	if r != nil {
		r.progress.Store(int64(percent))
	}
}

// Leave removes the request from those in flight without an end, because another actor continues it.
func (r *Request) Leave() {
	if r != nil {
		r.shard.remove(r)
	}
}

// End reports that the request is over. It may be called once.
func (r *Request) End(result Result) {
	if r == nil {
		return
	}
	now := r.registry.now()
	result.Took = now.Sub(r.began)
	r.input.Store(max(result.Usage.InputTotal, 0))
	if reported := result.Usage.OutputTotal; reported >= 0 {
		r.output.Store(reported)
	}
	r.result = result
	r.mark(Ended, now)
	r.registry.end(r)
}

// View is a request at one instant.
type View struct {
	About
	Began    time.Time
	Phase    Phase
	InPhase  time.Duration // time in the current phase
	Age      time.Duration // time since the beginning, or until the end
	Provider string
	Upstream string // the upstream's name for the model
	Attempts int
	Input    int64
	Output   int64
	Progress int           // per cent of a job
	First    time.Duration // until the first chunk, or 0
	Trace    string        // id of its trace, or "" if none is recorded
	// Result is nil until the request has ended.
	Result *Result
}

// Rate returns the output tokens per second, for a stream since its first chunk.
func (v *View) Rate() float64 { return rate(v.Output, v.Age, v.First, v.Stream) }

// Rate returns the rate at now of a request that has not ended.
func (r *Request) Rate(now time.Time) float64 {
	return rate(r.output.Load(), now.Sub(r.began), time.Duration(r.first.Load()), r.Stream)
}

// rate returns the tokens per second of a reply. For a stream, the time before the first token does
// not count. It is 0 if there is too little to divide.
func rate(output int64, age, first time.Duration, stream bool) float64 {
	if stream {
		age -= first
	}
	if first == 0 || age < time.Millisecond {
		return 0
	}
	return float64(output) / age.Seconds()
}

// Number returns a number that no other request of the registry has. Clients choose ids, so two requests may have the
// same one.
func (r *Request) Number() uint64 { return r.number }

// Phase returns the current phase.
func (r *Request) Phase() Phase { return r.Latest().Phase }

// Latest returns the last mark of the request. A reader who keeps it sees at no cost whether the phase has changed.
func (r *Request) Latest() Mark {
	n := r.marked.Load()
	if n == 0 {
		return Mark{}
	}
	return unpack(r.marks[n-1].Load())
}

// First returns how long after its beginning the request had its first chunk, or 0 if it has none.
func (r *Request) First() time.Duration { return time.Duration(r.first.Load()) }

// Ended returns when the request ended and whether it failed. It is called after the mark of Ended was seen.
func (r *Request) Ended() (at time.Time, failed bool) { return r.over(), r.result.Status != 0 }

// Output returns the number of output tokens so far.
func (r *Request) Output() int64 { return r.output.Load() }

// Provider returns the name of the last provider that was tried, or "".
func (r *Request) Provider() string {
	if c := r.candidate.Load(); c != nil {
		return c.Provider.Name
	}
	return ""
}

// Began returns when the request began.
func (r *Request) Began() time.Time { return r.began }

// View returns all that is known of the request.
func (r *Request) View(now time.Time) View {
	v := View{
		About:    r.About,
		Began:    r.began,
		Age:      max(now.Sub(r.began), 0),
		Attempts: int(r.attempts.Load()),
		Trace:    r.trace.id(),
	}
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

// Marks returns the phases that the request went through.
func (r *Request) Marks() []Mark {
	n := r.marked.Load()
	all := make([]Mark, n)
	for i := range all {
		all[i] = unpack(r.marks[i].Load())
	}
	return all
}

// Spans returns the recorded spans of the request that have ended, in the order of their ends.
func (r *Request) Spans() []Span { return r.trace.view() }
