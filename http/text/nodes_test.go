package text_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/http/nodes"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

// connect gives a gateway on a node of a cluster a listener for the others.
func (g *gateway) connect(logger *slog.Logger) {
	node, ok := g.store.(*statetest.Node)
	if !ok {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	node.Listen(l.Addr().String())
	secret, err := g.state.Secret(g.t.Context(), "nodes", 32)
	if err == nil {
		g.nodes, err = nodes.New(nodes.Options{Logger: logger, Secret: secret, Self: g.state.Node(),
			List: node.Members().List})
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.nodes.ServeResponses(g.runtime.Background())
	g.runtime.Background().FollowWith(g.nodes.FollowResponse)
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { g.nodes.Serve(ctx, l) })
	g.stopNodes = sync.OnceFunc(func() { stop(); serving.Wait(); g.nodes.Close() })
	g.t.Cleanup(g.stopNodes)
}

// onTwoNodes returns two gateways that serve together in front of an upstream.
func onTwoNodes(t *testing.T, upstream http.HandlerFunc) (a, b *front) {
	t.Helper()
	calls := httptest.NewServer(upstream)
	t.Cleanup(calls.Close)
	cluster := statetest.NewCluster()
	join := func(name string) func(*gateway) {
		return func(g *gateway) { g.store = journal.Store(cluster.Join(name)) }
	}
	first := open(t, vendorAt(calls.URL), join("a"))
	first.key("user7", func(k *identity.Key) { k.User = "7" })
	second := open(t, vendorAt(calls.URL), join("b"), func(g *gateway) { g.secrets = first.secrets })
	return newFront(t, first), newFront(t, second)
}

// TestAStreamIsResumedThroughAnotherGateway: it goes on there from the event that the client got last, as it is made.
// Only keys that may read it find it, and a gateway that does not answer is not taken for one that has no such request.
func TestAStreamIsResumedThroughAnotherGateway(t *testing.T) {
	u := newGated()
	a, b := onTwoNodes(t, u.serve)
	go func() { u.say <- "one"; u.say <- "two" }()
	first := a.send("POST", "/v1/chat/completions", askFor("dear", streamed), "X-On-Disconnect", "detach").until("two")
	id := first.Header.Get("X-Request-Id")
	resume := func(headers ...string) *client {
		return b.send("GET", "/v1/requests/"+id+"/events", "", headers...)
	}
	second := resume("Last-Event-ID", "1").until("two")
	if second.Header.Get("X-Original-Request-Id") != id || second.Header.Get("Content-Type") != "text/event-stream" ||
		strings.Contains(second.got.String(), "one") {
		t.Errorf("the rest begins with %v\n%s", second.Header, &second.got)
	}
	resume("Last-Event-ID", "99").want(400, "invalid_value")
	resume(b.g.as("all")...).want(404, "request_not_found")
	b.g.key("narrow", func(k *identity.Key) { k.User, k.Scopes = "7", []string{"messages"} })
	resume(b.g.as("narrow")...).want(403, "permission_denied")
	b.send("GET", "/v1/requests/unknown/events", "").want(404, "request_not_found")
	go func() { u.say <- "three"; close(u.say) }()
	want := first.whole()
	if got := second.whole(); !strings.HasSuffix(want, got) || !strings.Contains(got, "[DONE]") {
		t.Errorf("the rest is\n%s\nof\n%s", got, want)
	}
	if got := resume().whole(); got != want {
		t.Errorf("all of it is\n%s\nand not\n%s", got, want)
	}
	a.g.stopNodes()
	resume().want(503, "gateway_silent")
}

// TestABackgroundResponseIsFollowedThroughAnotherGateway: its events arrive there while it is made, and are the same.
func TestABackgroundResponseIsFollowedThroughAnotherGateway(t *testing.T) {
	u := newGated()
	a, b := onTwoNodes(t, u.serve)
	go func() { u.say <- "one"; u.say <- "two" }()
	const body = `{"model":"dear","input":"hello","stream":true,"background":true}`
	first := a.send("POST", "/v1/responses", body).until("two")
	_, rest, _ := strings.Cut(first.got.String(), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	second := b.send("GET", "/v1/responses/"+id+"?stream=true&starting_after=2", "").until("two")
	go func() { u.say <- "three"; close(u.say) }()
	want := first.whole()
	if got := second.whole(); !strings.HasSuffix(want, got) || !strings.Contains(got, "response.completed") ||
		strings.Contains(got, "response.created") {
		t.Errorf("the rest is\n%s\nof\n%s", got, want)
	}
}

// TestARepeatOnAnotherGatewayGetsTheReplyOfTheFirst: while the request runs there and after its end. The upstream is
// called once, and the key is for one request on all gateways.
func TestARepeatOnAnotherGatewayGetsTheReplyOfTheFirst(t *testing.T) {
	u, calls := newGated(), atomic.Int32{}
	a, b := onTwoNodes(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); u.serve(w, r) })
	ask := func(f *front, more string) *client {
		return f.send("POST", "/v1/chat/completions", askFor("dear", streamed+more), "Idempotency-Key", "k")
	}
	go func() { u.say <- "one"; u.say <- "two" }()
	first := ask(a, "").until("two")
	second := ask(b, "").until("two")
	ask(b, `,"max_tokens":9`).want(409, "idempotency_key_reused")
	go func() { u.say <- "three"; close(u.say) }()
	want := first.whole()
	if got := second.whole(); got != want || !strings.Contains(got, "[DONE]") {
		t.Errorf("through the other gateway came\n%s\nand not\n%s", got, want)
	}
	third := ask(b, "")
	if got := third.whole(); got != want {
		t.Errorf("after the end came\n%s\nand not\n%s", got, want)
	}
	for _, c := range []*client{second, third} {
		if c.Header.Get("Idempotent-Replayed") != "true" ||
			c.Header.Get("X-Original-Request-Id") != first.Header.Get("X-Request-Id") {
			t.Errorf("headers %v", c.Header)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestAReplyOfAGatewayThatEndsIsCutOff: so that its client notices that the rest is missing, and a repeat is not given
// half of it.
func TestAReplyOfAGatewayThatEndsIsCutOff(t *testing.T) {
	u := newGated()
	a, b := onTwoNodes(t, u.serve)
	go func() { u.say <- "one"; u.say <- "two" }()
	first := a.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k").until("two")
	second := b.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k").until("two")
	a.g.stopNodes()
	if rest, err := io.ReadAll(second.Body); err == nil {
		t.Errorf("the reply seems to be whole, and ends with %q", rest)
	}
	close(u.say)
	want := first.whole()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // until b has heard of the end
		if _, stored := work.FindReply(b.g.state.View(), "user:7", "k"); stored || time.Now().After(deadline) {
			break
		}
	}
	repeat := b.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k")
	if got := repeat.whole(); got != want {
		t.Errorf("the repeat is\n%s\nand not\n%s", got, want)
	}
}

// TestARepeatBeyondTheShareIsRefusedAndNotMadeAgain: neither the gateway that serves the request nor the one that was
// asked has room for it, and it is charged once. The same is true of a client that resumes.
func TestARepeatBeyondTheShareIsRefusedAndNotMadeAgain(t *testing.T) {
	u, calls := newGated(), atomic.Int32{}
	a, b := onTwoNodes(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); u.serve(w, r) })
	ask := func(f *front) *client {
		return f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k")
	}
	go func() { u.say <- "one"; u.say <- "two" }()
	first := ask(a).until("two")
	relayed := ask(b).until("two")
	resume := func() *client { return b.send("GET", "/v1/requests/"+first.Header.Get("X-Request-Id")+"/events", "") }
	for _, g := range []*gateway{a.g, b.g} {
		g.nodes.Relays().Resize(2)
		ask(b).want(429, "relays_share_exceeded")
		resume().want(429, "relays_share_exceeded")
		g.nodes.Relays().Resize(0)
	}
	close(u.say)
	if got, want := relayed.whole(), first.whole(); got != want {
		t.Errorf("through the other gateway came\n%s\nand not\n%s", got, want)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}
