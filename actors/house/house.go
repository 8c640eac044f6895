package house

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/background"
	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/images"
	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/actors/tokens"
	"stagedoor/actors/videojob"
	"stagedoor/actors/webhook"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
)

// maxKeys bounds the table of gateway keys whose limits are counted.
const maxKeys = 100_000

// Options are what Start needs.
type Options struct {
	Logger *slog.Logger
	// Flow shows the requests under way to those who look; nil: nobody can.
	Flow   *flow.Registry
	Env    *dialogue.Env
	Shapes []*shapes.Shape
	State  *state.State
	// Tokens are the lifetimes of codes, tokens and sessions.
	Tokens tokens.Config
	// Simulate answers for providers of shape sandbox.
	Simulate text.Simulator
	// Pictures are the kinds of upstreams that pictures can be had from, and
	// SimulatePicture makes them for providers of shape sandbox.
	Pictures        []*picture.Shape
	SimulatePicture picture.Simulator
	// SweepPictures is called now and then to remove what has expired; nil: there
	// is nothing to remove.
	SweepPictures func() error
	// Videos makes the client of a provider of videos, nil for one that makes none.
	// Such clients keep nothing. nil: nobody makes videos.
	Videos func(spec *catalog.Provider, client *upstream.Client) video.Upstream
	// VideoJobs are the times of video jobs, Uploads where pictures for them wait.
	VideoJobs videojob.Config
	Uploads   *blobs.Store
}

// House is the running tree. Its methods may be called from any goroutine.
type House struct {
	options    Options
	system     *kit.System
	ledger     *ledger.Client
	gates      *gates
	engine     *engine.Engine
	text       *text.Service
	images     *images.Service
	videos     *videojob.Service
	background *background.Registry
	tokens     *tokens.Client
	webhooks   *webhook.Client
	keys       *throttle.Keys
	catalog    atomic.Pointer[catalog.Catalog]
	providers  atomic.Pointer[map[string]*engine.Provider]

	configuring sync.Mutex
}

// Start builds the tree. It serves nothing until Configure.
func Start(ctx context.Context, o Options) (*House, error) {
	h := &House{options: o, keys: throttle.NewKeys(maxKeys)}
	h.providers.Store(&map[string]*engine.Provider{})
	h.system = kit.NewSystem(kit.Options{Logger: o.Logger, Report: h.report})
	if err := h.start(ctx); err != nil {
		h.system.Stop(ctx) // says nothing that err does not
		return nil, err
	}
	return h, nil
}

// start starts the branches; Stop stops them the other way round.
func (h *House) start(ctx context.Context) (err error) {
	// First, so that it stops last: requests settle while they end.
	if h.ledger, err = startLedger(ctx, h.system, h.options.State); err != nil {
		return err
	}
	if h.gates, err = startGates(h.system, h.report); err != nil {
		return err
	}
	h.engine, err = engine.New(engine.Options{System: h.system, Now: h.options.Env.Now, Providers: h.provider})
	if err != nil {
		return err
	}
	h.engine.Watch(h.options.Flow)
	h.text = text.New(h.engine, h.options.Env, h.options.Shapes, h.options.Simulate)
	h.images = images.New(images.Options{Engine: h.engine, Now: h.options.Env.Now, Shapes: h.options.Pictures,
		Simulate: h.options.SimulatePicture})
	if sweep := h.options.SweepPictures; sweep != nil {
		if err := images.StartSweeper(h.system, sweep); err != nil {
			return err
		}
	}
	h.videos, err = videojob.New(videojob.Options{System: h.system, State: h.options.State, Ledger: h.ledger, Now: h.options.Env.Now,
		Providers: h.videoProvider, Flow: h.options.Flow, Files: h.options.Uploads, Config: h.options.VideoJobs})
	if err != nil {
		return err
	}
	h.tokens, err = tokens.Start(tokens.Options{System: h.system, State: h.options.State, Now: h.options.Env.Now, Config: h.options.Tokens})
	if err != nil {
		return err
	}
	if h.webhooks, err = webhook.Start(h.system, h.options.State); err != nil {
		return err
	}
	h.background, err = background.NewRegistry(h.system, h.text, h.options.State, h.options.Env.Now)
	return err
}

// startLedger settles what an earlier process left, except for videos in the
// making, which go on, and starts the ledger.
func startLedger(ctx context.Context, system *kit.System, s *state.State) (*ledger.Client, error) {
	ended, err := ledger.Recover(ctx, s, videojob.Keeps(s))
	if err != nil {
		return nil, err
	}
	if ended > 0 {
		system.Logger().Warn("holds of an earlier process ended", "count", ended)
	}
	return ledger.New(system, s)
}

func (h *House) report(f kit.Failure) {
	h.options.Logger.Error("actor failed", "actor", f.Child, "reason", f.Reason, "failures", f.Count, "restart_in", f.Delay)
}

// Engine runs the requests to models.
func (h *House) Engine() *engine.Engine { return h.engine }

// Text runs requests for text.
func (h *House) Text() *text.Service { return h.text }

// Images runs requests for pictures.
func (h *House) Images() *images.Service { return h.images }

// Videos makes videos.
func (h *House) Videos() *videojob.Service { return h.videos }

// Ledger moves money.
func (h *House) Ledger() *ledger.Client { return h.ledger }

// Background runs responses nobody waits for.
func (h *House) Background() *background.Registry { return h.background }

// Tokens is the registry of users, sessions, apps and their tokens.
func (h *House) Tokens() *tokens.Client { return h.tokens }

// Webhooks tells other servers what has happened.
func (h *House) Webhooks() *webhook.Client { return h.webhooks }

// Keys are the gateway keys' own limits.
func (h *House) Keys() *throttle.Keys { return h.keys }

// Catalog is the one in force; nil before the first Configure.
func (h *House) Catalog() *catalog.Catalog { return h.catalog.Load() }

func (h *House) provider(name string) *engine.Provider { return (*h.providers.Load())[name] }

// videoProvider is a provider as far as videos are concerned.
func (h *House) videoProvider(name string) (videojob.Provider, bool) {
	p := h.provider(name)
	if p == nil || h.options.Videos == nil {
		return videojob.Provider{}, false
	}
	return videojob.Provider{Gate: p.Gate, Video: h.options.Videos(p.Spec, p.Client), Judge: p.Judge}, true
}

// Providers lists the providers in force by name.
func (h *House) Providers() []*engine.Provider {
	all := *h.providers.Load()
	var out []*engine.Provider
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// Tree lists the actors, and counts those that come and go by their kinds.
func (h *House) Tree() ([]kit.ActorStats, kit.Stats) { return h.system.Actors(), h.system.Stats() }

// Configure puts a catalogue in force, all of it or nothing. Requests under way
// go on with what they began with. Throttles of providers that stay keep their
// queues and counts.
func (h *House) Configure(ctx context.Context, c *catalog.Catalog, specs []catalog.Provider) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	before := *h.providers.Load()
	after, err := h.prepare(ctx, specs, before)
	if err != nil {
		return err
	}
	// From here on nothing can fail. While the catalogues change, the providers
	// of both are there.
	both := maps.Clone(before)
	maps.Copy(both, after)
	h.providers.Store(&both)
	h.catalog.Store(c)
	h.providers.Store(&after)
	for name, p := range before {
		switch next := after[name]; next {
		case nil:
			h.retire(p)
		case p:
		default:
			next.Gate.Configure(limits(next.Spec))
			p.Client.Close()
		}
	}
	h.forgetPauses(ctx)
	return nil
}

// prepare builds providers, and takes down what it built if one can't be.
func (h *House) prepare(ctx context.Context, specs []catalog.Provider, before map[string]*engine.Provider) (map[string]*engine.Provider, error) {
	after := make(map[string]*engine.Provider, len(specs))
	for i := range specs {
		p, err := h.build(ctx, &specs[i], before[specs[i].Name])
		if err == nil {
			after[p.Spec.Name] = p
			continue
		}
		for name, p := range after {
			if before[name] == nil {
				h.retire(p)
			}
		}
		return nil, fmt.Errorf("provider %s: %w", specs[i].Name, err)
	}
	return after, nil
}

// build makes a provider, with the throttle it had before. One that did not
// change stays as it is, with its connections and its benched keys.
func (h *House) build(ctx context.Context, spec *catalog.Provider, before *engine.Provider) (*engine.Provider, error) {
	if before != nil && reflect.DeepEqual(before.Spec, spec) {
		return before, nil
	}
	p := &engine.Provider{Spec: spec}
	client, err := upstream.New(upstream.Options{BaseURL: spec.BaseURL, APIKeys: spec.APIKeys, Headers: spec.Headers, Memory: h.options.Env.Memory,
		Timeouts: upstream.Timeouts{Connect: spec.Timeouts.Connect, FirstByte: spec.Timeouts.FirstByte, Idle: spec.Timeouts.Idle, Total: spec.Timeouts.Total}})
	if err != nil {
		return nil, err
	}
	p.Client = client
	if before != nil {
		p.Gate = before.Gate
		return p, nil
	}
	p.Gate = throttle.NewClient(h.system, limits(spec))
	if _, paused := h.Pause(spec.Name); paused {
		p.Gate.Pause() // before anybody can pass
	}
	return p, h.gates.adopt(ctx, h.system, spec.Name, p.Gate)
}

func limits(spec *catalog.Provider) throttle.Config {
	return throttle.Config{RequestsPerMinute: spec.Limits.RPM, TokensPerMinute: spec.Limits.TPM, MaxInFlight: spec.Limits.Concurrency,
		QueuePerOwner: spec.Limits.Queue, MaxWait: spec.Limits.QueueTimeout}
}

// retire ends the throttle of a provider that is gone: who waits is refused,
// who was granted finishes.
func (h *House) retire(p *engine.Provider) {
	h.gates.forget(p.Spec.Name)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.Gate.Stop(ctx); err != nil {
		h.options.Logger.Warn("throttle did not stop", "provider", p.Spec.Name, "cause", err)
	}
	p.Client.Close()
}

// Drain lets the requests in flight finish until ctx ends and then cuts the
// rest, which end with their shape's error. It returns how many were cut.
func (h *House) Drain(ctx context.Context, grace time.Duration) int {
	return h.engine.Drain(ctx, grace)
}

// Alive reports whether actors still answer, before ctx ends.
func (h *House) Alive(ctx context.Context) error {
	_, err := kit.Ask(ctx, h.system, h.gates.parent, &ping{})
	return err
}

// Stop ends the tree, last branch first.
func (h *House) Stop(ctx context.Context) error {
	err := h.system.Stop(ctx)
	for _, p := range h.Providers() {
		p.Client.Close()
	}
	return err
}
