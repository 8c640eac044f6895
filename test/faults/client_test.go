package faults

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// TestMain lets more tests run beside each other than there are processors: most of
// their time they wait for clocks.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	harness.Main(m)
}

// upstreamKey is the provider's key, which no client and no log may ever see.
const upstreamKey = "sk-upstream-5ecret"

// A way is how a client asks: a shape, whole or streamed.
type way struct {
	inbound  cases.Shape
	streamed bool
}

func (w way) String() string {
	if w.streamed {
		return string(w.inbound) + "-stream"
	}
	return string(w.inbound) + "-whole"
}

// ways lists all of them.
func ways() []way {
	var out []way
	for _, shape := range cases.Shapes {
		out = append(out, way{shape, false}, way{shape, true})
	}
	return out
}

// body is a client's request for a model.
func (w way) body(model string) string {
	switch w.inbound {
	case cases.Responses:
		return fmt.Sprintf(`{"model":%q,"input":"hi","stream":%v}`, model, w.streamed)
	case cases.Completions:
		return fmt.Sprintf(`{"model":%q,"prompt":"hi","stream":%v}`, model, w.streamed)
	case cases.Messages:
		return fmt.Sprintf(`{"model":%q,"max_tokens":64,"messages":[{"role":"user","content":"hi"}],"stream":%v}`,
			model, w.streamed)
	case cases.Gemini:
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	}
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}],"stream":%v}`, model, w.streamed)
}

// request is a client's request to a gateway.
func (w way) request(ctx context.Context, t testing.TB, g *harness.Gateway, model string) *http.Request {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+w.inbound.Path(model, w.streamed),
		bytes.NewReader([]byte(w.body(model))))
	if err != nil {
		t.Fatal(err)
	}
	cases.Authorize(q, w.inbound, g.Key)
	return q
}

// client opens a connection per request, so that a cancelled one is a closed one.
var client = &http.Client{Timeout: 3 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// ask sends a request and reads the reply to its end.
func (w way) ask(t testing.TB, g *harness.Gateway, model string) *cases.Reply {
	t.Helper()
	response, err := client.Do(w.request(t.Context(), t, g, model))
	if err != nil {
		t.Fatalf("no reply: %v", err)
	}
	return cases.ReadReply(response)
}

// upstreams are the shapes an upstream may have toward a way of asking: a
// completions upstream makes sense only for its own clients.
func (w way) upstreams() []cases.Shape {
	out := []cases.Shape{cases.Chat, cases.Responses, cases.Messages, cases.Gemini}
	if w.inbound == cases.Completions {
		out = append(out, cases.Completions)
	}
	return out
}

// wantsStream tells what the gateway asked its upstream for.
func wantsStream(c *faultd.Conn) bool {
	if strings.Contains(c.Request.URL.Path, ":streamGenerateContent") {
		return true
	}
	return bytes.Contains(bytes.ReplaceAll(c.Body, []byte(" "), nil), []byte(`"stream":true`))
}

// A bench is a gateway in front of one faultd. Every cell of the catalogue has a
// provider and a model of its own name, so that one cell's failures do not open
// another's breaker.
type bench struct {
	server  *faultd.Server
	gateway *harness.Gateway
}

// A cell is one provider of a bench.
type cell struct {
	name     string
	upstream cases.Shape
	baseURL  string // other than the faultd's
	timeouts harness.Timeouts
	retries  int
	script   faultd.Script
}

var (
	// patient is longer than any wait of a test, so that no request ends by a clock.
	patient = harness.Timeouts{Connect: "2m", FirstByte: "2m", Idle: "2m", Total: "5m"}
	// impatient is for rows that wait for a clock. It is enough for a busy machine to call the upstream, and to bring
	// what it has said.
	impatient = harness.Timeouts{Connect: "2m", FirstByte: "4s", Idle: "4s", Total: "1m"}
)

func newBench(t *testing.T, cells []cell) *bench {
	t.Helper()
	server, err := faultd.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	config := harness.Config{Providers: map[string]harness.Provider{}, Models: map[string]harness.Model{}}
	for _, c := range cells {
		base := c.baseURL
		if base == "" {
			base = cases.BaseURL(c.upstream, server.Addr()+"/"+c.name)
		}
		config.Providers[c.name] = harness.Provider{
			Shape: string(
				c.upstream,
			), BaseURL: base, APIKeys: []string{upstreamKey}, Retries: c.retries, Timeouts: &c.timeouts,
		}
		config.Models[c.name] = harness.Model{Targets: []harness.Target{{Provider: c.name, Model: c.name}}}
		if c.script != nil {
			server.Handle(c.name, c.script)
		}
	}
	b := &bench{server: server, gateway: harness.Start(t, config)}
	t.Cleanup(func() {
		if strings.Contains(b.gateway.Logs(), upstreamKey) {
			t.Error("the provider's key is in the log")
		}
	})
	return b
}
