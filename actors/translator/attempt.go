package translator

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// attempt is one try at one target. It runs on a goroutine of its own.
type attempt struct {
	svc       *Service
	order     *Order
	conduit   *conduit
	candidate catalog.Candidate
	provider  *Provider
	noSchema  bool
	alone     bool // no candidate is left after this one
	tight     bool // the reply may have to end early: see Meter
	number    int  // of this request, from 1

	entered  time.Time // when the permit was there; zero: the translation has been told of
	deadline time.Time // of the whole request; zero: the call's own clocks are enough
	// unbounded is the request's context without the deadline. An answer that is whole is
	// settled and delivered under it, because only its usage was still waited for.
	unbounded context.Context

	ctx      context.Context // of the request, with its deadline
	shape    shapes.Shape    // what the upstream is spoken to in
	report   dialogue.Report
	meta     Meta
	permit   *throttle.Permit
	reason   dialogue.Reason
	counted  counter
	metaSent bool
	left     atomic.Pointer[upstream.Remaining] // calls of a fan-out share it
	accepted atomic.Int32                       // calls; see Outcome.Accepted
	calls    int                                // see Outcome.Calls
	// failStream writes the terminal error event of the stream under way; nil:
	// no stream is. It is kept for the case that the pump panics.
	failStream func(dst []byte, err *dialogue.Error) []byte
	told       bool // the stream's terminal event is on its way
	memory     memory.Claim
	// last, if set, ends a stream that failed. Its client has, or has coming, a
	// piece of the answer.
	last *Buffer
	// opening, if set, is last for a client that has nothing yet: see opening.
	opening *Buffer
}

// opening is a stream that began in good order and then reported an error before
// any piece of answer. Nothing of it was sent, so another attempt can still be
// made. If none is, the client gets the stream as its upstream wrote it, error
// event included, and not a status.
type opening struct {
	meta *Meta
	data *Buffer
}

// lastWordsWait is how long a terminal error event may wait for a slow client
// once the request itself has been cancelled.
const lastWordsWait = 5 * time.Second

// run performs the attempt. A nil failure means that the client has, or will
// have, the whole reply.
func (a *attempt) run(ctx context.Context) *attemptEnded {
	a.meta = Meta{Provider: a.candidate.Provider.Name, Attempts: a.number}
	a.memory = memory.NewClaim(a.svc.env.Memory, a.order.Owner)
	a.unbounded = ctx
	if !a.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, a.deadline, upstream.ErrTotal)
		defer cancel()
	}
	a.ctx = ctx
	a.conduit.outcome.Usage, a.conduit.outcome.Reason, a.conduit.outcome.Counted = dialogue.NoUsage, 0, 0 // an earlier attempt's are not this one's
	f := a.permitted(ctx)
	a.memory.End()
	a.noteCalls()
	if a.last != nil {
		a.lastWords(f)
	}
	a.conduit.outcome.Meta = a.meta
	if f == nil {
		a.conduit.complete = true
		return answered
	}
	ended := &attemptEnded{failure: f}
	if a.opening != nil {
		ended.opening = &opening{a.takeMeta(), a.opening}
	}
	return ended
}

// permitted makes the call under a permit.
func (a *attempt) permitted(ctx context.Context) *upstream.Failure {
	if a.provider == nil {
		return &upstream.Failure{Class: upstream.NotSent, Err: &dialogue.Error{Status: 503, Type: dialogue.TypeAPI,
			Code: "no_route", Message: "no provider is available for this model", RetryAfter: time.Second}}
	}
	if f := a.weigh(ctx); f != nil {
		return f
	}
	asked := time.Now()
	a.conduit.flow.EnterAt(flow.Queued, asked)
	permit, err := a.acquire(ctx, asked)
	if err != nil {
		return refusedByThrottle(ctx, err)
	}
	a.permit = permit
	a.meta.Queued = permit.Waited()
	a.entered = asked.Add(a.meta.Queued)
	a.conduit.flow.EnterAt(flow.Waiting, a.entered)
	f := a.call(ctx)
	a.translation(ctx, f)
	permit.Release(a.outcome(f))
	return f
}

// ask is what the throttle is told of the request.
func (a *attempt) ask() throttle.Ask {
	return throttle.Ask{ID: a.order.ID, Owner: a.order.Owner, Model: a.candidate.Model, Class: a.order.Class, Tokens: a.order.Tokens, Deadline: a.queueDeadline(), Last: a.alone}
}

func (a *attempt) queueDeadline() time.Time {
	if d := a.provider.Spec.Limits.QueueTimeout; d > 0 {
		return a.svc.env.Now().Add(d)
	}
	return time.Time{}
}

// call chooses the lane and follows it.
func (a *attempt) call(ctx context.Context) *upstream.Failure {
	if a.provider.Simulate != nil {
		return a.simulate(ctx)
	}
	inbound := a.order.Inbound
	if a.order.Mode != shapes.Array && a.candidate.Provider.Serves(inbound.Name()) && !a.order.Translate && !a.tight && a.order.PreviousResponseID == "" {
		a.shape = inbound
		a.meta.Untouched = true
		return a.callUntouched(ctx)
	}
	if a.shape = a.svc.shape(a.candidate.Provider.Shape); a.shape == nil {
		return callerFault(dialogue.Invalid("model", "is not a text model: its provider has no dialogue"))
	}
	return a.callTranslated(ctx)
}

func (a *attempt) target() dialogue.Target {
	t := a.candidate.Target(a.shape.Name())
	t.NoSchema = t.NoSchema || a.noSchema
	a.meta.Model = t.Model
	return t
}

func (a *attempt) callUntouched(ctx context.Context) *upstream.Failure {
	u, f := a.openUntouched(ctx)
	if f != nil {
		return f
	}
	failure := panicked
	defer func() {
		u.call.Told(a.conduit.outcome.Usage, a.conduit.outcome.Reason)
		a.ended(u.call, failure)
	}()
	defer u.late.close()
	defer u.reply.Close()
	f = u.run(ctx, u.reply)
	a.judge(u.key, f)
	failure = className(f)
	return f
}

// openUntouched makes the call. It is not inlined: what a call takes would
// otherwise lie on the pump's stack for as long as the stream lasts.
//
//go:noinline
func (a *attempt) openUntouched(ctx context.Context) (*untouched, *upstream.Failure) {
	t := a.target()
	call, err := a.shape.Patch(a.order.Body, a.order.In, a.order.Head, t, &a.report, a.svc.env)
	if err != nil {
		return nil, callerFault(err)
	}
	ctx, seen := a.begin(ctx, call.Stream)
	key := a.takeKey()
	ctx, late := a.outlive(ctx)
	reply, f := a.send(ctx, call, key)
	if f != nil {
		late.close()
		a.ended(seen, className(f))
		return nil, f
	}
	o := shapes.TapOptions{Stream: a.order.Head.Stream, HideUsage: !a.order.Head.IncludeUsage, Choices: a.order.Head.Choices()}
	if t.Model != a.order.Head.Model {
		o.Model = a.order.Head.Model
	}
	u := &untouched{attempt: a, tap: a.shape.NewTap(o, a.svc.env), reply: reply, key: key, call: seen, heard: a.overhearer(seen), late: late}
	if o.Stream {
		a.failStream = u.tap.Fail
	}
	return u, nil
}

func (a *attempt) callTranslated(ctx context.Context) *upstream.Failure {
	req, err := a.decode()
	if err != nil {
		return callerFault(err)
	}
	produce := func(req *dialogue.Request) (producer, error) {
		sent := *req
		if a.order.PreviousResponseID != "" {
			sent.PreviousResponseID = "" // the history is in the body already
		}
		call, err := a.shape.Encode(&sent, a.target(), &a.report, a.svc.env)
		if err != nil {
			return nil, err
		}
		req.Renamed = sent.Renamed
		return a.producer(call, sent.N*max(len(sent.Prompts), 1)), nil
	}
	return a.translate(ctx, req, produce)
}

// simulate lets the embedded sandbox answer.
func (a *attempt) simulate(ctx context.Context) *upstream.Failure {
	req, err := a.decode()
	if err != nil {
		return callerFault(err)
	}
	a.meta.Model = a.order.Head.Model
	return a.translate(ctx, req, func(req *dialogue.Request) (producer, error) { return a.simulated(req), nil })
}

func (a *attempt) translate(ctx context.Context, req *dialogue.Request, produce func(*dialogue.Request) (producer, error)) *upstream.Failure {
	if req.N > a.maxChoices() || len(req.Prompts) > 1 {
		return a.fanOut(ctx, req, produce)
	}
	p, err := produce(req)
	if err != nil {
		return callerFault(err)
	}
	return a.runTranslated(ctx, req, p)
}

// maxChoices is how many choices one call can be asked for.
func (a *attempt) maxChoices() int {
	if a.shape == nil {
		return 1
	}
	return a.shape.MaxChoices()
}

// simulated makes a producer of the sandbox.
func (a *attempt) simulated(req *dialogue.Request) producer {
	return a.watched(a.order.Head.Stream, func(ctx context.Context, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure {
		var stopped *upstream.Failure
		accepted := false
		err := a.provider.Simulate(ctx, req, a.order.In.Header, func(ev *dialogue.Event) error {
			if !accepted {
				accepted = true
				a.accepted.Add(1)
			}
			emit(ev)
			if stopped = flush(); stopped != nil {
				return stopped
			}
			return nil
		})
		switch {
		case stopped != nil:
			return stopped
		case ctx.Err() != nil:
			return cancelled(ctx)
		case err != nil:
			return upstream.Broken(err)
		}
		return nil
	})
}

// translationBytes is about what the neutral form of a body and its encoding for the
// upstream take in memory, beside the body. Text costs its bytes in both, an object its
// fields besides.
func translationBytes(body []byte) int64 {
	const perByte, perObject = 3, 512
	return perByte*int64(len(body)) + perObject*int64(bytes.Count(body, []byte{'{'}))
}

func (a *attempt) decode() (*dialogue.Request, error) {
	if err := a.memory.Grow(translationBytes(a.order.Body)); err != nil {
		return nil, dialogue.NoMemory(err)
	}
	req, err := a.order.Inbound.Decode(a.order.Body, a.order.In, a.svc.env)
	if err != nil {
		return nil, err
	}
	for _, name := range req.Lost {
		a.report.Lose(name)
	}
	req.ReplyID = a.order.ReplyID
	if a.order.PreviousResponseID != "" {
		req.PreviousResponseID = a.order.PreviousResponseID
	}
	return req, nil
}

// takeKey is the provider's key whose turn it is.
func (a *attempt) takeKey() string {
	keys := a.provider.Client.Keys()
	if only, ok := keys.Only(); ok {
		return only
	}
	return keys.Take(a.svc.env.Now(), a.candidate.Model)
}

// send makes the upstream call and turns an error status into a failure.
func (a *attempt) send(ctx context.Context, call shapes.Call, key string) (*upstream.Reply, *upstream.Failure) {
	a.propagate(ctx, &call)
	call.Owner = a.order.Owner
	reply, err := a.provider.Client.Do(ctx, call, a.shape.Authorize, key)
	if err != nil {
		return nil, failureOf(err)
	}
	a.notice(reply)
	if reply.Status == http.StatusOK {
		a.accepted.Add(1)
		return reply, nil
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil && len(body) == 0 {
		body = nil // the status is enough
	}
	f := upstream.Refused(a.order.Inbound.Name(), reply.Status, reply.Header, a.shape.DecodeError(reply.Status, reply.Header, body), a.secrets()...)
	a.judge(key, f)
	return nil, f
}

// notice keeps what a reply says is left of the provider's limits. With several
// keys it would be true of one of them only.
func (a *attempt) notice(reply *upstream.Reply) {
	if len(a.provider.Client.Keys().All()) > 1 {
		return
	}
	if left := upstream.RateLimits(reply.Header, a.svc.env.Now); left.Requests != nil || left.Tokens != nil {
		kept := left // so that only this is allocated
		a.left.Store(&kept)
	}
}

// judge benches a key for a refusal, whether it came as a status or in a reply.
func (a *attempt) judge(key string, f *upstream.Failure) {
	if f != nil && key != "" {
		a.provider.Client.Keys().Judge(key, a.candidate.Model, f, a.svc.env.Now())
	}
}

// failureOf is err of providers/upstream, whose errors are all failures.
func failureOf(err error) *upstream.Failure {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f
	}
	return upstream.Broken(err)
}

// refusedInBody classifies an error that came inside a 200 reply.
func (a *attempt) refusedInBody(err *dialogue.Error) *upstream.Failure {
	return upstream.InStream(a.order.Inbound.Name(), err, a.secrets()...)
}

// secrets are the provider's keys, which no client may read in its errors.
func (a *attempt) secrets() []string {
	if a.provider.Client == nil {
		return nil
	}
	return a.provider.Client.Keys().All()
}

// deliver hands data to the door; the first time with status and headers. If
// that fails, the data stays the caller's.
func (a *attempt) deliver(ctx context.Context, data *Buffer) *upstream.Failure {
	if ctx.Err() != nil {
		return cancelled(ctx) // whoever produces the data may not look at it
	}
	data.count(a.svc.env.Memory, a.order.Owner)
	if err := a.conduit.send(ctx, Frame{Meta: a.takeMeta(), Data: data}); err != nil {
		return upstream.CancelledBy(err)
	}
	return nil
}

// lastWords ends the stream although the request's own context may be over, as
// it is in a shutdown. By now nothing is held any more, no permit and no
// connection. A client that has left is told nothing, and one that does not read
// is not waited for.
func (a *attempt) lastWords(f *upstream.Failure) {
	last := a.last
	a.last = nil
	if clientLeft(f) {
		last.Free()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWordsWait)
	defer cancel()
	if a.conduit.send(ctx, Frame{Meta: a.takeMeta(), Data: last, Failed: f.Err}) != nil {
		last.Free()
	}
	a.conduit.outcome.Err = f.Err
}

// strayFailure appends an error event of the client's shape where the state of
// the stream can't be asked for one.
func (a *attempt) strayFailure(dst []byte, err *dialogue.Error) []byte {
	if a.order.Mode != shapes.Stream {
		return dst
	}
	return a.order.Inbound.NewTap(shapes.TapOptions{Stream: true}, a.svc.env).Fail(dst, err)
}

// crashed writes the terminal event of a stream whose pump panicked, before the
// panic goes on to the actor as kit.Crashed.
func (a *attempt) crashed() {
	reason := recover()
	if reason == nil {
		return
	}
	failed := callerFault(internal(nil))
	if a.permit != nil {
		a.permit.Release(a.outcome(failed))
	}
	if a.conduit.committed && !a.told && a.failStream != nil {
		a.last = newBuffer()
		a.last.B = a.crashedFailure(a.last.B, failed.Err)
		a.lastWords(failed)
	}
	a.conduit.outcome.Meta = a.meta
	panic(reason)
}

// crashedFailure is the terminal event of the stream under way, also if its own
// state is what is broken.
func (a *attempt) crashedFailure(dst []byte, err *dialogue.Error) (out []byte) {
	defer func() {
		if recover() != nil {
			out = a.strayFailure(dst, err)
		}
	}()
	return a.failStream(dst, err)
}

// clientLeft reports whether nobody is there to be told of f.
func clientLeft(f *upstream.Failure) bool {
	return f.Class == upstream.Cancelled && f.Err.Status == 499
}

func (a *attempt) takeMeta() *Meta {
	if a.metaSent {
		return nil
	}
	a.metaSent = true
	a.meta.Degraded, a.meta.Losses = a.report.Degraded, a.report.Header()
	a.count()
	return &a.meta
}

// learn keeps what is known of the reply for the outcome.
func (a *attempt) learn(u dialogue.Usage, r dialogue.Reason) {
	a.conduit.outcome.Usage, a.conduit.outcome.Reason, a.conduit.outcome.Counted = u, r, a.counted.output
	a.conduit.flow.Progress(max(u.OutputTotal, a.counted.output))
}

// noteCalls keeps how many calls were made and accepted for the outcome.
func (a *attempt) noteCalls() {
	out := &a.conduit.outcome
	out.AcceptedCalls, out.Calls = int(a.accepted.Load()), max(a.calls, 1)
	out.Accepted = out.AcceptedCalls > 0
}

// outcome is what the throttle is told of the attempt.
func (a *attempt) outcome(f *upstream.Failure) throttle.Outcome {
	return a.outcomeOf(f, a.conduit.outcome.Usage)
}

// outcomeOf is what the throttle is told of one call.
func (a *attempt) outcomeOf(f *upstream.Failure, u dialogue.Usage) throttle.Outcome {
	o := throttle.Outcome{Kind: throttle.Success, Model: a.candidate.Model, TokensUsed: int(dialogue.CountOrZero(u.InputTotal) + dialogue.CountOrZero(u.OutputTotal))}
	if left := a.left.Load(); left != nil {
		o.RemainingRequests, o.ResetRequests = left.Requests, left.ResetRequests
		o.RemainingTokens, o.ResetTokens = left.Tokens, left.ResetTokens
	}
	if f == nil {
		return o
	}
	o.Kind, o.RetryAfter = a.provider.Judge(f, a.candidate.Model, a.svc.env.Now())
	return o
}

func callerFault(err error) *upstream.Failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		e = internal(err)
	}
	return &upstream.Failure{Class: upstream.CallerFault, Err: e}
}

// refusedByThrottle is the failure of a request that got no permit.
func refusedByThrottle(ctx context.Context, err error) *upstream.Failure {
	var r *throttle.Refused
	if !errors.As(err, &r) {
		return cancelled(ctx)
	}
	e := &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Code: "rate_limit_exceeded",
		Message:    "the provider of this model is at its limit and the request cannot be served in time, try again later",
		RetryAfter: min(max(r.RetryAfter, time.Second), upstream.MaxClientRetryAfter), Cause: err}
	if r.Reason == throttle.BreakerOpen || r.Reason == throttle.Closed {
		e.Status, e.Type, e.Code = 503, dialogue.TypeAPI, "no_route"
		e.Message = "no provider is available for this model at the moment, try again later"
	}
	return &upstream.Failure{Class: upstream.NotSent, Err: e, RetryAfter: r.RetryAfter}
}

func cancelled(ctx context.Context) *upstream.Failure {
	return upstream.CancelledBy(context.Cause(ctx))
}
