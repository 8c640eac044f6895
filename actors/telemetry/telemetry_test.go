package telemetry

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"stagedoor/providers/dialogue"
)

func collect(t *testing.T, r *sdkmetric.ManualReader) map[string]metricdata.Aggregation {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]metricdata.Aggregation)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			out[m.Name] = m.Data
		}
	}
	return out
}

func TestNamesOfClientsDoNotMakeSeriesWithoutEnd(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m, err := NewMetrics(
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0)).Meter("test"),
	)
	if err != nil {
		t.Fatal(err)
	}
	tel := &Telemetry{Metrics: m}
	for i := range 3 * maxSeries {
		_, c := tel.BeginCall(context.Background(),
			Target{Operation: "chat", Provider: "p", Model: fmt.Sprintf("model-%d", i)})
		c.End("", 0)
		m.Lost(fmt.Sprintf("loss_%d", i))
	}
	for _, data := range []int{
		len(collect(t, reader)["gen_ai.client.operation.duration"].(metricdata.Histogram[float64]).DataPoints),
		len(collect(t, reader)["stagedoor.losses"].(metricdata.Sum[int64]).DataPoints)} {
		if data > maxSeries+1 {
			t.Errorf("%d series, want %d at most", data, maxSeries+1)
		}
	}
}

func TestACallIsOneSpanWithTheFiguresOfItsReply(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, request := tracer.Start(context.Background(), "request")
	_, c := (*Telemetry)(
		nil,
	).BeginCall(ctx, Target{Operation: "chat", Kind: "openai", Provider: "p", Model: "m", Attempt: 2, Stream: true,
		MaxTokens: 9, Choices: 2})
	usage := dialogue.NoUsage
	usage.InputTotal, usage.OutputTotal, usage.CacheWrite5m, usage.CacheWrite1h = 3, 4, 1, 2
	for _, ev := range []dialogue.Event{{Kind: dialogue.EventStart, ID: "id-1", Model: "m-1"}, {Kind: dialogue.EventDelta}, {Kind: dialogue.EventDelta},
		{Kind: dialogue.EventUsage, Usage: &usage}, {Kind: dialogue.EventFinish, Reason: dialogue.ReasonLength},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonTool}} {
		c.RecordEvent(&ev)
	}
	c.End("", 1_500_000)
	request.End()
	s := spans.Ended()[0]
	if s.Name() != "chat m" || s.Parent().SpanID() != request.SpanContext().SpanID() || len(s.Events()) != 1 {
		t.Errorf("span %q below %s with %d events", s.Name(), s.Parent().SpanID(), len(s.Events()))
	}
	have := attribute.NewSet(s.Attributes()...)
	for _, want := range []attribute.KeyValue{ResponseID.String("id-1"), ResponseModel.String("m-1"), InputTokens.Int(3), OutputTokens.Int(4),
		CacheWriteTokens.Int(3), Cost.Float64(1.5), FinishReasons.StringSlice([]string{"length", "tool_calls"}),
		RequestChoices.Int(2), Attempt.Int(2)} {
		if got, ok := have.Value(want.Key); !ok || got != want.Value {
			t.Errorf("%s is %s, want %s", want.Key, got.String(), want.Value.String())
		}
	}
	if _, ok := have.Value(ReasoningTokens); ok {
		t.Error("tokens that were not reported are attributes")
	}
}

func TestACallThatIsNotTracedCostsNothing(t *testing.T) {
	ctx := context.Background()
	ev := dialogue.Event{Kind: dialogue.EventDelta}
	if n := testing.AllocsPerRun(100, func() {
		_, span := Start(ctx, SpanAuth)
		Fail(span, "x")
		span.End()
		_, c := (*Telemetry)(nil).BeginCall(ctx, Target{})
		c.RecordEvent(&ev)
		c.CountPiece()
		c.RecordUsage(dialogue.NoUsage)
		c.End("", 0)
		(*Telemetry)(nil).Queued(ctx, Wait{})
		(*Metrics)(nil).Lost("x")
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestATokenCostsNoAllocation(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	ctx, span := tracer.Start(context.Background(), "request")
	defer span.End()
	_, c := (&Telemetry{Metrics: m}).BeginCall(ctx, Target{Operation: "chat"})
	ev := dialogue.Event{Kind: dialogue.EventDelta}
	c.RecordEvent(&ev)
	if n := testing.AllocsPerRun(100, func() { c.RecordEvent(&ev) }); n != 0 {
		t.Errorf("%v allocations for each token, want none", n)
	}
	c.End("", 0)
}

func TestWorkThatOutlivesItsRequestIsStillPartOfIt(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, request := tracer.Start(context.Background(), "request")
	later := Carry(context.Background(), ctx)
	request.End()
	_, settle := Start(later, SpanSettle)
	settle.End()
	if n := len(spans.Ended()); n != 2 || spans.Ended()[1].Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("%d spans ended, want the settlement below the request", n)
	}
}

func TestLinkedWorkIsATraceOfItsOwn(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, request := tracer.Start(context.Background(), "request")
	origin := Traceparent(ctx)
	_, step := (&Telemetry{Tracer: tracer}).Linked(ctx, origin, "step")
	step.End()
	if step.SpanContext().TraceID() == request.SpanContext().TraceID() {
		t.Error("the step is part of the request's trace")
	}
	links := spans.Ended()[0].Links()
	if len(links) != 1 || links[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("links %v, want one to the request", links)
	}
	_, step = (&Telemetry{Tracer: tracer}).Linked(ctx, "garbage", "step")
	step.End()
	if n := len(spans.Ended()[1].Links()); n != 0 {
		t.Errorf("%d links to garbage, want none", n)
	}
	if _, span := (*Telemetry)(nil).Linked(ctx, origin, "step"); span.IsRecording() {
		t.Error("a step is recorded without a reader")
	}
}

func TestTimesOfChunksAreOfStreamsOnly(t *testing.T) {
	for _, stream := range []bool{false, true} {
		reader := sdkmetric.NewManualReader()
		m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
		if err != nil {
			t.Fatal(err)
		}
		_, c := (&Telemetry{Metrics: m}).BeginCall(context.Background(),
			Target{Operation: "chat", Provider: "p", Model: "m", Stream: stream})
		c.CountPiece()
		c.CountPiece()
		c.End("", 0)
		all := collect(t, reader)
		for _, name := range []string{"gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.operation.time_per_output_chunk"} {
			if _, ok := all[name]; ok != stream {
				t.Errorf("stream %t: %s is recorded: %t", stream, name, ok)
			}
		}
	}
}

func TestRequestsHaveTheAttributesOfTheConventions(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m, err := NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	m.Request(context.Background(), "https", "POST", "/v1/messages", 200, 0)
	m.Request(context.Background(), "http", "GET", "", 404, 0)
	m.Request(context.Background(), "http", "POST", "/v1/messages", 502, 0)
	want := map[attribute.Set]bool{
		attribute.NewSet(URLScheme.String("https"), HTTPMethod.String("POST"), HTTPRoute.String("/v1/messages"),
			HTTPStatus.Int(200)): true,
		attribute.NewSet(URLScheme.String("http"), HTTPMethod.String("GET"),
			HTTPStatus.Int(404)): true,
		attribute.NewSet(URLScheme.String("http"), HTTPMethod.String("POST"), HTTPRoute.String("/v1/messages"),
			HTTPStatus.Int(502), ErrorType.String("502")): true,
	}
	points := collect(t, reader)["http.server.request.duration"].(metricdata.Histogram[float64]).DataPoints
	for _, p := range points {
		if !want[p.Attributes] {
			t.Errorf("unwanted attributes: %v", p.Attributes.ToSlice())
		}
	}
	if len(points) != len(want) {
		t.Errorf("%d sets of attributes, want %d", len(points), len(want))
	}
}
