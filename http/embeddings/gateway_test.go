package embeddings_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	actors "stagedoor/actors/embeddings"
	"stagedoor/actors/flow"
	"stagedoor/actors/kept"
	"stagedoor/actors/runtime"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/embeddings"
	"stagedoor/http/server"
	"stagedoor/http/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	shape "stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/share"
)

// A gateway serves embeddings by the handler of an upstream, which it reaches in both shapes.
type gateway struct {
	t       *testing.T
	url     string
	handler http.HandlerFunc
	server  http.Handler
	runtime *runtime.Runtime
	state   *state.State

	mu   sync.Mutex
	seen []string // path and body of each call
}

func newID() string {
	id, err := state.NewID("", time.Now(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return id
}

// price makes a token cost one micro-dollar.
var price = &catalog.Price{Input: 1_000_000}

// start starts a gateway with the models openai and google at upstream, sandbox, and two that cannot fall back: pair is
// two different models, and text is served by a provider without embeddings.
func start(t *testing.T, upstream func(w http.ResponseWriter, path, body string)) *gateway {
	t.Helper()
	g := &gateway{t: t}
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		g.mu.Lock()
		g.seen = append(g.seen, r.URL.Path+" "+string(b))
		g.mu.Unlock()
		upstream(w, r.URL.Path, string(b))
	}))
	t.Cleanup(u.Close)
	specs := []catalog.Provider{
		{
			Name:    "openai",
			Shape:   dialoguetest.Chat,
			Also:    []dialogue.Shape{shape.Name},
			BaseURL: u.URL + "/v1",
			APIKeys: []string{"sk-secret"},
			Retries: 1,
		},
		{
			Name:    "google",
			Shape:   dialoguetest.Gemini,
			BaseURL: u.URL,
			APIKeys: []string{"g-secret"},
			Limits:  catalog.Limits{Concurrency: 100},
		},
		{Name: "slow", Shape: dialoguetest.Gemini, BaseURL: u.URL, Limits: catalog.Limits{TPM: 5000,
			QueueTimeout: time.Second}},
		{Name: "single", Shape: dialoguetest.Gemini, BaseURL: u.URL, Limits: catalog.Limits{Concurrency: 1,
			QueueTimeout: time.Second}},
		{Name: "other", Shape: dialoguetest.Messages, BaseURL: u.URL},
		{Name: "sandbox", Shape: catalog.Sandbox},
		{Name: "vendor", Vendor: "openai", Shape: shape.Name, BaseURL: u.URL + "/v1"},
	}
	to := func(provider, model string) catalog.Route { return catalog.Route{Provider: provider, Model: model} }
	cat, errs := catalog.Build(specs, []catalog.Model{
		{Pattern: "openai", Targets: []catalog.Route{to("openai", "up")}, Price: price},
		{Pattern: "google", Targets: []catalog.Route{to("google", "up")}, Price: price},
		{Pattern: "sandbox", Targets: []catalog.Route{to("sandbox", "*")}},
		{
			Pattern:  "pair",
			Targets:  []catalog.Route{to("other", "x")},
			Fallback: []catalog.Route{to("openai", "one"), to("google", "two"), to("google", "one")},
		},
		{Pattern: "slow", Targets: []catalog.Route{to("slow", "up")}},
		{Pattern: "single", Targets: []catalog.Route{to("single", "up")}},
		{Pattern: "weighted", Targets: []catalog.Route{to("openai", "one"), to("google", "two"), to("google", "one")}},
		{Pattern: "text", Targets: []catalog.Route{to("other", "*")}},
		{Pattern: "router", Targets: []catalog.Route{to("vendor", "router")}},
	}, catalog.Pricing{Charge: true})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	g.build(cat, specs)
	return g
}

func (g *gateway) build(cat *catalog.Catalog, specs []catalog.Provider) {
	t, ctx := g.t, g.t.Context()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	if g.state, err = schema.Open(journal.NewMemory(), time.Now); err != nil {
		t.Fatal(err)
	}
	env := &dialogue.Env{
		Now:        time.Now,
		ID:         newID,
		Sealer:     dialogue.NewSealer([]byte("test")),
		Signatures: dialoguetest.NoSignatures{},
	}
	model := sandbox.Model{Env: env, Base: sandbox.Script{Pace: sandbox.MaxPace}}
	recent := flow.New(time.Now)
	g.runtime, err = runtime.Start(
		ctx,
		runtime.Options{
			Logger:   logger,
			Flow:     recent,
			Env:      env,
			Shapes:   registry.All,
			State:    g.state,
			Simulate: model.Simulate,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.runtime.Configure(ctx, cat, specs); err != nil {
		t.Fatal(err)
	}
	keys := auth.New(identity.AccessOf(g.state), time.Now)
	keys.SetFixed([]identity.Key{
		{ID: "k", Name: "k", Hash: state.HashSecret("sd-test"), User: "7", Enabled: true},
		{ID: "n", Name: "n", Hash: state.HashSecret("sd-narrow"), Enabled: true, Scopes: []string{"generate"}},
		{ID: "m", Name: "m", Hash: state.HashSecret("sd-models"), Enabled: true, Models: []string{"sandbox"}},
		{ID: "l", Name: "l", Hash: state.HashSecret("sd-limited"), Enabled: true, Limits: identity.Limits{TPM: 20}},
	})
	if err := g.runtime.Ledger().Credit(ctx, "7", 1_000_000, "test"); err != nil {
		t.Fatal(err)
	}
	g.handler = embeddings.Handler(embeddings.Options{
		Logger: logger, Env: env, Auth: keys, Dialects: registry.Embeddings, Catalog: g.runtime.Catalog,
		Requests: actors.New(g.runtime.Engine(), env, registry.Embeddings,
			model.Embed), Limits: g.runtime.Keys(), Ledger: g.runtime.Ledger(),
		Attach: attach.New(attach.Options{Logger: logger, Auth: keys, Limits: g.runtime.Keys(), Store: g.state,
			Records: kept.New(share.New(share.Kept, 0, 1), time.Now)}),
	})
	texts := text.New(
		text.Options{
			Logger:     logger,
			Env:        env,
			Auth:       keys,
			Requests:   g.runtime.Text(),
			Catalog:    g.runtime.Catalog,
			Limits:     g.runtime.Keys(),
			Shapes:     registry.All,
			Store:      g.state,
			Ledger:     g.runtime.Ledger(),
			Background: g.runtime.Background(),
			Flow:       recent,
			Tasks:      map[shapes.Task]http.HandlerFunc{shapes.Embed: g.handler},
		},
	)
	g.server = server.New(server.Options{Logger: logger, Text: texts, Shapes: registry.All, ID: newID}).Handler()
	front := httptest.NewServer(g.server)
	g.url = front.URL
	t.Cleanup(func() {
		front.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.runtime.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		g.state.Close()
	})
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (r *reply) get(path string) gjson.Result { return gjson.Get(r.body, path) }

func (g *gateway) post(path, body string) *reply { return g.postAs("sd-test", path, body) }

func (g *gateway) postAs(key, path, body string) *reply {
	g.t.Helper()
	res, err := g.open(g.t.Context(), key, path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return &reply{res.StatusCode, res.Header, string(b), err}
}

func (g *gateway) open(ctx context.Context, key, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// calls returns the calls that the upstream has got.
func (g *gateway) calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.seen...)
}

// spent returns what the user has been charged once nothing is held any more.
func (g *gateway) spent() int64 {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := g.runtime.Ledger().Balance(context.Background(), "7")
		if err == nil && b.Held == 0 && len(money.ListHolds(g.state.View(), "")) == 0 {
			return b.Spent
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("still held: %+v, %v", b, err)
		}
	}
}
