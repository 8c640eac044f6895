package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// Target is what a call asks of whom.
type Target struct {
	Operation string
	Kind      string // of provider, as the conventions name it
	Provider  string // as the configuration names it
	Model     string
	Shape     string // the upstream's
	Attempt   int
	Stream    bool
	MaxTokens int64 // below 1: not said
	Choices   int
	Output    string // what is asked for, if it is not text
}

// Call is one call of an upstream, as traces and metrics see it. A nil Call is
// one that nobody wants to see: all methods may be called on it. It belongs to
// the goroutine that reads the reply.
type Call struct {
	metrics *Metrics
	span    trace.Span
	target  Target
	began   time.Time
	first   time.Duration // until the first piece of answer; 0: there was none
	pieces  int
	reply   Reply
	content *content // nil: not kept
}

// Reply is what a call's upstream said about its answer.
type Reply struct {
	ID, Model string
	Reasons   []string
	Usage     dialogue.Usage
	// Cost is in micro-dollars.
	Cost int64
	// Failure is the class of what went wrong, or "".
	Failure string
}

// CallName is the name of a call's span.
func CallName(operation, model string) string {
	if model == "" {
		return operation
	}
	return operation + " " + Text(model)
}

// BeginCall begins a call below the span in ctx, which is the request's.
func (t *Telemetry) BeginCall(ctx context.Context, target Target) (context.Context, *Call) {
	parent := trace.SpanFromContext(ctx)
	if t.metricsOrNil() == nil && !parent.IsRecording() {
		return ctx, nil
	}
	c := &Call{metrics: t.metricsOrNil(), span: nothing, target: target, began: time.Now()}
	c.reply.Usage = dialogue.NoUsage
	if parent.IsRecording() {
		ctx, c.span = tracerOf(parent).Start(ctx, CallName(target.Operation, target.Model), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithTimestamp(c.began), trace.WithAttributes(target.attributes()...))
	}
	return ctx, c
}

func (t *Target) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 9)
	attrs = append(attrs, Operation.String(t.Operation), ProviderKind.String(t.Kind), Provider.String(t.Provider),
		RequestModel.String(Text(t.Model)), Attempt.Int(t.Attempt), RequestStream.Bool(t.Stream))
	if t.Shape != "" {
		attrs = append(attrs, UpstreamShape.String(t.Shape))
	}
	if t.MaxTokens > 0 {
		attrs = append(attrs, RequestMaxTokens.Int64(t.MaxTokens))
	}
	if t.Output != "" {
		attrs = append(attrs, OutputType.String(t.Output))
	}
	if t.Choices > 1 {
		attrs = append(attrs, RequestChoices.Int(t.Choices))
	}
	return attrs
}

// Piece counts a piece of answer that was read. It is on the path of every
// token: it looks at a clock for the first one only.
func (c *Call) Piece() {
	if c == nil {
		return
	}
	c.pieces++
	if c.pieces > 1 {
		return
	}
	now := time.Now()
	c.first = now.Sub(c.began)
	if c.span.IsRecording() {
		c.span.AddEvent(EventFirstToken, trace.WithTimestamp(now))
	}
}

// See keeps what an event of the reply tells.
func (c *Call) See(ev *dialogue.Event) {
	if c == nil {
		return
	}
	switch ev.Kind {
	case dialogue.EventStart:
		c.reply.ID, c.reply.Model = dialogue.ShortName(ev.ID), dialogue.ShortName(ev.Model)
	case dialogue.EventDelta:
		c.Piece()
		c.Hear(ev)
	case dialogue.EventUsage:
		c.reply.Usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		c.reply.Reasons = append(c.reply.Reasons, ReasonName(ev.Reason))
	}
}

// Told keeps what is known of a reply whose events were not read one by one.
func (c *Call) Told(u dialogue.Usage, reasons ...dialogue.Reason) {
	if c == nil {
		return
	}
	c.reply.Usage = u
	for _, r := range reasons {
		c.reply.Reasons = append(c.reply.Reasons, ReasonName(r))
	}
}

// Named keeps what the reply calls itself.
func (c *Call) Named(id, model string) {
	if c != nil {
		c.reply.ID, c.reply.Model = dialogue.ShortName(id), dialogue.ShortName(model)
	}
}

// Usage is what the upstream has told.
func (c *Call) Usage() dialogue.Usage {
	if c == nil {
		return dialogue.NoUsage
	}
	return c.reply.Usage
}

// Recording reports whether the call has a span that records.
func (c *Call) Recording() bool { return c != nil && c.span.IsRecording() }

// SetAttributes adds to the call's span.
func (c *Call) SetAttributes(attrs ...attribute.KeyValue) { c.span.SetAttributes(attrs...) }

// End ends the call. failure is the class of what went wrong, or "".
func (c *Call) End(failure string, cost int64) {
	if c == nil {
		return
	}
	took := time.Since(c.began)
	c.reply.Failure, c.reply.Cost = failure, cost
	c.metrics.call(c, took)
	if !c.span.IsRecording() {
		return
	}
	c.span.SetAttributes(c.result()...)
	if failure != "" {
		Fail(c.span, failure)
	}
	c.span.End(trace.WithTimestamp(c.began.Add(took)))
}

func (c *Call) result() []attribute.KeyValue {
	r := &c.reply
	attrs := make([]attribute.KeyValue, 0, 10)
	if r.ID != "" {
		attrs = append(attrs, ResponseID.String(Text(r.ID)))
	}
	if r.Model != "" {
		attrs = append(attrs, ResponseModel.String(Text(r.Model)))
	}
	if len(r.Reasons) > 0 && r.Failure == "" {
		attrs = append(attrs, FinishReasons.StringSlice(r.Reasons))
	}
	if c.first > 0 && c.target.Stream {
		attrs = append(attrs, FirstChunk.Float64(c.first.Seconds()))
	}
	for _, n := range [...]struct {
		key   attribute.Key
		count int64
	}{{InputTokens, r.Usage.InputTotal}, {OutputTokens, r.Usage.OutputTotal}, {CacheReadTokens, r.Usage.CacheRead},
		{CacheWriteTokens, cacheWrites(&r.Usage)}, {ReasoningTokens, r.Usage.Reasoning}} {
		if n.count >= 0 {
			attrs = append(attrs, n.key.Int64(n.count))
		}
	}
	if c.content != nil {
		attrs = append(attrs, OutputMessages.String(c.content.reply()))
	}
	if r.Cost > 0 {
		attrs = append(attrs, Cost.Float64(Dollars(r.Cost)))
	}
	return attrs
}

// cacheWrites sums what was written to caches; below 0: not told.
func cacheWrites(u *dialogue.Usage) int64 {
	if u.CacheWrite >= 0 {
		return u.CacheWrite
	}
	if u.CacheWrite5m < 0 && u.CacheWrite1h < 0 {
		return -1
	}
	return dialogue.CountOrZero(u.CacheWrite5m) + dialogue.CountOrZero(u.CacheWrite1h)
}

// Dollars is an amount of micro-dollars for eyes and graphs. Books are kept in
// whole micro-dollars.
func Dollars(micro int64) float64 { return float64(micro) / 1e6 }

// reasons are the ends of choices as the conventions' examples call them.
var reasons = [...]string{
	dialogue.ReasonStop: "stop", dialogue.ReasonStopSequence: "stop", dialogue.ReasonLength: "length", dialogue.ReasonTool: "tool_calls",
	dialogue.ReasonFilter: "content_filter", dialogue.ReasonPause: "pause", dialogue.ReasonContextWindow: "context_window",
	dialogue.ReasonMalformedCall: "malformed_tool_call", dialogue.ReasonOther: "other",
}

// ReasonName is a finish reason's name in spans.
func ReasonName(r dialogue.Reason) string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "other"
}

// KindSandbox is the embedded simulator, as a kind of provider.
const KindSandbox = "sandbox"

// VendorOf returns the vendor whose shape it is, in the words of the conventions. A provider may
// be someone else who serves the same shape.
func VendorOf(shape dialogue.Shape) string {
	if d := registry.Describe(shape); d != nil {
		return d.Telemetry.Vendor
	}
	return string(shape)
}

// Inject tells an upstream which span its call is.
func Inject(ctx context.Context, set func(name, value string)) {
	propagation.TraceContext{}.Inject(ctx, setter(set))
}

// setter is a carrier that is only written.
type setter func(name, value string)

func (setter) Get(string) string        { return "" }
func (setter) Keys() []string           { return nil }
func (s setter) Set(name, value string) { s(name, value) }
