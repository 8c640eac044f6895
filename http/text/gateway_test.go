package text_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/flow"
	"stagedoor/actors/kept"
	"stagedoor/actors/runtime"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/nodes"
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
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/work"
	"stagedoor/test/harness"
)

// A gateway is the assembled handlers behind the assembled server, with the
// sandbox at full pace for every model no other provider serves.
type gateway struct {
	flow      *flow.Registry
	t         testing.TB
	server    *server.Server
	auth      *auth.Authenticator
	state     *state.State
	runtime   *runtime.Runtime
	log       *logs
	models    []catalog.Model
	specs     []catalog.Provider
	secrets   map[string]string // by key name
	without   string            // a model the sandbox does not serve
	store     journal.Store     // in memory if nil
	options   []work.Option
	kept      *kept.Registry
	nodes     *nodes.Cluster
	stopNodes func()       // ends the listener for other gateways
	room      int64        // of kept replies, or 0 for 64 MiB
	memory    *share.Pool  // nil counts nothing
	later     atomic.Int64 // how far the clock of the handlers and of the state is ahead
}

// logs collects the log lines.
type logs struct{ harness.Buffer }

// lines are the lines of requests.
func (l *logs) lines() []gjson.Result {
	var out []gjson.Result
	for _, line := range strings.Split(l.String(), "\n") {
		if v := gjson.Parse(line); v.Get("msg").String() == "request" {
			out = append(out, v)
		}
	}
	return out
}

func newID() string {
	id, err := state.NewID("", time.Now(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return id
}

// provider is one more provider and the models it serves under their own names.
func (g *gateway) provider(p catalog.Provider, models ...catalog.Model) {
	g.specs = append(g.specs, p)
	for _, m := range models {
		m.Targets = []catalog.Route{{Provider: p.Name, Model: m.Pattern, Capabilities: m.Capabilities}}
		g.models = append(g.models, m)
	}
}

// open assembles a gateway. more may add providers and models.
func open(t testing.TB, more ...func(*gateway)) *gateway {
	t.Helper()
	g := &gateway{t: t, log: &logs{}, secrets: make(map[string]string)}
	for _, f := range more {
		f(g)
	}
	g.specs = append(g.specs, catalog.Provider{Name: "sandbox", Shape: catalog.Sandbox})
	for _, name := range []string{"alpha", "beta", "gamma", "*"} {
		if name == g.without {
			continue
		}
		g.models = append(g.models,
			catalog.Model{Pattern: name, Targets: []catalog.Route{{Provider: "sandbox", Model: "*"}}})
	}
	ctx := t.Context()
	logger := slog.New(slog.NewJSONHandler(g.log, nil))
	var err error
	if g.store == nil {
		g.store = journal.NewMemory()
	}
	now := func() time.Time { return time.Now().Add(time.Duration(g.later.Load())) }
	if g.state, err = schema.Open(g.store, now, g.options...); err != nil {
		t.Fatal(err)
	}
	env := &dialogue.Env{
		Now:        now,
		ID:         newID,
		Sealer:     dialogue.NewSealer([]byte("test")),
		Signatures: dialoguetest.NoSignatures{},
	}
	if g.memory != nil {
		env.Memory = g.memory
	}
	model := sandbox.Model{Env: env, Base: sandbox.Script{Pace: sandbox.MaxPace}}
	g.flow = flow.New(time.Now)
	g.runtime, err = runtime.Start(
		ctx,
		runtime.Options{
			Logger:   logger,
			Flow:     g.flow,
			Env:      env,
			Shapes:   registry.All,
			State:    g.state,
			Simulate: model.Simulate,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	cat, errs := catalog.New(g.specs, g.models)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if err := g.runtime.Configure(ctx, cat, g.specs); err != nil {
		t.Fatal(err)
	}
	g.auth = auth.New(identity.AccessOf(g.state), time.Now)
	g.kept = kept.New(share.New(share.Kept, cmp.Or(g.room, 64<<20), kept.Least), now)
	g.connect(logger)
	attached := attach.New(attach.Options{Logger: logger, Auth: g.auth, Limits: g.runtime.Keys(),
		Watchers: share.New(share.Watchers, 0, 1), Records: g.kept, Store: g.state, Nodes: g.nodes,
		Memory: env.Memory})
	handlers := text.New(
		text.Options{Logger: logger, Env: env, Auth: g.auth, Requests: g.runtime.Text(), Catalog: g.runtime.Catalog,
			Limits: g.runtime.Keys(), Shapes: registry.All, Store: g.state, Ledger: g.runtime.Ledger(),
			Background: g.runtime.Background(), Flow: g.flow, Heartbeat: sse.HeartbeatEvery, Attach: attached},
	)
	g.server = server.New(server.Options{Logger: logger, Text: handlers, Shapes: registry.All, ID: newID})
	t.Cleanup(g.close)
	if g.secrets["all"] == "" { // otherwise the store has it from before
		g.key("all", nil)
	}
	return g
}

// configure puts changed models in force.
func (g *gateway) configure(change func(*catalog.Model)) {
	g.t.Helper()
	models := slices.Clone(g.models)
	for i := range models {
		change(&models[i])
	}
	cat, errs := catalog.New(g.specs, models)
	if len(errs) > 0 {
		g.t.Fatal(errs)
	}
	if err := g.runtime.Configure(g.t.Context(), cat, g.specs); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := g.runtime.Stop(ctx); err != nil {
		g.t.Errorf("stop: %v", err)
	}
	g.state.Close()
	if time.Now().Year() == 2000 { // in a bubble of synctest
		time.Sleep(2 * time.Second) // the actor library's last timer
	}
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

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) get(path string) gjson.Result { return gjson.GetBytes(r.body, path) }

// events are the data of a stream.
func (r reply) events() []gjson.Result {
	var out []gjson.Result
	for _, line := range strings.Split(string(r.body), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, gjson.Parse(data))
		}
	}
	return out
}

// request makes a JSON request of the key all. Headers are pairs; an empty value
// takes one away.
func (g *gateway) request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+g.secrets["all"])
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func (g *gateway) send(r *http.Request) reply {
	w := httptest.NewRecorder()
	g.server.Handler().ServeHTTP(w, r)
	return reply{w.Code, w.Result().Header, w.Body.Bytes()}
}

// do sends a request of the key all.
func (g *gateway) do(method, path, body string, headers ...string) reply {
	return g.send(g.request(method, path, body, headers...))
}

// as are the headers of another key.
func (g *gateway) as(name string) []string {
	return []string{"Authorization", "Bearer " + g.secrets[name]}
}

// want fails unless a reply has the status and error code.
func want(t *testing.T, r reply, status int, code string) {
	t.Helper()
	got := r.get("error.code").String()
	if reason := r.get("error.details.0.reason"); reason.Exists() {
		got = strings.ToLower(reason.String())
	}
	if r.status != status || got != code {
		t.Errorf("got %d %q, want %d %q: %s", r.status, got, status, code, r.body)
	}
}

// An upstream is a provider on loopback that records what it is asked.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct {
	path   string
	header http.Header
	body   []byte
}

func newUpstream(t *testing.T, answer http.HandlerFunc) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.calls = append(u.calls, call{r.URL.Path, r.Header.Clone(), body})
		u.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) all() []call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls
}

// answerJSON answers with one document.
func answerJSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// parallel runs f in many goroutines, several times in each.
func parallel(workers, times int, f func(worker, i int)) {
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range times {
				f(worker, i)
			}
		})
	}
	wg.Wait()
}
