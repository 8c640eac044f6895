package telemetry

import (
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSpansLeaveWithWholeCharactersOnly(t *testing.T) {
	const broken, whole = "a\xffb", "a\ufffdb"
	stub := func(s string) sdktrace.ReadOnlySpan {
		attrs := []attribute.KeyValue{
			attribute.Int("n", 1),
			attribute.String("s", s),
			attribute.StringSlice("all", []string{"x", s}),
		}
		return tracetest.SpanStub{
			Name:       s,
			Attributes: attrs,
			Status:     sdktrace.Status{Code: codes.Error, Description: s},
			Events:     []sdktrace.Event{{Name: s, Attributes: attrs}},
		}.Snapshot()
	}
	got, want := valid(stub(broken)), stub(whole)
	if got.Name() != want.Name() || got.Status() != want.Status() ||
		!slices.Equal(got.Attributes(), want.Attributes()) {
		t.Errorf("%q, %v, %v", got.Name(), got.Status(), got.Attributes())
	}
	if e := got.Events()[0]; e.Name != whole || !slices.Equal(e.Attributes, want.Attributes()) {
		t.Errorf("event %q, %v", e.Name, e.Attributes)
	}
	if _, changed := valid(want).(sanitizedSpan); changed {
		t.Error("a span without fault was changed")
	}
}
