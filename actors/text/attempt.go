package text

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// attempt is one try at one target.
type attempt struct {
	*exchange
	c        *engine.Candidate
	provider *engine.Provider // nil: it is no longer configured
	sink     engine.Sink[Chunk]
	tight    bool // the reply may have to end early: see Meter

	entered time.Time // when the permit was there; zero: the translation has been reported
	// unbounded is the request's context without the deadline. An answer that is whole is
	// settled and delivered under it, because only its usage was still waited for.
	unbounded context.Context

	ctx      context.Context // of the request, with its deadline
	shape    *shapes.Shape   // what the upstream is spoken to in
	report   dialogue.Report
	meta     Meta
	permit   *throttle.Permit
	reason   dialogue.Reason
	counted  counter
	metaSent bool
	accepted atomic.Int32 // calls; see Outcome.Accepted
	tiers    replyTiers   // see Outcome.ServiceTier
	calls    int          // see Outcome.Calls
	// failStream writes the terminal error event of the stream that runs; nil: no stream does. It is kept for the case
	// that the attempt panics.
	failStream func(dst []byte, err *dialogue.Error) []byte
	terminated bool // the stream's terminal event is on its way
	memory     memory.Claim
	failed     *upstream.Failure
	// last, if set, ends a stream that failed. Its client has, or has coming, a
	// piece of the answer.
	last *Buffer
	// opening, if set, is a stream that began in good order and then reported an error before any piece of answer.
	// Nothing of it was sent, so another attempt can still be made. If none is, the client gets the stream as its
	// upstream wrote it, error event included, and not a status.
	opening *Buffer
}

// call passes the request through, translates it or has it simulated.
func (a *attempt) call(ctx context.Context) *upstream.Failure {
	if a.svc.simulates(a.provider) {
		return a.simulate(ctx)
	}
	inbound := a.request.Inbound
	// Each of these needs something that passing bytes through cannot do: another framing, an end
	// before the upstream's own (tight), history that was put into the body, or a change that the
	// target asked for by refusing the last attempt.
	mustTranslate := a.request.Mode == shapes.Array || a.request.Translate || a.tight ||
		a.request.PreviousResponseID != "" || a.shortened.turns != nil || a.callIDsRefused == a.targetName() ||
		a.compactionRefused == a.targetName() || a.contextRefused == a.targetName()
	if !mustTranslate && a.c.Provider.Serves(inbound.Name) {
		a.shape = inbound
		a.meta.Untouched = true
		return a.callPassthrough(ctx)
	}
	if a.shape = a.svc.shape(a.c.Provider.Shape); a.shape == nil {
		return engine.CallerFault(dialogue.Invalid("model", "is not a text model: its provider has no dialogue"))
	}
	return a.callTranslated(ctx)
}

// target returns the target as encoders need it, with what earlier attempts have learned of it.
func (a *attempt) target() dialogue.Target {
	t := a.c.Target(a.shape.Name)
	t.NoSchema = t.NoSchema || a.c.NoSchema
	t.OwnReasoning = a.reasoningRefused == a.targetName()
	a.meta.Model = t.Model
	return t
}

// callPassthrough makes the attempt without translation.
func (a *attempt) callPassthrough(ctx context.Context) *upstream.Failure {
	u, f := a.openPassthrough(ctx)
	if f != nil {
		return f
	}
	failure := panicked
	defer func() { u.close(failure) }()
	f = u.run(ctx)
	a.judgeKey(u.key, f)
	failure = className(f)
	return f
}

// openPassthrough makes the call and returns its reply with the tap that watches it. It is not inlined, because the
// temporaries of a call would otherwise stay on the stack of the attempt for as long as the stream lasts.
//
//go:noinline
func (a *attempt) openPassthrough(ctx context.Context) (*passthrough, *upstream.Failure) {
	t := a.target()
	call, err := a.shape.Patch(a.request.Body, a.request.In, a.request.Head, t, &a.report, a.env)
	if err != nil {
		return nil, engine.CallerFault(err)
	}
	if a.topKRefused == a.targetName() {
		a.report.Lose(topK)
		call.Body = withoutTopK(call.Body)
	}
	ctx, seen := a.beginCall(ctx, call.Stream)
	head := &a.request.Head
	o := shapes.TapOptions{Stream: head.Stream, HideUsage: !head.IncludeUsage, Choices: head.Choices(),
		KeepReasoning: t.Caps.ReasoningContent == dialogue.ReasoningRequired, Compaction: head.Compaction}
	if t.Model != a.request.Head.Model {
		o.Model = a.request.Head.Model
	}
	// The shape gives its tap before there is a reply, because a panic in between would leave the reply open.
	u := &passthrough{attempt: a, tap: a.shape.NewTap(o, a.env), observer: a.replyObserver(seen), call: seen,
		key: a.provider.TakeKey(a.svc.env.Now(), a.c.Model)}
	ctx, u.late = a.usageContext(ctx)
	var f *upstream.Failure
	if u.reply, f = a.send(ctx, call, u.key); f != nil {
		u.late.close()
		a.endCall(seen, className(f))
		return nil, f
	}
	if o.Stream {
		a.failStream = u.tap.Fail
	}
	return u, nil
}

// callTranslated makes the attempt through the neutral form.
func (a *attempt) callTranslated(ctx context.Context) *upstream.Failure {
	req, err := a.decode()
	if err != nil {
		return engine.CallerFault(err)
	}
	if bad := cmp.Or(a.request.Head.Unknown, req.NothingFor(a.shape.Name)); bad != nil {
		return engine.CallerFault(a.inFieldsOfClient(bad))
	}
	produce := func(req *dialogue.Request) (producer, error) {
		sent := *req
		if a.request.PreviousResponseID != "" {
			sent.PreviousResponseID = "" // the history is in the body already
		}
		t := a.target()
		sent.Fit(t, &a.report)
		call, err := a.shape.Encode(&sent, t, &a.report, a.env)
		if err != nil {
			return nil, a.inFieldsOfClient(err)
		}
		req.Renamed = sent.Renamed
		return a.producer(call, max(sent.N, 1)*max(len(sent.Prompts), 1), sent.Enforced), nil
	}
	return a.translate(ctx, req, produce)
}

// inFieldsOfClient returns an error of the encoder with the name that the field has in the client's shape.
func (a *attempt) inFieldsOfClient(err error) error {
	if e, ok := errors.AsType[*dialogue.Error](err); ok {
		return a.request.Inbound.Traits.NameField(e)
	}
	return err
}

// sandboxTarget is the sandbox as a target of structured output. It honours every schema, so the only degradation is
// that of a request without one.
var sandboxTarget = dialogue.Target{Caps: dialogue.Capabilities{StructuredOutputs: true}}

// simulate lets the embedded sandbox answer.
func (a *attempt) simulate(ctx context.Context) *upstream.Failure {
	req, err := a.decode()
	if err != nil {
		return engine.CallerFault(err)
	}
	a.meta.Model = a.request.Head.Model
	req.Output = schema.DecideOutput(req.Output, schema.JSONSchema, sandboxTarget, &a.report)
	return a.translate(ctx, req, func(req *dialogue.Request) (producer, error) { return a.simulated(req), nil })
}

// translate runs the call that produce makes of the request, or several calls if one cannot have
// all prompts and choices.
func (a *attempt) translate(ctx context.Context, req *dialogue.Request, produce produceFunc) *upstream.Failure {
	if req.N > a.maxChoices() || len(req.Prompts) > 1 {
		return a.fanOut(ctx, req, produce)
	}
	p, err := produce(req)
	if err != nil {
		return engine.CallerFault(err)
	}
	return a.runTranslated(ctx, req, p)
}

// maxChoices returns the number of choices that one call can request.
func (a *attempt) maxChoices() int {
	if a.shape == nil {
		return 1
	}
	return a.shape.MaxChoices()
}

// simulated makes a producer of the sandbox.
func (a *attempt) simulated(req *dialogue.Request) producer {
	p := func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		var stopped *upstream.Failure
		accepted := false
		err := a.svc.simulate(ctx, req, a.request.In.Header, func(ev *dialogue.Event) error {
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
			return engine.Cancelled(ctx)
		case err != nil:
			return upstream.Broken(err)
		}
		return nil
	}
	return a.watched(a.request.Head.Stream, p)
}

// decode reads the request as this attempt sends it.
func (a *attempt) decode() (*dialogue.Request, error) {
	req, err := a.decodeWhole()
	if err != nil {
		return nil, err
	}
	for _, name := range req.Lost {
		a.report.Lose(name)
	}
	a.editContext(req, &a.report)
	a.shortened.apply(req, &a.report)
	if a.request.Translate || a.request.PreviousResponseID != "" {
		// The gateway continues from this response itself, so the reasoning must be stored with it.
		req.Reasoning.EncryptedContent = true
	}
	req.ReplyID = a.request.ReplyID
	if a.request.PreviousResponseID != "" {
		req.PreviousResponseID = a.request.PreviousResponseID
	}
	return req, nil
}

// decodeWhole reads the request as the client sent it.
func (a *attempt) decodeWhole() (*dialogue.Request, error) {
	if err := a.memory.Grow(memory.OfTranslation(a.request.Body)); err != nil {
		return nil, dialogue.NoMemory(err)
	}
	return a.request.Inbound.Decode(a.request.Body, a.request.In, a.env)
}

// send makes the upstream call and turns an error status into a failure.
func (a *attempt) send(ctx context.Context, call shapes.Call, key string) (*upstream.Reply, *upstream.Failure) {
	kept := a.draft.Call(&call) // before the headers that depend on the trace and the key
	a.propagate(ctx, &call)
	call.Owner = a.request.Owner
	reply, err := a.provider.Client.Do(ctx, call, a.shape.Authorize, key)
	kept.Answered(reply, err)
	if err != nil {
		return nil, engine.FailureOf(err)
	}
	a.c.Notice(reply)
	if reply.Status == http.StatusOK {
		a.accepted.Add(1)
		return reply, nil
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil && len(body) == 0 {
		body = nil // the status is enough
	}
	decoded := a.shape.DecodeError(reply.Status, reply.Header, body)
	f := upstream.Refused(a.request.Inbound.Traits, reply.Status, reply.Header, decoded, a.provider.Secrets()...)
	f.Schema = f.Schema && a.constrained()
	f.Reasoning = f.Class == upstream.CallerFault && namesReasoning(decoded.Message) && a.hasProof(call.Body)
	f.CallIDs = f.Class == upstream.CallerFault && a.meta.Untouched && namesCallIDs(decoded)
	f.Compaction = a.isAboutCompaction(f)
	f.Context = f.Class == upstream.CallerFault && namesContext(decoded, call.Body)
	f.TopK = f.Class == upstream.CallerFault && a.meta.Untouched && namesTopK(decoded, call.Body)
	a.judgeKey(key, f)
	return nil, f
}

// constrained reports whether the request that was sent has a constraint of structured output.
func (a *attempt) constrained() bool {
	return a.report.Degraded == "" || a.report.Degraded == dialogue.KeywordsStripped
}

// judgeKey lets the provider's key rest if the upstream refused it, by a status or in a reply.
func (a *attempt) judgeKey(key string, f *upstream.Failure) {
	a.provider.JudgeKey(key, a.c.Model, f, a.svc.env.Now())
}

// refusedInBody classifies an error that came inside a 200 reply.
func (a *attempt) refusedInBody(err *dialogue.Error) *upstream.Failure {
	return upstream.InStream(a.request.Inbound.Traits, err, a.provider.Secrets()...)
}

// withheld returns a failure if the provider's content filter ended the reply before any of its answer, and a target is
// left for such requests. Otherwise the client gets the reply as it is. answered reports whether there is an answer.
func (a *attempt) withheld(reason dialogue.Reason, answered func() bool) *upstream.Failure {
	if reason != dialogue.ReasonFilter || a.sink.Committed() || !a.c.LeadsOn(catalog.OnContentFilter) || answered() {
		return nil
	}
	return upstream.FilteredReply()
}

// deliver sends data to the client, the first time with status and headers. If
// that fails, the data stays the caller's.
func (a *attempt) deliver(ctx context.Context, data *Buffer) *upstream.Failure {
	if ctx.Err() != nil {
		return engine.Cancelled(ctx) // the producer of the data may not look at it
	}
	data.count(a.svc.env.Memory, a.request.Owner)
	a.draft.Deliver(data.B, false)
	if err := a.sink.Send(ctx, Chunk{Meta: a.takeMeta(), Data: data}); err != nil {
		return upstream.CancelledBy(err)
	}
	return nil
}

// endStream ends a stream that failed with f. The request's own context may be over, as it is in a shutdown. A client
// that has left is sent nothing, and one that does not read is not waited for.
func (a *attempt) endStream(out engine.Sink[Chunk], f *upstream.Failure) {
	switch {
	case a.last != nil:
	case out.Committed() && !a.terminated && a.failStream != nil: // the attempt panicked
		a.last = newBuffer()
		a.last.B = a.crashedFailure(a.last.B, f.Err)
	case a.opening != nil && a.failed == f:
		a.last, a.opening = a.opening, nil
	}
	a.opening.Free()
	if a.last == nil {
		return
	}
	if engine.ClientLeft(f) {
		a.last.Free()
		return
	}
	a.draft.Deliver(a.last.B, true)
	ctx, cancel := context.WithTimeout(context.Background(), errorTime)
	defer cancel()
	if out.Send(ctx, Chunk{Meta: a.takeMeta(), Data: a.last, Failed: f.Err}) != nil {
		a.last.Free()
	}
	a.outcome.Err = f.Err
}

// fallbackFailure appends an error event of the client's shape where the state of
// the stream can't be asked for one.
func (a *attempt) fallbackFailure(dst []byte, err *dialogue.Error) []byte {
	if a.request.Mode != shapes.Stream {
		return dst
	}
	return a.request.Inbound.NewTap(shapes.TapOptions{Stream: true}, a.env).Fail(dst, err)
}

// crashedFailure appends the terminal event of the stream, also if the crash broke
// the stream's own state.
func (a *attempt) crashedFailure(dst []byte, err *dialogue.Error) (out []byte) {
	defer func() {
		if recover() != nil {
			out = a.fallbackFailure(dst, err)
		}
	}()
	return a.failStream(dst, err)
}

// takeMeta returns the status and headers of the reply for its first chunk, and nil for all others.
func (a *attempt) takeMeta() *Meta {
	if a.metaSent {
		return nil
	}
	a.metaSent = true
	a.meta.Degraded, a.meta.Losses = a.report.Degraded, a.report.Header()
	a.count()
	return &a.meta
}

// noteUsage stores the usage and the finish reason of the reply in the outcome.
func (a *attempt) noteUsage(u dialogue.Usage, r dialogue.Reason) {
	a.outcome.Usage, a.outcome.Reason, a.outcome.Counted = u, r, a.counted.output
	a.sink.Flow().Progress(max(u.OutputTotal, a.counted.output))
}

// noteCalls stores in the outcome how many calls were made and how many of them were accepted.
func (a *attempt) noteCalls() {
	out := &a.outcome
	out.AcceptedCalls, out.Calls = int(a.accepted.Load()), max(a.calls, 1)
	out.Accepted = out.AcceptedCalls > 0
	out.ServiceTier = a.serviceTier()
}

// tokensOf returns how many tokens an upstream reported, for the limiter.
func tokensOf(u *dialogue.Usage) int {
	return int(dialogue.CountOrZero(u.InputTotal) + dialogue.CountOrZero(u.OutputTotal))
}
