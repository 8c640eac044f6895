package telemetry

import (
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// painting is a request for a picture.
var painting = fmt.Sprintf(`{"model":"painted","prompt":%q,"size":"1024x1024"}`, secretPrompt)

// A request for pictures leaves the trace that one for text does, over both protocols:
// an attempt that failed and its retry are siblings below the request.
func TestPicturesHaveTheTraceOfARequest(t *testing.T) {
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c, u := startCollector(t), newUpstream(t)
			g := start(t, u, traces(exports(c)[protocol]))
			u.will(503)
			id, status, reply := g.ask("/v1/images/generations", painting)
			if status != 200 {
				t.Fatalf("status %d: %s", status, reply)
			}
			server, spans := c.await(t, id, 6)
			want := []string{
				"POST /v1/images/generations",
				"auth",
				"ledger.hold",
				"image_generation gpt-image-1",
				"image_generation gpt-image-1",
				"ledger.settle",
			}
			if got := names(spans); !slices.Equal(got, want) {
				t.Errorf("spans %q, want %q", got, want)
			}
			belowRequest(t, server, spans)
			nothingSecret(t, spans, g)

			calls := find(t, spans, "image_generation gpt-image-1")
			slices.SortFunc(calls,
				func(a, b ptrace.Span) int { return int(int64(a.StartTimestamp()) - int64(b.StartTimestamp())) })
			failed, good := calls[0], calls[len(calls)-1]
			if failed.Status().Code() != ptrace.StatusCodeError || text(failed, "error.type") == "" ||
				text(failed, "stagedoor.attempt") != "1" {
				t.Errorf("the failed attempt is %s with %v", failed.Status().Code(), failed.Attributes().AsRaw())
			}
			for key, want := range map[string]string{"gen_ai.operation.name": "image_generation", "gen_ai.provider.name": "openai", "gen_ai.output.type": "image",
				"gen_ai.request.model": "gpt-image-1", "gen_ai.usage.input_tokens": "4",
				"gen_ai.usage.output_tokens": "5", "stagedoor.provider": "drawing",
				"stagedoor.attempt": "2", "stagedoor.upstream.shape": "images", "stagedoor.cost.usd": "0.04",
				"error.type": ""} {
				if got := text(good, key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			for name, key := range map[string]string{"ledger.hold": "stagedoor.ledger.held.usd", "ledger.settle": "stagedoor.cost.usd"} {
				if got := text(find(t, spans, name)[0], key); got != "0.04" {
					t.Errorf("%s is %s dollars, want 0.04", name, got)
				}
			}
			for key, want := range map[string]string{"http.route": "/v1/images/generations", "http.response.status_code": "200",
				"gen_ai.request.model": "painted", "stagedoor.provider": "drawing", "stagedoor.attempts": "2"} {
				if got := text(server, key); got != want {
					t.Errorf("the request's %s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestPicturesThatQueueHaveASpanForIt(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["http"]))
	id, status := g.queue(u, "/v1/images/generations", painting)
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	server, spans := c.await(t, id, 6)
	belowRequest(t, server, spans)
	queue, call := find(t, spans, "queue")[0], find(t, spans, "image_generation gpt-image-1")[0]
	if text(queue, "stagedoor.provider") != "drawing" || text(queue, "stagedoor.queue.wait") == "" ||
		call.StartTimestamp() < queue.EndTimestamp() {
		t.Errorf("queue has %v", queue.Attributes().AsRaw())
	}
}

// belowRequest wants the request's span to be that of a server, and the parent of all
// others.
func belowRequest(t *testing.T, server ptrace.Span, spans []ptrace.Span) {
	t.Helper()
	if server.Kind() != ptrace.SpanKindServer || !server.ParentSpanID().IsEmpty() {
		t.Errorf("the request's span is %s with parent %s, want a server span without", server.Kind(),
			server.ParentSpanID())
	}
	for _, s := range spans {
		if s.SpanID() != server.SpanID() && s.ParentSpanID() != server.SpanID() {
			t.Errorf("parent of %q is %s, want the request's %s", s.Name(), s.ParentSpanID(), server.SpanID())
		}
		if s.StartTimestamp() > s.EndTimestamp() {
			t.Errorf("%q ends before it begins", s.Name())
		}
	}
}
