package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// exports says where traces go, in both protocols.
func exports(c *collector) map[string]object {
	return map[string]object{
		"grpc": {"endpoint": c.grpc, "insecure": true},
		"http": {"endpoint": c.http, "insecure": true, "protocol": "http"},
	}
}

func traces(otlp object, more ...any) object {
	t := object{"otlp": otlp}
	for i := 0; i+1 < len(more); i += 2 {
		t[more[i].(string)] = more[i+1]
	}
	return object{"traces": t}
}

// names are the names of spans, in the order they began.
func names(spans []ptrace.Span) []string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans,
		func(a, b ptrace.Span) int { return int(int64(a.StartTimestamp()) - int64(b.StartTimestamp())) })
	var out []string
	for _, s := range spans {
		out = append(out, s.Name())
	}
	return out
}

// await returns a request's spans once there are as many as wanted: the settlement
// may end after the request.
func (c *collector) await(t *testing.T, id string, want int) (ptrace.Span, []ptrace.Span) {
	t.Helper()
	for range 2400 {
		if server, spans := c.request(t, id); len(spans) >= want {
			return server, spans
		}
		time.Sleep(50 * time.Millisecond)
	}
	server, spans := c.request(t, id)
	t.Fatalf("request %s has %d spans, want %d: %q", id, len(spans), want, names(spans))
	return server, spans
}

// find returns the spans of a name, of which there must be one.
func find(t *testing.T, spans []ptrace.Span, name string) []ptrace.Span {
	t.Helper()
	var out []ptrace.Span
	for _, s := range spans {
		if s.Name() == name {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no span %q, only %q", name, names(spans))
	}
	return out
}

func TestTracesHaveCorrectParents(t *testing.T) {
	for _, protocol := range []string{"grpc", "http"} {
		for _, lane := range []struct {
			name, path string
			stream     bool
		}{{"untouched stream", "/v1/chat/completions", true}, {"untouched whole", "/v1/chat/completions", false},
			{"translated stream", "/v1/messages", true}, {"translated whole", "/v1/messages", false}} {
			t.Run(protocol+" "+lane.name, func(t *testing.T) {
				t.Parallel()
				c, u := startCollector(t), newUpstream(t)
				oneRequest(t, c, u, start(t, u, traces(exports(c)[protocol])), lane.path, lane.stream)
			})
		}
	}
}

// oneRequest makes a request whose first attempt fails, whose retry fails, too, and
// that falls back to another provider.
func oneRequest(t *testing.T, c *collector, u *upstream, g *gateway, path string, stream bool) {
	u.will(503, 503)
	id, status, reply := g.ask(path, chat("priced", stream), "anthropic-version", "2023-06-01")
	if status != 200 {
		t.Fatalf("status %d: %s", status, reply)
	}
	server, spans := c.await(t, id, 10)
	want := []string{
		"POST " + path,
		"auth",
		"ledger.hold",
		"translate",
		"chat up-1",
		"translate",
		"chat up-1",
		"translate",
		"chat up-2",
		"ledger.settle",
	}
	if got := names(spans); !slices.Equal(got, want) {
		t.Errorf("spans %q, want %q", got, want)
	}
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
	failed := find(t, spans, "chat up-1")
	for _, s := range failed {
		if s.Kind() != ptrace.SpanKindClient || s.Status().Code() != ptrace.StatusCodeError ||
			text(s, "error.type") != "overloaded" && text(s, "error.type") != "transient" {
			t.Errorf("a failed attempt is %s, %s, error.type %q", s.Kind(), s.Status().Code(), text(s, "error.type"))
		}
	}
	good := find(t, spans, "chat up-2")[0]
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "up-2",
		"gen_ai.request.stream":     fmt.Sprint(stream),
		"gen_ai.request.max_tokens": "50", "gen_ai.response.id": "chatcmpl-up", "gen_ai.response.model": "up-model",
		"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.usage.input_tokens": "11",
		"gen_ai.usage.output_tokens":           "7",
		"gen_ai.usage.cache_read.input_tokens": "3", "gen_ai.usage.reasoning.output_tokens": "2",
		"stagedoor.provider": "second", "stagedoor.attempt": "3", "stagedoor.cost.usd": "0.000025", "error.type": "",
	} {
		if got := text(good, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if stream {
		if good.Events().Len() != 1 || good.Events().At(0).Name() != "gen_ai.first_token" ||
			text(good, "gen_ai.response.time_to_first_chunk") == "" {
			t.Errorf("the call has %d events, want the first token's", good.Events().Len())
		}
	}
	if got := text(find(t, spans, "ledger.settle")[0], "stagedoor.cost.usd"); got != "0.000025" {
		t.Errorf("settled at %s, want 0.000025", got)
	}
	if server.Events().Len() != 2 || server.Events().At(0).Name() != "stagedoor.retry" {
		t.Errorf("the request has %d events, want two of attempts that follow", server.Events().Len())
	}
	for key, want := range map[string]string{"http.request.method": "POST", "http.route": path, "http.response.status_code": "200",
		"stagedoor.attempts": "3", "stagedoor.provider": "second", "gen_ai.request.model": "priced"} {
		if got := text(server, key); got != want {
			t.Errorf("the request's %s is %q, want %q", key, got, want)
		}
	}
	if !strings.Contains(g.log(), `"trace_id":"`+server.TraceID().String()+`"`) {
		t.Errorf("no line of the log names trace %s", server.TraceID())
	}
	nothingSecret(t, spans, g)
}

// nothingSecret looks for prompts, replies and keys.
func nothingSecret(t *testing.T, spans []ptrace.Span, g *gateway) {
	t.Helper()
	all := ptrace.NewTraces()
	to := all.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, s := range spans {
		s.CopyTo(to.AppendEmpty())
	}
	written, err := (&ptrace.JSONMarshaler{}).MarshalTraces(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secretPrompt, secretReply, secretReply64, secretKey, key, admin} {
		if strings.Contains(string(written), secret) {
			t.Errorf("%q is in the spans", secret)
		}
		if strings.Contains(g.log(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestWaitsInAQueueHaveASpan(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["grpc"]))
	id, status := g.queue(u, "/v1/chat/completions", chat("narrow", false))
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	server, spans := c.await(t, id, 5)
	queue := find(t, spans, "queue")[0]
	if queue.ParentSpanID() != server.SpanID() || text(queue, "stagedoor.provider") != "narrow" ||
		text(queue, "stagedoor.queue.wait") == "" {
		t.Errorf("queue has parent %s and attributes %v", queue.ParentSpanID(), queue.Attributes().AsRaw())
	}
	if call := find(t, spans, "chat up-3")[0]; call.StartTimestamp() < queue.EndTimestamp() {
		t.Error("the call began before the wait had ended")
	}
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
	caller      = "00-" + callerTrace + "-" + callerSpan + "-01"
)

func TestTrustedCallersAreParents(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u,
		traces(exports(c)["grpc"], "trust", []string{"127.0.0.0/8"}, "propagate", []string{"first"}, "sample", 0))
	id, _, _ := g.ask("/v1/chat/completions", chat("priced", true), "traceparent", caller)
	server, spans := c.await(t, id, 6)
	if server.TraceID().String() != callerTrace || server.ParentSpanID().String() != callerSpan {
		t.Errorf("the request is %s below %s, want %s below %s", server.TraceID(), server.ParentSpanID(), callerTrace,
			callerSpan)
	}
	call := find(t, spans, "chat up-1")[0]
	if got, want := u.lastHeader("traceparent"), "00-"+callerTrace+"-"+call.SpanID().String()+"-01"; got != want {
		t.Errorf("the upstream was sent %q, want %q: our call as the parent", got, want)
	}
}

func TestOtherCallersAreLinkedToAndUpstreamsToldNothing(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["http"], "trust", []string{"192.0.2.0/24"}))
	id, _, _ := g.ask("/v1/chat/completions", chat("priced", true), "traceparent", caller)
	server, _ := c.request(t, id)
	if server.TraceID().String() == callerTrace || !server.ParentSpanID().IsEmpty() {
		t.Error("an untrusted caller is the parent")
	}
	if server.Links().Len() != 1 || server.Links().At(0).TraceID().String() != callerTrace {
		t.Errorf("%d links, want one to the caller", server.Links().Len())
	}
	if got := u.lastHeader("traceparent"); got != "" {
		t.Errorf("the upstream was sent %q, want nothing", got)
	}
}

func TestFailedAndSlowRequestsAreKeptWhateverTheSample(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["grpc"], "sample", 0, "slow", "2s"))
	fast, _, _ := g.ask("/v1/chat/completions", chat("priced", true))
	u.will(503)
	retried, status, _ := g.ask("/v1/chat/completions", chat("priced", true))
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	u.slow(2 * time.Second)
	slow, _, _ := g.ask("/v1/chat/completions", chat("priced", false))
	for _, id := range []string{retried, slow} {
		server, spans := c.await(t, id, 6)
		if len(find(t, spans, "chat up-1")) == 0 || server.SpanID().IsEmpty() {
			t.Errorf("request %s was not kept whole: %q", id, names(spans))
		}
	}
	for _, s := range c.spans() {
		if text(s, "stagedoor.request.id") == fast {
			t.Error("a request that was neither slow nor failed was kept")
		}
	}
}

func TestRefusedRequestsHaveATraceThatSaysWhy(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["grpc"]))
	id, status, _ := g.ask("/v1/chat/completions", chat("priced", true), "Authorization", "Bearer sd-wrong")
	server, spans := c.await(t, id, 2)
	if auth := find(t, spans, "auth")[0]; status != 401 || auth.Status().Code() != ptrace.StatusCodeError ||
		text(auth, "error.type") != "invalid_api_key" {
		t.Errorf("status %d, auth is %s, %q", status, auth.Status().Code(), text(auth, "error.type"))
	}
	if server.Status().Code() == ptrace.StatusCodeError {
		t.Error("a client's mistake is no failure of the server")
	}
	u.will(400)
	id, _, _ = g.ask("/v1/chat/completions", chat("priced", false))
	_, spans = c.await(t, id, 6)
	if settle := find(t, spans, "ledger.settle")[0]; text(settle, "stagedoor.cost.usd") != "0" {
		t.Errorf("a refused request cost %s", text(settle, "stagedoor.cost.usd"))
	}
}

func TestWorkInTheBackgroundIsLinkedToItsRequest(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["grpc"]))
	id, status, reply := g.ask(
		"/v1/responses",
		`{"model":"priced","input":"hello","background":true,"max_output_tokens":20}`,
	)
	if status != 200 {
		t.Fatalf("status %d: %s", status, reply)
	}
	server, _ := c.request(t, id)
	for range 2400 {
		for _, s := range c.spans() {
			if s.Name() != "background" {
				continue
			}
			if s.TraceID() == server.TraceID() || s.Links().Len() != 1 || s.Links().At(0).SpanID() != server.SpanID() {
				t.Errorf("the work is of trace %s with %d links, want one of its own with a link to the request",
					s.TraceID(), s.Links().Len())
			}
			find(t, ofTrace(c.spans(), s.TraceID()), "chat up-1")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("no span of the background came within 10 s")
}

func TestStepsOfVideoJobsAreLinkedToTheRequestThatAskedForThem(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["http"]))
	id, status, reply := g.ask("/v1/videos", `{"model":"clips","prompt":"a fox [sandbox: job=1s]","seconds":"4"}`)
	if status != 200 {
		t.Fatalf("status %d: %s", status, reply)
	}
	server, _ := c.request(t, id)
	seen := make(map[string]bool)
	for range 2400 {
		for _, s := range c.spans() {
			if !strings.HasPrefix(s.Name(), "video.") {
				continue
			}
			seen[s.Name()] = true
			if s.Links().Len() != 1 || s.Links().At(0).SpanID() != server.SpanID() || s.TraceID() == server.TraceID() {
				t.Fatalf("%s is not linked to the request", s.Name())
			}
		}
		if seen["video.submit"] && seen["video.poll"] && seen["video.settle"] {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("saw the steps %v within 20 s, want submit, poll and settle", seen)
}

func TestPromptsAndRepliesAreInTracesWhenSwitchedOn(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, traces(exports(c)["grpc"], "content", true))
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		for _, stream := range []bool{true, false} {
			id, _, _ := g.ask(path, chat("priced", stream), "anthropic-version", "2023-06-01")
			_, spans := c.await(t, id, 6)
			call := find(t, spans, "chat up-1")[0]
			wantIn := `[{"role":"user","parts":[{"type":"text","content":"` + secretPrompt + `"}]}]`
			if got := text(call, "gen_ai.input.messages"); got != wantIn {
				t.Errorf("%s, stream %t: the prompt is %s, want %s", path, stream, got, wantIn)
			}
			if got := text(call, "gen_ai.output.messages"); !strings.Contains(got, secretReply) ||
				!strings.HasPrefix(got, `[{"role":"assistant"`) {
				t.Errorf("%s, stream %t: the reply is %s", path, stream, got)
			}
		}
	}
}

func TestStandardVariablesSwitchTracingOn(t *testing.T) {
	t.Parallel()
	c, u := startCollector(t), newUpstream(t)
	g := start(t, u, object{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.http,
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_SERVICE_NAME=gateway-7")
	id, _, _ := g.ask("/v1/chat/completions", chat("priced", true))
	c.request(t, id)
	service, _ := c.traces.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes().Get("service.name")
	if service.AsString() != "gateway-7" {
		t.Errorf("service.name is %q, want gateway-7", service.AsString())
	}
}

func TestAStalledCollectorCostsItsSpansOnly(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	stalled := freeAddr(t) // has no listener
	g := start(
		t,
		u,
		object{
			"traces":  object{"otlp": object{"endpoint": stalled, "insecure": true}},
			"metrics": object{"prometheus": true},
		},
	)
	for range 20 {
		if _, status, reply := g.ask("/v1/chat/completions", chat("priced", true)); status != 200 {
			t.Fatalf("status %d: %s", status, reply)
		}
	}
	for range 2400 {
		if strings.Contains(g.log(), "spans were dropped") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the log does not say that spans were dropped")
}
