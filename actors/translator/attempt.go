package translator

import (
	"context"
	"errors"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
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
	number    int // of this request, from 1

	shape    shapes.Shape // what the upstream is spoken to in
	report   dialogue.Report
	meta     Meta
	permit   *throttle.Permit
	reason   dialogue.Reason
	metaSent bool
	// failStream writes the terminal error event of the stream under way, in
	// case the pump panics.
	failStream func(dst []byte, err *dialogue.Error) []byte
}

// lastWordsWait is how long a terminal error event may wait for a slow client
// once the request itself has been cancelled.
const lastWordsWait = 5 * time.Second

// run performs the attempt. A nil failure means that the client has, or will
// have, the whole reply.
func (a *attempt) run(ctx context.Context) *upstream.Failure {
	a.meta = Meta{Provider: a.candidate.Provider.Name, Attempts: a.number}
	if a.provider == nil {
		return &upstream.Failure{Class: upstream.NotSent, Err: &dialogue.Error{Status: 503, Type: dialogue.TypeAPI,
			Code: "no_route", Message: "no provider is available for this model"}}
	}
	permit, err := a.provider.Gate.Acquire(ctx, throttle.Ask{Key: a.order.Tenant, Class: a.order.Class, Tokens: a.order.Tokens, Deadline: a.queueDeadline()})
	if err != nil {
		return refusedByThrottle(ctx, err)
	}
	a.permit = permit
	a.meta.Queued = permit.Waited()
	f := a.call(ctx)
	permit.Release(a.outcome(f))
	return f
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
	if a.order.Mode != shapes.Array && a.candidate.Provider.Serves(inbound.Name()) && !a.order.Translate && a.order.PreviousResponseID == "" {
		a.shape = inbound
		a.meta.Untouched = true
		return a.callUntouched(ctx)
	}
	a.shape = a.svc.shape(a.candidate.Provider.Shape)
	return a.callTranslated(ctx)
}

func (a *attempt) target() dialogue.Target {
	t := a.candidate.Target(a.shape.Name())
	t.NoSchema = t.NoSchema || a.noSchema
	a.meta.Model = t.Model
	return t
}

func (a *attempt) callUntouched(ctx context.Context) *upstream.Failure {
	t := a.target()
	call, err := a.shape.Patch(a.order.Body, a.order.In, a.order.Head, t, &a.report, a.svc.env)
	if err != nil {
		return callerFault(err)
	}
	reply, f := a.send(ctx, call)
	if f != nil {
		return f
	}
	defer reply.Close()
	o := shapes.TapOptions{Stream: a.order.Head.Stream, HideUsage: !a.order.Head.IncludeUsage}
	if t.Model != a.order.Head.Model {
		o.Model = a.order.Head.Model
	}
	u := untouched{attempt: a, tap: a.shape.NewTap(o, a.svc.env)}
	a.failStream = u.tap.Fail
	return u.run(ctx, reply)
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
		return a.producer(call), nil
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
	return func(ctx context.Context, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure {
		var stopped *upstream.Failure
		err := a.provider.Simulate(ctx, req, a.order.In.Header, func(ev *dialogue.Event) error {
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
	}
}

func (a *attempt) decode() (*dialogue.Request, error) {
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

// send makes the upstream call and turns an error status into a failure.
func (a *attempt) send(ctx context.Context, call shapes.Call) (*upstream.Reply, *upstream.Failure) {
	client := a.provider.Client
	key := client.Keys().Take(a.svc.env.Now())
	reply, err := client.Do(ctx, call, a.shape.Authorize, key)
	if err != nil {
		return nil, err.(*upstream.Failure)
	}
	if reply.Status == 200 {
		return reply, nil
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil && len(body) == 0 {
		body = nil // the status is enough
	}
	f := upstream.Refused(a.order.Inbound.Name(), reply.Status, reply.Header, a.shape.DecodeError(reply.Status, reply.Header, body), a.secrets()...)
	client.Keys().Judge(key, f, a.svc.env.Now())
	return nil, f
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

// deliver sends data to the door; the first time with status and headers.
func (a *attempt) deliver(ctx context.Context, data *Buffer) *upstream.Failure {
	if err := a.conduit.send(ctx, Frame{Meta: a.takeMeta(), Data: data}); err != nil {
		return cancelled(ctx)
	}
	return nil
}

// lastWords sends a terminal error event although the request's own context may
// be over, as it is in a shutdown. A client that does not read is not waited for.
func (a *attempt) lastWords(data *Buffer) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWordsWait)
	defer cancel()
	if a.conduit.send(ctx, Frame{Meta: a.takeMeta(), Data: data}) != nil {
		data.Free()
	}
}

func (a *attempt) takeMeta() *Meta {
	if a.metaSent {
		return nil
	}
	a.metaSent = true
	a.meta.Degraded, a.meta.Losses = a.report.Degraded, a.report.Header()
	a.conduit.outcome.Meta = a.meta
	return &a.meta
}

// learn keeps what is known of the reply for the outcome.
func (a *attempt) learn(u dialogue.Usage, r dialogue.Reason) {
	a.conduit.outcome.Usage, a.conduit.outcome.Reason = u, r
}

// outcome is what the throttle is told.
func (a *attempt) outcome(f *upstream.Failure) throttle.Outcome {
	u := a.conduit.outcome.Usage
	o := throttle.Outcome{Kind: throttle.Success, TokensUsed: int(dialogue.Told(u.InputTotal) + dialogue.Told(u.OutputTotal))}
	if f == nil {
		return o
	}
	o.RetryAfter = f.RetryAfter
	o.Kind = map[upstream.Class]throttle.Kind{
		upstream.NotSent: throttle.NotSent, upstream.MaybeSent: throttle.Transient, upstream.RateLimited: throttle.RateLimited,
		upstream.Overloaded: throttle.Overloaded, upstream.Transient: throttle.Transient, upstream.CallerFault: throttle.CallerFault,
		upstream.Credential: throttle.Credential, upstream.Cancelled: throttle.Cancelled, upstream.TimedOut: throttle.Transient,
	}[f.Class]
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
