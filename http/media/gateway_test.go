package media_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/flow"
	"stagedoor/actors/kept"
	"stagedoor/actors/runtime"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/media"
	"stagedoor/http/server"
	"stagedoor/http/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes/images"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/statetest"
)

// A gateway is the assembled media handlers behind the assembled server.
type gateway struct {
	heartbeat time.Duration
	auth      *auth.Authenticator
	watchers  *share.Pool
	t         *testing.T
	url       string
	runtime   *runtime.Runtime
	store     *statetest.Faulty
	state     *state.State
	blobs     *blobs.Store
	now       func() time.Time
	secret    string // of the key that requests are sent with
	once      string // the idempotency key to send, or ""
	// videos makes the clients of providers of videos. It may be nil.
	videos func(*catalog.Provider, *upstream.Client) video.Upstream

	mu    sync.Mutex
	later time.Duration // the clock of addresses is ahead by this
}

func newID() string {
	id, err := state.NewID("", time.Now(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return id
}

// perImage is a price that is easy to count.
var perImage = &catalog.Price{PerImage: 40_000}

// credits is the first balance of user 7.
const credits = 1_000_000

// open assembles a gateway: models of the vendor's names at an upstream of the
// images shape, other-* at one of the third shape, and sandbox-*.
func open(t *testing.T, vendor http.HandlerFunc) *gateway { return openBeating(t, 0, vendor) }

// openBeating is open with streams that begin with a heartbeat after some time.
func openBeating(t *testing.T, heartbeat time.Duration, vendor http.HandlerFunc) *gateway {
	t.Helper()
	u := httptest.NewServer(vendor)
	t.Cleanup(u.Close)
	specs := []catalog.Provider{
		{
			Name:    "vendor",
			Shape:   images.Name,
			BaseURL: u.URL + "/v1",
			APIKeys: []string{"sk-upstream-secret"},
			Retries: 2,
		},
		{Name: "google", Shape: dialoguetest.Gemini, BaseURL: u.URL, APIKeys: []string{"g-secret"}},
		{Name: "chatty", Shape: dialoguetest.Chat, BaseURL: u.URL + "/v1", APIKeys: []string{"c-secret"}},
		{Name: "wordy", Shape: dialoguetest.Messages, BaseURL: u.URL},
		{Name: "sandbox", Shape: catalog.Sandbox},
	}
	var models []catalog.Model
	for pattern, provider := range map[string]string{"gen-image-*": "vendor", "legacy-image-*": "vendor",
		"gpt-image-*": "vendor", "other-*": "google", "text-*": "wordy", "drawing-*": "chatty",
		"sandbox-*": "sandbox"} {
		models = append(
			models,
			catalog.Model{
				Pattern: pattern,
				Price:   perImage,
				Targets: []catalog.Route{{Provider: provider, Model: "*"}},
			},
		)
	}
	g := &gateway{t: t, heartbeat: heartbeat}
	g.now = func() time.Time {
		g.mu.Lock()
		defer g.mu.Unlock()
		return time.Now().Add(g.later)
	}
	cat, errs := catalog.New(specs, models)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	g.build(cat, specs)
	return g
}

func (g *gateway) build(cat *catalog.Catalog, specs []catalog.Provider) {
	t, ctx := g.t, g.t.Context()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	g.store = statetest.NewFaulty()
	if g.state, err = schema.Open(g.store, time.Now); err != nil {
		t.Fatal(err)
	}
	if g.blobs, err = blobs.Open(t.TempDir(), 1<<20, time.Now()); err != nil {
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
			Logger:          logger,
			Flow:            recent,
			Env:             env,
			Shapes:          registry.All,
			State:           g.state,
			Simulate:        model.Simulate,
			Pictures:        registry.Pictures,
			SimulatePicture: model.Picture,
			Videos:          g.videos,
			Uploads:         g.blobs,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.runtime.Configure(ctx, cat, specs); err != nil {
		t.Fatal(err)
	}
	keys := auth.New(identity.AccessOf(g.state), time.Now)
	keys.SetFixed([]identity.Key{{ID: "k", Name: "k", Hash: state.HashSecret("sd-test"), User: "7", Enabled: true},
		{ID: "o", Name: "o", Hash: state.HashSecret("sd-other"), User: "8", Enabled: true},
		{ID: "userless", Name: "userless", Hash: state.HashSecret("sd-userless"), Enabled: true},
		{ID: "n", Name: "n", Hash: state.HashSecret("sd-narrow"), Enabled: true, Scopes: []string{"chat"}}})
	g.auth, g.watchers = keys, share.New(share.Watchers, 100, 1)
	g.secret = "sd-test"
	if err := g.runtime.Ledger().Credit(ctx, "7", credits, "test"); err != nil {
		t.Fatal(err)
	}
	texts := text.New(
		text.Options{Logger: logger, Env: env, Auth: keys, Requests: g.runtime.Text(), Catalog: g.runtime.Catalog,
			Limits: g.runtime.Keys(), Shapes: registry.All, Store: g.state, Ledger: g.runtime.Ledger(),
			Background: g.runtime.Background(), Flow: recent},
	)
	handlers := media.New(
		media.Options{
			Heartbeat: g.heartbeat,
			Logger:    logger,
			Env:       env,
			Auth:      keys,
			Images:    g.runtime.Images(),
			Videos:    g.runtime.Videos(),
			State:     g.state,
			Catalog:   g.runtime.Catalog,
			Limits:    g.runtime.Keys(),
			Watchers:  g.watchers,
			Ledger:    g.runtime.Ledger(),
			Content:   media.NewContent(g.blobs, []byte("signs"), "", g.now),
			Scratch:   t.TempDir(),
			Attach: attach.New(attach.Options{Logger: logger, Auth: keys, Limits: g.runtime.Keys(),
				Watchers: g.watchers, Records: kept.New(share.New(share.Kept, 0, 1), time.Now), Store: g.state}),
		},
	)
	front := httptest.NewServer(
		server.New(server.Options{Logger: logger, Text: texts, Media: handlers, Shapes: registry.All, ID: newID}).
			Handler(),
	)
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
	body   []byte
}

func (r *reply) get(path string) gjson.Result { return gjson.GetBytes(r.body, path) }

func (g *gateway) do(ctx context.Context, method, url, contentType string, body io.Reader) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+g.secret)
	if g.once != "" {
		req.Header.Set("Idempotency-Key", g.once)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return &reply{res.StatusCode, res.Header, b}, err
}

// generate asks for pictures.
func (g *gateway) generate(with object) *reply {
	g.t.Helper()
	if with["prompt"] == nil {
		with["prompt"] = "a cat"
	}
	b, err := json.Marshal(with)
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := g.do(g.t.Context(), "POST", g.url+"/v1/images/generations", "application/json",
		strings.NewReader(string(b)))
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// fetch follows an address that a client got.
func (g *gateway) fetch(url string) *reply {
	g.t.Helper()
	r, err := g.do(g.t.Context(), "GET", url, "", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// spent waits until nothing is held and returns what the account has paid.
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

type object = map[string]any
