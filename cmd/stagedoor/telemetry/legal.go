package telemetry

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// valid returns span with whole characters only. OTLP has no others, and one broken text makes a whole batch fail, so
// that one client could lose the spans of all others with a path of broken bytes.
func valid(span sdktrace.ReadOnlySpan) sdktrace.ReadOnlySpan {
	events := span.Events()
	whole := utf8.ValidString(span.Name()) && utf8.ValidString(span.Status().Description) && validAll(span.Attributes())
	for i := 0; whole && i < len(events); i++ {
		whole = utf8.ValidString(events[i].Name) && validAll(events[i].Attributes)
	}
	if whole {
		return span
	}
	m := sanitizedSpan{
		ReadOnlySpan: span,
		name:         sanitizeText(span.Name()),
		status:       span.Status(),
		attributes:   sanitizeAttributes(span.Attributes()),
	}
	m.status.Description = sanitizeText(m.status.Description)
	m.events = slices.Clone(events)
	for i := range m.events {
		e := &m.events[i]
		e.Name, e.Attributes = sanitizeText(e.Name), sanitizeAttributes(e.Attributes)
	}
	return m
}

// sanitizedSpan is a span with texts that were changed.
type sanitizedSpan struct {
	sdktrace.ReadOnlySpan
	name       string
	status     sdktrace.Status
	attributes []attribute.KeyValue
	events     []sdktrace.Event
}

// Name implements sdktrace.ReadOnlySpan.
func (m sanitizedSpan) Name() string { return m.name }

// Status implements sdktrace.ReadOnlySpan.
func (m sanitizedSpan) Status() sdktrace.Status { return m.status }

// Attributes implements sdktrace.ReadOnlySpan.
func (m sanitizedSpan) Attributes() []attribute.KeyValue { return m.attributes }

// Events implements sdktrace.ReadOnlySpan.
func (m sanitizedSpan) Events() []sdktrace.Event { return m.events }

// validAll reports whether all attributes have whole characters only.
func validAll(attrs []attribute.KeyValue) bool {
	for i := range attrs {
		if !validValue(attrs[i].Value) {
			return false
		}
	}
	return true
}

// validValue reports whether a value has whole characters only. Values other than text always have.
func validValue(v attribute.Value) bool {
	switch v.Type() {
	case attribute.STRING:
		return utf8.ValidString(v.AsString())
	case attribute.STRINGSLICE:
		return !slices.ContainsFunc(v.AsStringSlice(), func(s string) bool { return !utf8.ValidString(s) })
	}
	return true
}

// sanitizeAttributes returns a copy of attributes in which broken characters are replaced.
func sanitizeAttributes(attrs []attribute.KeyValue) []attribute.KeyValue {
	out := slices.Clone(attrs)
	for i := range out {
		if validValue(out[i].Value) {
			continue
		}
		if out[i].Value.Type() == attribute.STRING {
			out[i].Value = attribute.StringValue(sanitizeText(out[i].Value.AsString()))
			continue
		}
		all := out[i].Value.AsStringSlice()
		for j := range all {
			all[j] = sanitizeText(all[j])
		}
		out[i].Value = attribute.StringSliceValue(all)
	}
	return out
}

// sanitizeText returns s with a replacement character in place of each run of broken bytes.
func sanitizeText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
