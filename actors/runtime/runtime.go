package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

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
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// maxKeys bounds the table of gateway keys whose limits are counted.
const maxKeys = 100_000

// Options configure Start.
type Options struct {
	Logger *slog.Logger
	// Flow, if not nil, lists the requests in flight.
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
	// Such clients keep no state. A nil Videos disables videos.
	Videos func(spec *catalog.Provider, client *upstream.Client) video.Upstream
	// VideoJobs are the times of video jobs, Uploads where pictures for them wait.
	VideoJobs videojob.Config
	Uploads   *blobs.Store
	// ListModels reads a provider's own list of models, as modellist.Fetch does, so that the lists of the gateway show
	// what is behind patterns. A nil ListModels reads none.
	ListModels func(ctx context.Context, shape dialogue.Shape, c *upstream.Client) (names []string, cut bool, err error)
	// Lender lends units of the providers' limits that are too small to be divided among several processes. If it is
	// nil, limits are only divided.
	Lender journal.Lender
}

// Runtime holds the running actors and the configuration in force. Any goroutine may call
// its methods.
type Runtime struct {
	options    Options
	system     *kit.System
	ledger     *ledger.Client
	limiters   *limiters
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

	lister      *actor.PID // nil if no lists are read
	configuring sync.Mutex
	nodes       int                   // that share the limits of providers, guarded by configuring
	lists       map[string]modelNames // by provider, guarded by configuring

	borrowers map[string]*throttle.Borrower // by provider; BorrowLimits alone uses them
}

// Start returns a running tree. It has no providers until Configure.
func Start(ctx context.Context, o Options) (*Runtime, error) {
	r := &Runtime{options: o, keys: throttle.NewKeys(maxKeys), lists: make(map[string]modelNames),
		borrowers: make(map[string]*throttle.Borrower)}
	r.providers.Store(&map[string]*engine.Provider{})
	r.system = kit.NewSystem(kit.Options{Logger: o.Logger, Report: r.report})
	if err := r.start(ctx); err != nil {
		r.system.Stop(ctx) // says nothing that err does not
		return nil, err
	}
	return r, nil
}

// start starts the branches of the tree. Stop stops them in the reverse order.
func (r *Runtime) start(ctx context.Context) (err error) {
	// The ledger starts first, so that it stops last, because requests settle while they end.
	if r.ledger, err = startLedger(ctx, r.system, r.options.State); err != nil {
		return err
	}
	if r.limiters, err = startLimiters(r.system, r.report); err != nil {
		return err
	}
	r.engine, err = engine.New(engine.Options{System: r.system, Now: r.options.Env.Now, Providers: r.provider})
	if err != nil {
		return err
	}
	if r.options.ListModels != nil {
		if err := r.startLister(); err != nil {
			return err
		}
	}
	r.engine.Watch(r.options.Flow)
	r.text = text.New(r.engine, r.options.Env, r.options.Shapes, r.options.Simulate)
	r.images = images.New(images.Options{Engine: r.engine, Now: r.options.Env.Now, Shapes: r.options.Pictures,
		Simulate: r.options.SimulatePicture})
	if sweep := r.options.SweepPictures; sweep != nil {
		if err := images.StartSweeper(r.system, sweep); err != nil {
			return err
		}
	}
	r.videos, err = videojob.New(
		videojob.Options{System: r.system, State: r.options.State, Ledger: r.ledger, Now: r.options.Env.Now,
			Providers: r.videoProvider, Flow: r.options.Flow, Files: r.options.Uploads, Config: r.options.VideoJobs},
	)
	if err != nil {
		return err
	}
	r.tokens, err = tokens.Start(
		tokens.Options{System: r.system, State: r.options.State, Now: r.options.Env.Now, Config: r.options.Tokens},
	)
	if err != nil {
		return err
	}
	if r.webhooks, err = webhook.Start(r.system, r.options.State); err != nil {
		return err
	}
	r.background, err = background.NewRegistry(r.system, r.text, r.options.State, r.options.Env.Now)
	return err
}

// startLedger ends the holds that an earlier process left, except for those of videos in the
// making, which go on, and starts the ledger.
func startLedger(ctx context.Context, system *kit.System, s *state.State) (*ledger.Client, error) {
	ended, err := s.Ended(ctx, money.Nodes)
	if err == nil {
		err = endHolds(ctx, system.Logger(), s, ended)
	}
	if err != nil {
		return nil, err
	}
	return ledger.New(system, s)
}

// endHolds ends the holds of processes that have ended, but for those of videos in the making, and takes their
// allowances back.
func endHolds(ctx context.Context, logger *slog.Logger, s *state.State, ended func(state.Node) bool) error {
	n, err := ledger.Recover(ctx, s, func(v state.View, h *money.Hold) bool {
		return !ended(h.Node) || videojob.Keeps(v, h)
	})
	if n > 0 {
		logger.Warn("holds of a process that has ended were ended", "count", n)
	}
	return errors.Join(err, ledger.TakeBack(ctx, s, ended))
}

// TakeOver continues the work of processes that have ended: it ends their holds, continues their video jobs and
// background responses, and sends their deliveries. It also pauses and resumes providers as another process has
// recorded it. A process that is alone calls it once, before it serves, and one of several every second. An error in
// one part does not keep it from the others.
func (r *Runtime) TakeOver(ctx context.Context, restore background.RestoreRequest) error {
	s := r.options.State
	ended, err := s.Ended(ctx, money.Nodes, work.Nodes)
	if err != nil {
		return err
	}
	var failed []error
	if s.Several() {
		r.followPauses()
		failed = append(failed, endHolds(ctx, r.options.Logger, s, ended), r.videos.TakeOver(ctx, ended),
			work.TakeOverDeliveries(ctx, s, ended))
	}
	resumed, lost, err := r.background.Resume(ctx, ended, restore)
	if resumed+lost > 0 {
		r.options.Logger.Info("responses of a process that has ended", "begun_again", resumed, "failed", lost)
	}
	return errors.Join(append(failed, err)...)
}

// report logs a failure of an actor and the time of its restart.
func (r *Runtime) report(f kit.Failure) {
	r.options.Logger.Error("actor failed", "actor", f.Child, "reason", f.Reason, "failures", f.Count, "restart_in",
		f.Delay)
}

// Engine returns the engine, which runs the requests to models.
func (r *Runtime) Engine() *engine.Engine { return r.engine }

// Text returns the service that runs requests for text.
func (r *Runtime) Text() *text.Service { return r.text }

// Images returns the service that runs requests for pictures.
func (r *Runtime) Images() *images.Service { return r.images }

// Videos returns the service that makes videos.
func (r *Runtime) Videos() *videojob.Service { return r.videos }

// Ledger returns the client of the ledger, which charges accounts.
func (r *Runtime) Ledger() *ledger.Client { return r.ledger }

// Background returns the registry of responses that run in the background.
func (r *Runtime) Background() *background.Registry { return r.background }

// Tokens returns the client of the registry of users, sessions, apps and their tokens.
func (r *Runtime) Tokens() *tokens.Client { return r.tokens }

// Webhooks returns the client that sets the endpoints to which events are delivered.
func (r *Runtime) Webhooks() *webhook.Client { return r.webhooks }

// Keys returns the limits that gateway keys have of their own.
func (r *Runtime) Keys() *throttle.Keys { return r.keys }

// Catalog returns the catalogue in force, or nil before the first Configure.
func (r *Runtime) Catalog() *catalog.Catalog { return r.catalog.Load() }

func (r *Runtime) provider(name string) *engine.Provider { return (*r.providers.Load())[name] }

// videoProvider returns the parts of a provider that video jobs use. It returns false if there is no such provider or
// the gateway makes no videos.
func (r *Runtime) videoProvider(name string) (videojob.Provider, bool) {
	p := r.provider(name)
	if p == nil || r.options.Videos == nil {
		return videojob.Provider{}, false
	}
	return videojob.Provider{Limiter: p.Limiter, Video: r.options.Videos(p.Spec, p.Client), Judge: p.Judge,
		Unrecorded: p.Secrets}, true
}

// Providers lists the providers in force by name.
func (r *Runtime) Providers() []*engine.Provider {
	all := *r.providers.Load()
	var out []*engine.Provider
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// Tree lists the actors, and counts those that come and go by their kinds.
func (r *Runtime) Tree() ([]kit.ActorStats, kit.Stats) { return r.system.Actors(), r.system.Stats() }

// Configure puts a catalogue in force, all of it or nothing. Requests under way
// go on with what they began with. Throttles of providers that stay keep their
// queues and counts.
func (r *Runtime) Configure(ctx context.Context, c *catalog.Catalog, specs []catalog.Provider) error {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	before := *r.providers.Load()
	after, err := r.prepare(ctx, specs, before)
	if err != nil {
		return err
	}
	// From here on nothing can fail. While the catalogues change, the providers
	// of both are there.
	both := maps.Clone(before)
	maps.Copy(both, after)
	r.providers.Store(&both)
	r.catalog.Store(c)
	r.providers.Store(&after)
	r.catalog.Store(c.WithLists(r.listed()))
	if r.lister != nil {
		r.system.Send(r.lister, &readLists{})
	}
	for name, p := range before {
		switch next := after[name]; next {
		case nil:
			r.retire(p)
		case p:
		default:
			next.Limiter.Configure(r.limits(next.Spec))
			p.Client.Close()
		}
	}
	r.forgetPauses(ctx)
	return nil
}

// prepare builds all providers. If one of them cannot be built, it takes down those that are new and returns the error.
func (r *Runtime) prepare(ctx context.Context, specs []catalog.Provider,
	before map[string]*engine.Provider) (map[string]*engine.Provider, error) {
	after := make(map[string]*engine.Provider, len(specs))
	for i := range specs {
		p, err := r.build(ctx, &specs[i], before[specs[i].Name])
		if err == nil {
			after[p.Spec.Name] = p
			continue
		}
		for name, p := range after {
			if before[name] == nil {
				r.retire(p)
			}
		}
		return nil, fmt.Errorf("provider %s: %w", specs[i].Name, err)
	}
	return after, nil
}

// build makes a provider for spec. It keeps the throttle of the provider of that name in force before, if there is one.
// A provider whose spec did not change stays as it is, with its connections and its resting keys.
func (r *Runtime) build(ctx context.Context, spec *catalog.Provider,
	before *engine.Provider) (*engine.Provider, error) {
	if before != nil && reflect.DeepEqual(before.Spec, spec) {
		return before, nil
	}
	p := &engine.Provider{Spec: spec}
	client, err := upstream.New(upstream.Options{
		BaseURL: spec.BaseURL,
		APIKeys: spec.APIKeys,
		Headers: spec.Headers,
		Memory:  r.options.Env.Memory,
		Timeouts: upstream.Timeouts{
			Connect:   spec.Timeouts.Connect,
			FirstByte: spec.Timeouts.FirstByte,
			Idle:      spec.Timeouts.Idle,
			Total:     spec.Timeouts.Total,
		},
	})
	if err != nil {
		return nil, err
	}
	p.Client = client
	if before != nil {
		p.Limiter = before.Limiter
		return p, nil
	}
	p.Limiter = throttle.NewClient(r.system, r.limits(spec))
	if _, paused := r.Pause(spec.Name); paused {
		p.Limiter.Pause() // before the first request
	}
	return p, r.limiters.adopt(ctx, r.system, spec.Name, p.Limiter)
}

// limits returns this process's part of a provider's limits. It borrows units of those that are too small to be
// divided.
func (r *Runtime) limits(spec *catalog.Provider) throttle.Config {
	c := throttle.Config{
		RequestsPerMinute: spec.Limits.RPM,
		TokensPerMinute:   spec.Limits.TPM,
		MaxInFlight:       spec.Limits.Concurrency,
		QueuePerOwner:     spec.Limits.Queue,
		MaxWait:           spec.Limits.QueueTimeout,
	}
	c.Divide(r.nodes, r.options.Lender != nil)
	return c
}

// BorrowLimits borrows and gives back units of the limits that are too small to be divided among the processes. It must
// be called several times a second. after is journal.Loan.After. The error is that of the lender, or of a limiter that
// has stopped.
func (r *Runtime) BorrowLimits(ctx context.Context, after time.Duration) (err error) {
	providers := *r.providers.Load()
	for name, p := range providers {
		if r.borrowers[name] == nil && p.Limiter.Borrows() {
			r.borrowers[name] = throttle.NewBorrower(name, p.Limiter)
		}
	}
	for name, b := range r.borrowers {
		if p := providers[name]; p != nil && b.Serves(p.Limiter) {
			err = errors.Join(err, b.Renew(ctx, r.options.Lender, after))
			continue
		}
		ended, failed := b.End(ctx, r.options.Lender, after)
		if err = errors.Join(err, failed); ended {
			delete(r.borrowers, name)
		}
	}
	return err
}

// ShareLimits says how many processes share the accounts and the limits of providers and keys, of which each has an
// equal part from now on.
func (r *Runtime) ShareLimits(nodes int) {
	r.ledger.ShareAccounts(nodes)
	r.keys.ShareLimits(nodes)
	r.configuring.Lock()
	defer r.configuring.Unlock()
	if r.nodes == nodes {
		return
	}
	r.nodes = nodes
	for _, p := range *r.providers.Load() {
		p.Limiter.Configure(r.limits(p.Spec))
	}
}

// retire stops the throttle of a removed provider. Queued requests are refused, and requests
// with a permit finish.
func (r *Runtime) retire(p *engine.Provider) {
	r.limiters.forget(p.Spec.Name)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.Limiter.Stop(ctx); err != nil {
		r.options.Logger.Warn("throttle did not stop", "provider", p.Spec.Name, "cause", err)
	}
	p.Client.Close()
}

// Drain waits until no request is in flight, or until ctx ends. It then cancels the requests that are left, which end
// with their shape's error, and waits for them up to grace. It returns how many it cancelled.
func (r *Runtime) Drain(ctx context.Context, grace time.Duration) int {
	return r.engine.Drain(ctx, grace)
}

// Alive reports whether actors still answer, before ctx ends. The question goes through the supervisor of the limiters,
// which every request depends on. The error is that of ctx or of a system that has stopped.
func (r *Runtime) Alive(ctx context.Context) error {
	_, err := kit.Ask(ctx, r.system, r.limiters.parent, &ping{})
	return err
}

// Stop ends the tree, last branch first. The clients of the providers are closed after the actors, because an actor
// that ends may still have a call under way. If ctx ends first, the error names the actors that still run.
func (r *Runtime) Stop(ctx context.Context) error {
	err := r.system.Stop(ctx)
	for _, p := range r.Providers() {
		p.Client.Close()
	}
	return err
}
