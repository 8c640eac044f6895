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

// Tracing configures the traces of requests.
type Tracing struct {
	Tracer trace.Tracer
	// Wanted, if set, reports whether spans are recorded at the moment.
	Wanted func() bool
	// Trust lists the networks whose callers may set the parent of a trace. The spans of
	// other callers are only linked, because a parent decides whether a trace is kept.
	Trust []netip.Prefix
}

// on reports whether to trace the request.
func (t *Tracing) on(r *http.Request) bool {
	return t != nil && (t.Wanted == nil || t.Wanted()) && !healthPath(r.URL.Path)
}

// begin starts the span of a request and returns the request with the span in its context.
func (t *Tracing) begin(r *http.Request, id string) (*http.Request, trace.Span) {
	ctx := r.Context()
	options := [3]trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(telemetry.HTTPMethod.String(method(r.Method)), telemetry.URLPath.String(accesslog.Path(r)),
			telemetry.URLScheme.String(scheme(r)), telemetry.ProtocolVersion.String(version(r)),
			telemetry.RequestID.String(id))}
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

// end sets the outcome of a request on its span and ends the span.
func (t *Tracing) end(span trace.Span, r *http.Request, reply *accesslog.Reply) {
	status := reply.Status()
	if route := reply.Route(); route != "" {
		span.SetName(spanName(method(r.Method), route))
		span.SetAttributes(telemetry.HTTPRoute.String(route))
	}
	span.SetAttributes(telemetry.HTTPStatus.Int(status))
	// A handler that knows more than the status has set it on the span.
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// callerOf returns the span that the caller sent, which is invalid if there is none.
func callerOf(r *http.Request) trace.SpanContext {
	if len(r.Header["Traceparent"]) != 1 {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	return trace.SpanContextFromContext(ctx)
}

// trusts reports whether the caller at address decides about its traces.
func (t *Tracing) trusts(address string) bool {
	if len(t.Trust) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(address)
	return err == nil && contains(t.Trust, from.Addr().Unmap())
}

// contains reports whether one of the networks has a.
func contains(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// otherMethod replaces methods that HTTP does not define, so that clients cannot create metrics.
const otherMethod = "_OTHER"

// method returns m if HTTP defines it, or else otherMethod.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return otherMethod
}

// spanName returns the name of a request's span by the conventions of OpenTelemetry.
func spanName(method, route string) string {
	if method == otherMethod {
		method = "HTTP"
	}
	if route == "" {
		return method
	}
	return method + " " + route
}

// scheme returns the scheme of the connection, for spans.
func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// version returns the version of HTTP, for spans.
func version(r *http.Request) string {
	switch {
	case r.ProtoMajor == 2:
		return "2"
	case r.ProtoMajor == 1 && r.ProtoMinor == 0:
		return "1.0"
	}
	return "1.1"
}

// routeOf returns the path of a pattern, or "" for requests without a route.
func routeOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	if pattern == "/" {
		return ""
	}
	return pattern
}

// measure records the duration of a request in the metrics.
func (s *Server) measure(r *http.Request, reply *accesslog.Reply) {
	if s.options.Metrics == nil || healthPath(r.URL.Path) {
		return
	}
	s.options.Metrics.Request(r.Context(), scheme(r), method(r.Method), reply.Route(), reply.Status(),
		time.Since(reply.Began()))
}
