package text

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// className returns the name of the failure's class in metrics and spans, or "" for no failure.
func className(f *upstream.Failure) string {
	if f == nil {
		return ""
	}
	return throttle.KindOf(f.Class).String()
}

// beginCall begins the span of one call of the upstream, below the span of the request. It first ends the span of the
// translation, which covers the time from the permit to the call.
func (a *attempt) beginCall(ctx context.Context, stream bool) (context.Context, *telemetry.Call) {
	a.translation(ctx, nil)
	target := telemetry.Target{Provider: a.provider.Spec.Name, Model: a.meta.Model, Attempt: a.c.Number,
		Stream: stream, MaxTokens: a.request.Head.MaxTokens, Choices: a.request.Head.N}
	if a.shape == nil {
		target.Operation, target.Kind = a.request.Inbound.Telemetry.Operation, telemetry.KindSandbox
	} else {
		target.Operation, target.Kind = a.shape.Telemetry.Operation, a.shape.Telemetry.Vendor
		target.Shape = string(a.shape.Name)
	}
	ctx, call := a.c.Telemetry().BeginCall(ctx, target)
	a.keepContent(call)
	return ctx, call
}

// endCall ends the span of a call with its failure, or "", and with what the tokens of the call cost at the price of
// the attempt, if the upstream has reported usage. A nil call is not traced.
func (a *attempt) endCall(c *telemetry.Call, failure string) {
	if c == nil {
		return
	}
	cost := int64(0)
	if u := c.Usage(); u.InputTotal >= 0 || u.OutputTotal >= 0 {
		cost = a.c.Estimate(a.outcome.ReplyModel, a.svc.env.Now()).AtTier(a.serviceTier()).Tokens(u)
	}
	c.End(failure, cost)
}

// watched returns a producer that does what p does and records its events and its end in a span and in the metrics.
func (a *attempt) watched(stream bool, p producer) producer {
	return func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		ctx, call := a.beginCall(ctx, stream)
		if call == nil {
			return p(ctx, emit, flush)
		}
		return a.watch(ctx, call, p, emit, flush)
	}
}

// watch runs a producer, records its events in call, and ends the call with the failure, also if the producer panics.
// An error event of the reply counts as a failure of the call.
func (a *attempt) watch(ctx context.Context, call *telemetry.Call, p producer, emit emitFunc,
	flush flushFunc) *upstream.Failure {
	failure, inBand := panicked, ""
	defer func() { a.endCall(call, failure) }()
	f := p(ctx, func(ev *dialogue.Event) {
		if ev.Kind == dialogue.EventError {
			inBand = className(a.refusedInBody(ev.Err))
		}
		call.RecordEvent(ev)
		emit(ev)
	}, flush)
	if failure = className(f); f == nil {
		failure = inBand
	}
	return f
}

// panicked stands for the class of a call that ended in a panic.
const panicked = "panic"

// translation records the span between the permit and the upstream call, once for an attempt. f is
// the reason why nothing was sent, or nil.
func (a *attempt) translation(ctx context.Context, f *upstream.Failure) {
	if a.entered.IsZero() || !telemetry.Recording(ctx) {
		return
	}
	began := a.entered
	a.entered = time.Time{}
	_, span := telemetry.Start(ctx, telemetry.SpanTranslate, trace.WithTimestamp(began), trace.WithAttributes(
		telemetry.Shape.String(string(a.request.Inbound.Name)), telemetry.Attempt.Int(a.c.Number),
		telemetry.Untouched.Bool(a.meta.Untouched)))
	if a.shape != nil {
		span.SetAttributes(telemetry.UpstreamShape.String(string(a.shape.Name)))
	}
	if losses := a.report.Losses(); len(losses) > 0 {
		span.SetAttributes(telemetry.Losses.StringSlice(losses))
	}
	if a.report.Degraded != "" {
		span.SetAttributes(telemetry.Degraded.String(a.report.Degraded))
	}
	if f != nil {
		telemetry.Fail(span, className(f))
	}
	span.End()
}

// propagate adds the traceparent of the call's span to its header, if the configuration allows that
// for the provider.
func (a *attempt) propagate(ctx context.Context, call *shapes.Call) {
	if !a.svc.engine.Telemetry().Propagates(a.c.Provider.Name) {
		return
	}
	telemetry.Inject(ctx, func(name, value string) {
		if call.Header == nil {
			call.Header = make(map[string][]string)
		}
		call.Header.Set(name, value)
	})
}

// keepModel records the model that a reply names, if the price depends on it. Some providers name none in the first
// events of a stream, so data is the reply, or each event until one has a model.
func (u *passthrough) keepModel(data []byte) {
	if u.outcome.ReplyModel == "" && u.c.PricedByReply() {
		u.outcome.ReplyModel = firstString(data, u.shape.Telemetry.ReplyModel)
	}
}

// maxTier bounds the names of service tiers, which are short words.
const maxTier = 32

// A search for the end of the name is faster than one for all of it, because an underscore is rarer than a quote.
var (
	tierMember = []byte(`"service_tier"`)
	tierEnd    = []byte(`_tier"`)
)

// findTier returns the index of the first tierMember in data, or a negative number.
func findTier(data []byte) int {
	begun := len(tierMember) - len(tierEnd)
	for from := 0; ; {
		at := bytes.Index(data[from:], tierEnd)
		if at < 0 {
			return at
		}
		if at += from; at >= begun && bytes.HasPrefix(data[at-begun:], tierMember) {
			return at - begun
		}
		from = at + len(tierEnd)
	}
}

// replyTiers are the service tiers that the replies of an attempt name. Its calls run at the same time.
type replyTiers struct {
	mu    sync.Mutex
	calls []*callTier // whose reply has named one
}

// callTier is the service tier that the reply to one call has named last, or "". The mutex of replyTiers guards it.
// member is the text of that member. Only the goroutine that reads the reply uses it.
type callTier struct{ name, member string }

// repeats reports whether the events say nothing new, because the only mention of a tier, at the beginning of data, is
// the one that was read before. Some vendors name the tier in each event.
func (t *callTier) repeats(data []byte) bool {
	n := len(t.member)
	return n > 0 && len(data) > n && string(data[:n]) == t.member && findTier(data[n:]) < 0
}

// keepTier records the service tier that the reply of a call names, for prices of the catalogue's list. data is the
// reply or one of its events. The last event with a tier counts, because some vendors repeat the requested tier until
// the end. The tier auto is only ever requested, so it says nothing of the reply.
func (a *attempt) keepTier(of *callTier, data []byte) {
	if a.c.Price != nil {
		return
	}
	if at := findTier(data); at < 0 || of.repeats(data[at:]) {
		return
	}
	if tier := firstString(data, a.shape.Telemetry.ReplyTier); tier != "" && tier != "auto" && len(tier) <= maxTier {
		a.tiers.mu.Lock()
		defer a.tiers.mu.Unlock()
		if of.name == "" {
			a.tiers.calls = append(a.tiers.calls, of)
		}
		of.name, of.member = tier, string(tierMember)+`:"`+tier+`"`
	}
}

// serviceTier returns the service tier of the attempt. It is "", for the plain price, if its calls were served at
// several ones, because their usage is one sum.
func (a *attempt) serviceTier() (tier string) {
	a.tiers.mu.Lock()
	defer a.tiers.mu.Unlock()
	for i, call := range a.tiers.calls {
		if i > 0 && call.name != tier {
			return ""
		}
		tier = call.name
	}
	return tier
}

// keepNames records the id and the model of a reply in the span of its call. data is the reply, which passes unchanged,
// or its first event.
func (u *passthrough) keepNames(data []byte) {
	names := &u.shape.Telemetry
	if !u.call.Recording() {
		return
	}
	u.call.RecordReply(firstString(data, names.ReplyID), firstString(data, names.ReplyModel))
}

// firstString returns the first string at one of the paths.
func firstString(data []byte, paths []string) string {
	for _, path := range paths {
		if r := gjson.GetBytes(data, path); r.Type == gjson.String {
			return r.Str
		}
	}
	return ""
}

// count adds to the metrics what the translation of the request left out or replaced.
func (a *attempt) count() {
	m := a.svc.engine.Metrics()
	if m == nil {
		return
	}
	for _, loss := range a.report.Losses() {
		m.Lost(loss)
	}
	if a.report.Degraded != "" {
		m.Degraded(a.report.Degraded)
	}
}
