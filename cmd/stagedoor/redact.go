package main

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
)

// redacting is a handler that writes text, numbers, times, errors and values with a
// method for the log. Of any other value, such as a request, a body or a struct that
// happens to hold a key, it writes only the name of the type. A call that passes too
// much therefore cannot put a secret into the log.
type redacting struct{ slog.Handler }

// Handle implements slog.Handler.
func (h redacting) Handle(ctx context.Context, r slog.Record) error {
	clean := true
	r.Attrs(func(a slog.Attr) bool {
		clean = legible(a.Value)
		return clean
	})
	if clean {
		return h.Handler.Handle(ctx, r)
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(redacted(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = redacted(a)
	}
	return redacting{h.Handler.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h redacting) WithGroup(name string) slog.Handler { return redacting{h.Handler.WithGroup(name)} }

// legible reports whether a value is written as it is.
func legible(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindGroup:
		return !slices.ContainsFunc(v.Group(), func(a slog.Attr) bool { return !legible(a.Value) })
	case slog.KindAny:
		switch v.Any().(type) {
		case nil, error, string, []string:
			return true
		}
		kind := reflect.TypeOf(v.Any()).Kind()
		return kind == reflect.String || kind <= reflect.Float64 // text and numbers with a name
	}
	return true // a LogValuer answers for itself
}

// redacted returns an attribute as it may be written, with groups looked through.
func redacted(a slog.Attr) slog.Attr {
	if legible(a.Value) {
		return a
	}
	if a.Value.Kind() != slog.KindGroup {
		return slog.String(a.Key, fmt.Sprintf("(%T)", a.Value.Any()))
	}
	var inner []slog.Attr
	for _, g := range a.Value.Group() {
		inner = append(inner, redacted(g))
	}
	return slog.Attr{Key: a.Key, Value: slog.GroupValue(inner...)}
}
