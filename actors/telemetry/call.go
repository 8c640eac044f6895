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

// Target describes a call and its upstream.
type Target struct {
	Operation string
	Kind      string // the vendor, as the conventions name it
	Provider  string // the provider's name in the configuration
	Model     string
	Shape     string // the upstream's shape
	Attempt   int
	Stream    bool
	MaxTokens int64 // below 1 if the request sets no maximum
	Choices   int
	Output    string // the kind of output if it is not text
}

// Call is one call of an upstream in traces and metrics. All methods of a nil Call do nothing. A Call belongs to the
// goroutine that reads the reply.
type Call struct {
	metrics *Metrics
	span    trace.Span
	target  Target
	began   time.Time
	first   time.Duration // until the first piece of the reply, or 0
	pieces  int
	reply   Reply
	content *content // nil if the content is not kept
}

// Reply has what the upstream reported about its reply.
type Reply struct {
	ID, Model string
	Reasons   []string
	Usage     dialogue.Usage
	// Cost is in micro-dollars.
	Cost int64
	// Failure is the class of the failure, or "".
	Failure string
}

// CallName returns the name of a call's span.
func CallName(operation, model string) string {
	if model == "" {
		return operation
	}
	return operation + " " + Text(model)
}

// BeginCall starts a call below the request's span in ctx. The Call is nil if nothing is measured. Otherwise the caller
// ends it with End.
func (t *Telemetry) BeginCall(ctx context.Context, target Target) (context.Context, *Call) {
	parent := trace.SpanFromContext(ctx)
	if t.metricsOrNil() == nil && !parent.IsRecording() {
		return ctx, nil
	}
	c := &Call{metrics: t.metricsOrNil(), span: nothing, target: target, began: time.Now()}
	c.reply.Usage = dialogue.NoUsage
	if parent.IsRecording() {
		ctx, c.span = tracerOf(
			parent,
		).Start(ctx, CallName(target.Operation, target.Model), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithTimestamp(c.began), trace.WithAttributes(target.attributes()...))
	}
	return ctx, c
}

// attributes returns what is known of a call before its reply.
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

// CountPiece counts a piece of the reply. It is called for every token, so it reads the clock for the first one only.
func (c *Call) CountPiece() {
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

// RecordEvent records what an event of the reply reports.
func (c *Call) RecordEvent(ev *dialogue.Event) {
	if c == nil {
		return
	}
	switch ev.Kind {
	case dialogue.EventStart:
		c.reply.ID, c.reply.Model = dialogue.ShortName(ev.ID), dialogue.ShortName(ev.Model)
	case dialogue.EventDelta:
		c.CountPiece()
		c.KeepText(ev)
	case dialogue.EventUsage:
		c.reply.Usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		c.reply.Reasons = append(c.reply.Reasons, ReasonName(ev.Reason))
	}
}

// RecordUsage records the usage of a reply whose events were not read one by one.
func (c *Call) RecordUsage(u dialogue.Usage, reasons ...dialogue.Reason) {
	if c == nil {
		return
	}
	c.reply.Usage = u
	for _, r := range reasons {
		c.reply.Reasons = append(c.reply.Reasons, ReasonName(r))
	}
}

// RecordReply records the id and the model that the reply names.
func (c *Call) RecordReply(id, model string) {
	if c != nil {
		c.reply.ID, c.reply.Model = dialogue.ShortName(id), dialogue.ShortName(model)
	}
}

// Usage returns the usage that the upstream has reported.
func (c *Call) Usage() dialogue.Usage {
	if c == nil {
		return dialogue.NoUsage
	}
	return c.reply.Usage
}

// Recording reports whether the call has a span that records.
func (c *Call) Recording() bool { return c != nil && c.span.IsRecording() }

// SetAttributes adds attributes to the call's span.
func (c *Call) SetAttributes(attrs ...attribute.KeyValue) { c.span.SetAttributes(attrs...) }

// End ends the call. failure is the class of the failure, or "".
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

// result returns what is known of a call after its reply. Counts that the provider did not report
// are left out and not zero.
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

// cacheWrites returns the tokens that were written to caches, or a negative number if that was not reported.
func cacheWrites(u *dialogue.Usage) int64 {
	if u.CacheWrite >= 0 {
		return u.CacheWrite
	}
	if u.CacheWrite5m < 0 && u.CacheWrite1h < 0 {
		return -1
	}
	return dialogue.CountOrZero(u.CacheWrite5m) + dialogue.CountOrZero(u.CacheWrite1h)
}

// Dollars returns an amount of micro-dollars in dollars, for display only. The ledger uses whole micro-dollars.
func Dollars(micro int64) float64 { return float64(micro) / 1e6 }

// reasons are the finish reasons in the words of the conventions.
var reasons = [...]string{
	dialogue.ReasonStop: "stop", dialogue.ReasonStopSequence: "stop", dialogue.ReasonLength: "length", dialogue.ReasonTool: "tool_calls",
	dialogue.ReasonFilter: "content_filter", dialogue.ReasonPause: "pause", dialogue.ReasonContextWindow: "context_window",
	dialogue.ReasonMalformedCall: "malformed_tool_call", dialogue.ReasonOther: "other",
}

// ReasonName returns the name of a finish reason in spans.
func ReasonName(r dialogue.Reason) string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "other"
}

// KindSandbox is the vendor of the embedded simulator.
const KindSandbox = "sandbox"

// VendorOf returns the vendor that defined the shape, in the words of the conventions. The provider of a call may be
// another vendor that serves the same shape.
func VendorOf(shape dialogue.Shape) string {
	if d := registry.Describe(shape); d != nil {
		return d.Telemetry.Vendor
	}
	return string(shape)
}

// Inject passes the trace context of ctx to set, as headers of the call of an upstream.
func Inject(ctx context.Context, set func(name, value string)) {
	propagation.TraceContext{}.Inject(ctx, setter(set))
}

// setter is a carrier that can only be written.
type setter func(name, value string)

func (setter) Get(string) string        { return "" }
func (setter) Keys() []string           { return nil }
func (s setter) Set(name, value string) { s(name, value) }
