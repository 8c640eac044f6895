package telemetry

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// legal returns span with whole characters only. OTLP has no others, and one broken text makes a whole batch fail, so
// that one client could lose the spans of all others with a path of broken bytes.
func legal(span sdktrace.ReadOnlySpan) sdktrace.ReadOnlySpan {
	events := span.Events()
	whole := utf8.ValidString(span.Name()) && utf8.ValidString(span.Status().Description) && legalAll(span.Attributes())
	for i := 0; whole && i < len(events); i++ {
		whole = utf8.ValidString(events[i].Name) && legalAll(events[i].Attributes)
	}
	if whole {
		return span
	}
	m := mended{
		ReadOnlySpan: span,
		name:         mend(span.Name()),
		status:       span.Status(),
		attributes:   mendAll(span.Attributes()),
	}
	m.status.Description = mend(m.status.Description)
	m.events = slices.Clone(events)
	for i := range m.events {
		m.events[i].Name, m.events[i].Attributes = mend(m.events[i].Name), mendAll(m.events[i].Attributes)
	}
	return m
}

// mended is a span with texts that were changed.
type mended struct {
	sdktrace.ReadOnlySpan
	name       string
	status     sdktrace.Status
	attributes []attribute.KeyValue
	events     []sdktrace.Event
}

// Name implements sdktrace.ReadOnlySpan.
func (m mended) Name() string { return m.name }

// Status implements sdktrace.ReadOnlySpan.
func (m mended) Status() sdktrace.Status { return m.status }

// Attributes implements sdktrace.ReadOnlySpan.
func (m mended) Attributes() []attribute.KeyValue { return m.attributes }

// Events implements sdktrace.ReadOnlySpan.
func (m mended) Events() []sdktrace.Event { return m.events }

// legalAll reports whether all attributes have whole characters only.
func legalAll(attrs []attribute.KeyValue) bool {
	for i := range attrs {
		if !legalValue(attrs[i].Value) {
			return false
		}
	}
	return true
}

// legalValue reports whether a value has whole characters only. Values other than text always have.
func legalValue(v attribute.Value) bool {
	switch v.Type() {
	case attribute.STRING:
		return utf8.ValidString(v.AsString())
	case attribute.STRINGSLICE:
		return !slices.ContainsFunc(v.AsStringSlice(), func(s string) bool { return !utf8.ValidString(s) })
	}
	return true
}

// mendAll returns a copy of attributes in which broken characters are replaced.
func mendAll(attrs []attribute.KeyValue) []attribute.KeyValue {
	out := slices.Clone(attrs)
	for i := range out {
		if legalValue(out[i].Value) {
			continue
		}
		if out[i].Value.Type() == attribute.STRING {
			out[i].Value = attribute.StringValue(mend(out[i].Value.AsString()))
			continue
		}
		all := out[i].Value.AsStringSlice()
		for j := range all {
			all[j] = mend(all[j])
		}
		out[i].Value = attribute.StringSliceValue(all)
	}
	return out
}

// mend returns s with a replacement character in place of each run of broken bytes.
func mend(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
