package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/http/accesslog"
)

// Tracing begins the trace of every request.
type Tracing struct {
	Tracer trace.Tracer
	// Wanted, if set, says whether anybody wants spans at the moment.
	Wanted func() bool
	// Trust are the networks whose callers say which trace they are in. What
	// others say is linked to and not believed: it would decide what is kept.
	Trust []netip.Prefix
}

// on reports whether the request is to be traced.
func (t *Tracing) on(r *http.Request) bool {
	return t != nil && (t.Wanted == nil || t.Wanted()) && !healthPath(r.URL.Path)
}

// begin starts the request's span.
func (t *Tracing) begin(r *http.Request, id string) (*http.Request, trace.Span) {
	ctx := r.Context()
	options := [3]trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(telemetry.HTTPMethod.String(method(r.Method)), telemetry.URLPath.String(accesslog.Path(r)),
			telemetry.URLScheme.String(scheme(r)), telemetry.ProtocolVersion.String(version(r)), telemetry.RequestID.String(id))}
	n := 2
	if caller := callerOf(r); caller.IsValid() {
		if t.trusts(r.RemoteAddr) {
			ctx = trace.ContextWithRemoteSpanContext(ctx, caller)
		} else {
			options[n] = trace.WithLinks(trace.Link{SpanContext: caller})
			n++
		}
	}
	ctx, span := t.Tracer.Start(ctx, spanName(method(r.Method), ""), options[:n]...)
	return r.WithContext(ctx), span
}

// end finishes a request's span.
func (t *Tracing) end(span trace.Span, r *http.Request, reply *accesslog.Reply) {
	status := reply.Status()
	if route := reply.Route(); route != "" {
		span.SetName(spanName(method(r.Method), route))
		span.SetAttributes(telemetry.HTTPRoute.String(route))
	}
	span.SetAttributes(telemetry.HTTPStatus.Int(status))
	// A door that knows more than the status has said so already.
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// callerOf is the span the caller says it is in.
func callerOf(r *http.Request) trace.SpanContext {
	if len(r.Header["Traceparent"]) != 1 {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	return trace.SpanContextFromContext(ctx)
}

func (t *Tracing) trusts(address string) bool {
	if len(t.Trust) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(address)
	return err == nil && contains(t.Trust, from.Addr().Unmap())
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// otherMethod stands for every method that HTTP does not know.
const otherMethod = "_OTHER"

// method is one of those that HTTP knows; clients may send any word.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return otherMethod
}

// spanName is what the conventions call a request's span.
func spanName(method, route string) string {
	if method == otherMethod {
		method = "HTTP"
	}
	if route == "" {
		return method
	}
	return method + " " + route
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func version(r *http.Request) string {
	switch {
	case r.ProtoMajor == 2:
		return "2"
	case r.ProtoMajor == 1 && r.ProtoMinor == 0:
		return "1.0"
	}
	return "1.1"
}

// routeOf is the path of a pattern; "" for what nobody serves.
func routeOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	if pattern == "/" {
		return ""
	}
	return pattern
}

// measure records the request's duration.
func (s *Server) measure(r *http.Request, reply *accesslog.Reply) {
	if s.options.Metrics == nil || healthPath(r.URL.Path) {
		return
	}
	s.options.Metrics.Request(r.Context(), scheme(r), method(r.Method), reply.Route(), reply.Status(), time.Since(reply.Began()))
}
