package responsesocket_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"stagedoor/actors/flow"
	"stagedoor/actors/kept"
	"stagedoor/actors/runtime"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/live"
	"stagedoor/http/overload"
	"stagedoor/http/responsesocket"
	"stagedoor/http/server"
	"stagedoor/http/sse"
	"stagedoor/http/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/test/harness"
)

// price is easy to add up: a micro-dollar for a token in, ten for one out.
var price = &catalog.Price{Input: 1_000_000, Output: 10_000_000}

// gateway is the built handlers behind a real listener. Models: "sandbox" is the simulator in the process, "dear"
// the same with a price; "chat", "messages", "gemini" and "responses" are the simulator behind HTTP in that shape.
type gateway struct {
	t       testing.TB
	url     string
	server  *server.Server
	live    *live.Handlers
	socket  *responsesocket.Handlers
	auth    *auth.Authenticator
	state   *state.State
	runtime *runtime.Runtime
	memory  *share.Pool
	pool    *overload.Limiter
	log     harness.Buffer
	secrets map[string]string
	off     bool
	scripts http.HandlerFunc // replies to the models "script" and "two", upstreams of shape responses
	// signatures remembers what models made. The default keeps nothing.
	signatures dialogue.SignatureCache

	mu    sync.Mutex
	calls []call
}

// call is a request that an upstream got.
type call struct {
	path string
	body gjson.Result
	raw  http.Header
}

func newID() string {
	id, err := state.NewID("", time.Now(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return id
}

// record notes the request to an upstream and serves it.
func (g *gateway) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		g.calls = append(g.calls, call{r.URL.Path, gjson.ParseBytes(body), r.Header.Clone()})
		g.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, r)
	})
}

// last returns the last request that an upstream got.
func (g *gateway) last() call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.calls) == 0 {
		return call{}
	}
	return g.calls[len(g.calls)-1]
}

func (g *gateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

func open(t testing.TB, more ...func(*gateway)) *gateway {
	t.Helper()
	g := &gateway{t: t, secrets: make(map[string]string), memory: share.New(share.Sockets, 256<<20, 33<<20),
		pool: overload.New(overload.Limits{}), signatures: dialoguetest.NoSignatures{}}
	for _, f := range more {
		f(g)
	}
	logger := slog.New(slog.NewJSONHandler(&g.log, nil))
	var err error
	if g.state, err = schema.Open(journal.NewMemory(), time.Now); err != nil {
		t.Fatal(err)
	}
	env := &dialogue.Env{Now: time.Now, ID: newID, Sealer: dialogue.NewSealer([]byte("test")),
		Signatures: g.signatures}
	model := sandbox.Model{Env: env, Base: sandbox.Script{Pace: sandbox.MaxPace}}
	upstream := httptest.NewServer(g.record(model.Handler(registry.All)))
	scripted := httptest.NewServer(g.record(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.scripts(w, r)
	})))
	specs := []catalog.Provider{{Name: "sandbox", Shape: catalog.Sandbox},
		{Name: "script", Shape: dialoguetest.Responses, BaseURL: scripted.URL + "/v1", APIKeys: []string{"k"}},
		{Name: "first", Shape: dialoguetest.Responses, BaseURL: scripted.URL + "/first", APIKeys: []string{"k"}}}
	models := []catalog.Model{
		{Pattern: "sandbox", Targets: []catalog.Route{{Provider: "sandbox", Model: "*"}}},
		{Pattern: "dear", Price: price, Targets: []catalog.Route{{Provider: "sandbox", Model: "*"}}},
		{Pattern: "script", Targets: []catalog.Route{{Provider: "script", Model: "m"}}},
		{Pattern: "two", Targets: []catalog.Route{{Provider: "first", Model: "m"}},
			Fallback: []catalog.Route{{Provider: "script", Model: "m"}}},
	}
	for _, s := range []dialogue.Shape{dialoguetest.Chat, dialoguetest.Messages, dialoguetest.Gemini,
		dialoguetest.Responses} {
		specs = append(specs,
			catalog.Provider{Name: string(s), Shape: s, BaseURL: upstream.URL, APIKeys: []string{"k"}})
		models = append(models, catalog.Model{Pattern: string(s),
			Targets: []catalog.Route{{Provider: string(s), Model: "*"}}})
	}
	registryOfRequests := flow.New(time.Now)
	g.runtime, err = runtime.Start(t.Context(), runtime.Options{Logger: logger, Flow: registryOfRequests, Env: env,
		Shapes: registry.All, State: g.state, Simulate: model.Simulate})
	if err != nil {
		t.Fatal(err)
	}
	cat, errs := catalog.New(specs, models)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if err := g.runtime.Configure(t.Context(), cat, specs); err != nil {
		t.Fatal(err)
	}
	g.auth = auth.New(identity.AccessOf(g.state), time.Now)
	watchers := share.New(share.Watchers, 100, 1)
	g.live = live.New(live.Options{Logger: logger, State: g.state, Auth: g.auth, Limits: g.runtime.Keys(),
		Watchers: watchers, Now: time.Now, Origin: "https://gateway.example"})
	g.socket = responsesocket.New(responsesocket.Options{Logger: logger, Auth: g.auth, Live: g.live, Memory: g.memory,
		Enabled: func() bool { return !g.off }})
	handlers := text.New(text.Options{Logger: logger, Env: env, Auth: g.auth, Requests: g.runtime.Text(),
		Catalog: g.runtime.Catalog, Limits: g.runtime.Keys(), Watchers: watchers, Shapes: registry.All, Store: g.state,
		Ledger: g.runtime.Ledger(), Background: g.runtime.Background(), Flow: registryOfRequests,
		Attach: attach.New(attach.Options{Logger: logger, Auth: g.auth, Limits: g.runtime.Keys(), Watchers: watchers,
			Records: kept.New(share.New(share.Kept, 64<<20, 1<<20), time.Now), Store: g.state}),
		Heartbeat: sse.HeartbeatEvery})
	g.server = server.New(server.Options{Logger: logger, Text: handlers, Live: g.live, Socket: g.socket,
		Shapes: registry.All, ID: newID, Overload: g.pool})
	listeners, err := server.Listen(t.Context(), []string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	g.url = listeners[0].Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.server.Serve(listeners) })
	guard, unguard := context.WithCancel(context.Background())
	wg.Go(func() { g.auth.EndRevoked(guard, registryOfRequests) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		g.live.Drain()
		if err := errors.Join(g.runtime.Stop(ctx), g.live.Wait(ctx)); err != nil {
			t.Errorf("stop: %v", err)
		}
		g.server.Close()
		unguard()
		wg.Wait()
		upstream.Close()
		scripted.Close()
		if n := g.memory.Used(); n != 0 {
			t.Errorf("%d bytes of the pool are still held", n)
		}
		if _, err := money.CheckLedger(ctx, g.state); err != nil {
			t.Error(err)
		}
		g.state.Close()
	})
	g.key("all", nil)
	g.key("other", nil)
	return g
}

// key makes a key that change may restrict.
func (g *gateway) key(name string, change func(*identity.Key)) {
	g.t.Helper()
	secret, prefix, hash, err := identity.NewSecret(rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	k := identity.Key{ID: "key_" + name, Prefix: prefix, Hash: hash, Name: name, Enabled: true}
	if change != nil {
		change(&k)
	}
	if err := identity.CreateKey(g.t.Context(), g.state, k); err != nil {
		g.t.Fatal(err)
	}
	g.secrets[name] = secret
}

// do sends a request over HTTP.
func (g *gateway) do(method, path, body, key string, headers ...string) (*http.Response, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+g.secrets[key])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(b)
}

// client is a WebSocket of gorilla's client.
type client struct {
	*websocket.Conn
	t  testing.TB
	id string // the request id of the upgrade
}

func (g *gateway) dial(key string, headers ...string) (*client, *http.Response, error) {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+g.secrets[key])
	}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = []string{headers[i+1]}
	}
	dialer := websocket.Dialer{HandshakeTimeout: time.Minute}
	conn, res, err := dialer.DialContext(g.t.Context(), "ws://"+g.url+"/v1/responses", h)
	if err != nil {
		return nil, res, err
	}
	g.t.Cleanup(func() { conn.Close() })
	return &client{conn, g.t, res.Header.Get("X-Request-Id")}, res, nil
}

// connect opens a WebSocket with the key "all".
func (g *gateway) connect(headers ...string) *client {
	g.t.Helper()
	c, _, err := g.dial("all", headers...)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (c *client) say(message string) {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next message.
func (c *client) hear() gjson.Result {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	kind, b, err := c.ReadMessage()
	if err != nil {
		c.t.Fatalf("no message: %v", err)
	}
	if kind != websocket.TextMessage || !gjson.ValidBytes(b) {
		c.t.Fatalf("a message of kind %d: %s", kind, b)
	}
	return gjson.ParseBytes(b)
}

// until returns the messages up to one of the type.
func (c *client) until(kind string) []gjson.Result {
	c.t.Helper()
	var all []gjson.Result
	for {
		m := c.hear()
		all = append(all, m)
		switch got := m.Get("type").Str; got {
		case kind:
			return all
		case "error", "response.completed", "response.failed":
			c.t.Fatalf("got %s, want %s", m.Raw, kind)
		}
	}
}

// turn sends a response.create and returns the completed response.
func (c *client) turn(message string) gjson.Result {
	c.t.Helper()
	c.say(message)
	all := c.until("response.completed")
	return all[len(all)-1].Get("response")
}

// refused sends a message and checks the error that comes back.
func (c *client) refused(message string, status int64, code, param, stream string) gjson.Result {
	c.t.Helper()
	c.say(message)
	return c.isError(status, code, param, stream)
}

func (c *client) isError(status int64, code, param, stream string) gjson.Result {
	c.t.Helper()
	m := c.hear()
	e := m.Get("error")
	if m.Get("type").Str != "error" || m.Get("status").Int() != status || e.Get("code").String() != code ||
		e.Get("param").String() != param || m.Get("stream_id").Str != stream || e.Get("message").Str == "" ||
		e.Get("type").Str == "" || !e.Get("headers").IsObject() || !m.Get("headers").IsObject() ||
		(stream == "") == m.Get("stream_id").Exists() {
		c.t.Errorf("got %s, want %d %s about %q in %q", m.Raw, status, code, param, stream)
	}
	return m
}

// closed reads until the connection ends and returns the close.
func (c *client) closed() (code int, reason string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) {
				c.t.Fatalf("no close: %v", err)
			}
			return closed.Code, closed.Text
		}
	}
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// These are pieces of the stream of an upstream of shape responses.
const (
	scriptedResponse = `"response":{"id":"resp_1","object":"response","output":[],`
	scriptedStart    = `data: {"type":"response.created","sequence_number":0,` + scriptedResponse +
		`"status":"in_progress"}}` + "\n\n"
	scriptedItem = `data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{` +
		`"type":"message","role":"assistant","id":"msg_1","status":"completed",` +
		`"content":[{"type":"output_text","text":"x","annotations":[]}]}}` + "\n\n"
	scriptedEnd = `data: {"type":"response.completed","sequence_number":2,` + scriptedResponse +
		`"status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}` + "\n\n"
)
