package text_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

// A script plays one call to a fake upstream.
type script func(c *call) (*http.Response, error)

// call is one request as a fake upstream sees it.
type call struct {
	*http.Request
	number int // at this provider, from 1
	key    string
	body   string
}

// fake is an upstream without a network. It plays its scripts in order, the last
// one again and again.
type fake struct {
	mu      sync.Mutex
	scripts []script
	calls   []*call
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	c := &call{
		Request: r,
		number:  len(f.calls) + 1,
		key:     strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		body:    string(body),
	}
	f.calls = append(f.calls, c)
	play := f.scripts[min(len(f.calls), len(f.scripts))-1]
	f.mu.Unlock()
	return play(c)
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// body is a reply's body, piece by piece: a string is read, a duration passes
// first, an error ends it, nil stalls. It ends with its request, like a real one.
type body struct {
	ctx    context.Context
	pieces []any
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.pieces) > 0 {
		switch piece := b.pieces[0].(type) {
		case string:
			n := copy(p, piece)
			if b.pieces[0] = piece[n:]; n == len(piece) {
				b.pieces = b.pieces[1:]
			}
			return n, nil
		case time.Duration:
			b.pieces = b.pieces[1:]
			select {
			case <-time.After(piece):
			case <-b.ctx.Done():
				return 0, b.ctx.Err()
			}
		case error:
			return 0, piece
		case func():
			b.pieces = b.pieces[1:]
			piece()
		default:
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
	}
	return 0, io.EOF
}

func (*body) Close() error { return nil }

// stall as a piece of a body is silence until the call is given up.
var stall any

func reply(status int, contentType string, pieces ...any) script {
	return func(c *call) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, ContentLength: -1,
			Body: &body{c.Context(), slices.Clone(pieces)}, Request: c.Request}, nil
	}
}

func stream(pieces ...any) script          { return reply(200, "text/event-stream", pieces...) }
func document(status int, s string) script { return reply(status, "application/json", s) }

// withHeader adds a header to what another script replies.
func withHeader(s script, name, value string) script {
	return func(c *call) (*http.Response, error) {
		r, err := s(c)
		r.Header.Set(name, value)
		return r, err
	}
}

// unreachable is a transport whose upstream is not there.
func unreachable(err error) script {
	return func(*call) (*http.Response, error) { return nil, err }
}

// Pieces of the chat shape.
const (
	chatRole  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chatStop  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatUsage = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
	chatError = `data: {"error":{"message":"too fast","type":"rate_limit_error","code":"rate_limit_exceeded"}}` +
		"\n\n"
	chatWhole  = `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	chatRefuse = `{"error":{"message":"no","type":"server_error"}}`
)

func chatText(text string) string {
	return fmt.Sprintf(
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,`+
			`"delta":{"content":%q},"finish_reason":null}]}`+"\n\n",
		text,
	)
}

func goodChat() script { return stream(chatRole+chatText("Hello"), chatStop+chatUsage+chatDone) }

// stage is a service with fake upstreams, inside a bubble.
type stage struct {
	t         testing.TB
	sys       *kit.System
	env       *dialogue.Env
	engine    *engine.Engine
	service   *text.Service
	simulate  text.Simulator
	mu        sync.Mutex
	providers map[string]*engine.Provider
	fakes     map[string]*fake
	broken    bool
	targets   []catalog.Route
	price     *catalog.Price // of the model
	pricing   catalog.Pricing
	most      int64          // output tokens the model gives; 0: the default
	hedge     *catalog.Hedge // of the model
}

func newStage(t testing.TB, sys *kit.System) *stage {
	t.Helper()
	s := &stage{t: t, sys: sys, env: dialoguetest.NewLiveEnv(), providers: make(map[string]*engine.Provider),
		fakes: make(map[string]*fake)}
	var err error
	s.engine, err = engine.New(engine.Options{System: sys, Now: time.Now, Providers: s.provider})
	if err != nil {
		t.Fatal(err)
	}
	s.service = text.New(
		s.engine,
		s.env,
		registry.All,
		func(ctx context.Context, r *dialogue.Request, h http.Header, emit func(*dialogue.Event) error) error {
			return s.simulate(ctx, r, h, emit)
		},
	)
	return s
}

func (s *stage) provider(name string) *engine.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		panic("no providers")
	}
	return s.providers[name]
}

// breakLookup makes request actors panic when they look for their provider.
func (s *stage) breakLookup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
}

// upstream adds a provider of a shape, with two retries and no limits, that
// plays scripts. It becomes the next target of the model.
func (s *stage) upstream(name string, shape dialogue.Shape, scripts ...script) *engine.Provider {
	s.t.Helper()
	f := &fake{scripts: scripts}
	return s.add(
		catalog.Provider{
			Name:    name,
			Shape:   shape,
			BaseURL: "http://" + name + ".test",
			APIKeys: []string{"k1"},
			Retries: 2,
		},
		f,
	)
}

func (s *stage) add(spec catalog.Provider, f http.RoundTripper) *engine.Provider {
	s.t.Helper()
	client, err := upstream.New(upstream.Options{BaseURL: spec.BaseURL, APIKeys: spec.APIKeys, Transport: f,
		Timeouts: upstream.Timeouts{
			FirstByte: spec.Timeouts.FirstByte,
			Idle:      spec.Timeouts.Idle,
			Total:     spec.Timeouts.Total,
		}})
	if err != nil {
		s.t.Fatal(err)
	}
	limiter, err := throttle.Spawn(s.sys, "p/"+spec.Name,
		throttle.Config{MaxInFlight: spec.Limits.Concurrency, MaxWait: spec.Limits.QueueTimeout})
	if err != nil {
		s.t.Fatal(err)
	}
	p := &engine.Provider{Spec: &spec, Limiter: limiter, Client: client}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.providers[spec.Name] = p
	s.fakes[spec.Name], _ = f.(*fake)
	s.targets = append(s.targets, catalog.Route{Provider: spec.Name, Model: "m"})
	return p
}

// plan tries all upstreams in the order in which they were added.
func (s *stage) plan() []catalog.Candidate {
	s.t.Helper()
	var specs []catalog.Provider
	for _, route := range s.targets {
		specs = append(specs, *s.providers[route.Provider].Spec)
	}
	c, mistakes := catalog.Build(
		specs,
		[]catalog.Model{
			{Pattern: "m", Price: s.price, MaxOutputTokens: s.most, Hedge: s.hedge, Targets: s.targets[:1],
				Fallback: s.targets[1:]},
		},
		s.pricing,
	)
	if len(mistakes) > 0 {
		s.t.Fatal(mistakes)
	}
	r, _ := c.Resolve("m")
	return r.Plan(func(int) int { return 0 })
}

// request is a request of a shape to all upstreams.
func (s *stage) request(shape dialogue.Shape, body string) *text.Request {
	s.t.Helper()
	in := shapes.Params{Header: http.Header{}}
	if shape == dialoguetest.Gemini {
		in.Model, in.Stream = "m", true
		in.Path = "/v1beta/models/m:streamGenerateContent"
	}
	inbound := registry.ByName()[shape]
	head, err := inbound.Check([]byte(body), in)
	if err != nil {
		s.t.Fatalf("the request breaks a rule: %v", err)
	}
	mode := shapes.Whole
	if head.Stream {
		mode = shapes.Stream
	}
	return &text.Request{
		ID:      "r1",
		Inbound: inbound,
		Mode:    mode,
		In:      in,
		Head:    head,
		Body:    []byte(body),
		Plan:    s.plan(),
		Key:     "key",
		Owner:   "key:key",
		Class:   throttle.Normal,
	}
}

const (
	chatAsk            = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	chatAskStream      = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	messagesAskStream  = `{"model":"m","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`
	responsesAskStream = `{"model":"m","stream":true,"store":false,"input":"hi"}`
	geminiAsk          = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
)

// received holds a reply as a client receives it.
type received struct {
	status int // 200 if anything was sent
	err    *dialogue.Error
	text   string
	meta   text.Meta
	chunks int
	took   time.Duration
	text.Outcome
}

// ask performs a request and reads the reply to its end.
func (s *stage) ask(o *text.Request) received {
	return s.read(s.service.Begin(context.Background(), o))
}

func (s *stage) read(r *text.Reply) received {
	start := time.Now()
	var out received
	for f := range r.Chunks() {
		out.chunks++
		if out.chunks == 1 && f.Meta == nil {
			s.t.Error("the first chunk has no meta")
		}
		if f.Meta != nil {
			out.meta = *f.Meta
		}
		if f.Err != nil {
			if out.chunks > 1 {
				s.t.Error("an error chunk after data")
			}
			out.status, out.err = f.Err.Status, f.Err
			continue
		}
		if out.err != nil {
			s.t.Error("data after an error chunk")
		}
		out.status = 200
		out.text += string(f.Data.B)
		f.Data.Free()
	}
	out.Outcome, out.took = r.Outcome(), time.Since(start)
	if out.chunks == 0 {
		s.t.Error("a reply without any chunk")
	}
	return out
}

// play runs body on a stage and then checks that nothing is left.
func play(t *testing.T, body func(t *testing.T, s *stage)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := newStage(t, sys)
		body(t, s)
		kittest.Pass(time.Minute) // stragglers: whatever was cut has ended by then
		s.empty()
	})
}

// empty checks that nothing is under way and no permit is out.
func (s *stage) empty() {
	s.t.Helper()
	if n := s.engine.InFlight(); n != 0 {
		s.t.Errorf("%d requests in flight at the end", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.providers {
		if n := p.Limiter.InFlight(); n != 0 {
			s.t.Errorf("%d permits of %s are out at the end", n, name)
		}
	}
}
