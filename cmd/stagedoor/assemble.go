package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/background"
	"stagedoor/actors/flow"
	"stagedoor/actors/kept"
	"stagedoor/actors/recording"
	"stagedoor/actors/requests"
	"stagedoor/actors/runtime"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/cmd/stagedoor/telemetry"
	"stagedoor/http/adminapi"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/live"
	"stagedoor/http/nodes"
	"stagedoor/http/overload"
	"stagedoor/http/responsesocket"
	"stagedoor/http/server"
	"stagedoor/http/text"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/idp"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/places"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/modellist"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// gateway holds all parts of the running program. Only this type knows all of them.
// The fields are set by build, in its sequence, before the first request is served. Afterwards only
// the atomic ones and limits change, the latter under reloading. So handlers read the others
// without a lock.
type gateway struct {
	logger *slog.Logger
	store  journal.Store
	// storage is for what is too large for the store.
	storage  *storage
	state    *state.State
	disk     disk
	flow     *flow.Registry
	runtime  *runtime.Runtime
	overview *httpflow.Overview
	requests *requests.Recorder // nil until it was started
	keeper   *recording.Keeper  // of recorded keys; nil: nothing is kept
	auth     *auth.Authenticator
	overload *overload.Limiter
	watchers *share.Pool
	sockets  *share.Pool
	memory   *share.Pool
	kept     *kept.Registry
	attach   *attach.Service
	limits   memoryInForce // under reloading
	server   *server.Server
	// nodes are the other gateways that serve, which reach this one at nodesListener; nil if it has none for them.
	nodes         *nodes.Cluster
	nodesListener net.Listener
	division      division

	admin *adminapi.API
	// telemetry is nil until it was set up.
	telemetry *telemetry.Telemetry
	browser   *browser.Guard
	// places says where addresses are. It is nil without a file.
	places atomic.Pointer[places.File]
	// identities are the OpenID providers at which people sign in.
	identities *idp.Client
	mail       *mailer.Client
	origin     string // the address at which browsers reach the gateway
	live       *live.Handlers
	// again makes the request of a background response that another process has begun.
	again background.RestoreRequest
	// broken has the mistakes of a configuration that could not be taken over, empty once one could.
	broken atomic.Pointer[[]string]
	// first is nil unless the first page may show the first key; see firstKeyFor.
	first atomic.Pointer[firstKey]

	settings *settingsStore

	config    atomic.Pointer[config.Config] // the one in force
	read      atomic.Pointer[time.Time]     // when it was put in force
	reloading sync.Mutex
}

// assemble builds the gateway from the ground up; close takes it down again.
// address is used for links if the configuration names none. wait, if not nil, is called when the state has been
// read and before it is changed.
func assemble(ctx context.Context, c *config.Config, address string, log *slog.Logger,
	wait func(context.Context, *gateway) error) (*gateway, error) {
	g := &gateway{logger: log}
	g.settings = &settingsStore{gateway: g}
	err := g.build(ctx, c, address, wait)
	if err != nil {
		g.close(ctx)
		return nil, err
	}
	return g, nil
}

// build makes the parts of the gateway in the sequence in which they need each other. The caller closes those that were
// made if it fails.
//
// The sequence is, with the reason where it is not obvious:
//
//	state, telemetry    everything else reads or records
//	runtime             the actors; unfinished work of an earlier process waits for resume
//	log, recordings     the instruments of registerMetrics read them
//	nodes, limits       a gateway serves when it has its part of the limits
//	configure           providers, models, keys: what a reload replaces
//	handlers, server    they read the configuration in force with each request
//	resume              what an earlier process left
func (g *gateway) build(ctx context.Context, c *config.Config, address string,
	wait func(context.Context, *gateway) error) (err error) {
	if err := shapes.Check(registry.All); err != nil {
		return err
	}
	if err := g.openState(ctx, c, wait); err != nil {
		return err
	}
	secret, err := g.state.Secret(ctx, "seal", 32)
	if err != nil {
		return datadir.Unavailable(err)
	}
	g.flow = flow.New(time.Now)
	if err := g.startTelemetry(ctx, c); err != nil {
		return err
	}
	g.memory = share.New(share.Memory, 0, leastWork)
	env := newEnv(secret, g.memory)
	env.Makers = compactionMakers{g.state, g.logger}
	simulator := &sandbox.Model{Env: env}
	if err := g.startRuntime(ctx, c, env, simulator); err != nil {
		return err
	}
	origin := cmp.Or(c.OAuth.Issuer, address)
	g.identities, g.mail, g.origin = idp.New(origin, time.Now), g.mailer(origin), origin
	g.overload, g.watchers = overload.New(overload.Limits{}), share.New(share.Watchers, 0, 1)
	g.sockets = share.New(share.Sockets, 0, leastSocket)
	g.kept = kept.New(share.New(share.Kept, 0, kept.Least), g.state.Now)
	g.startRequestLog(c)
	g.startKeeper(c)
	if err := g.registerMetrics(); err != nil {
		return err
	}
	g.overview = g.newOverview()
	if err := g.connectNodes(ctx); err != nil {
		return err
	}
	access := identity.AccessOf(g.state)
	g.auth = auth.New(access, g.state.Now)
	requests, _ := g.overload.Pools()
	requests.SetAlone(func(owner string) bool {
		return !g.auth.HasOthers(state.Owner(owner)) && !access.HasOthers(state.Owner(owner))
	})
	g.admin = g.administration()
	if err := g.awaitLimits(ctx); err != nil {
		return datadir.Unavailable(err)
	}
	if err := g.configure(ctx, c); err != nil {
		return err
	}
	g.attach = attach.New(attach.Options{Logger: g.logger, Auth: g.auth, Limits: g.runtime.Keys(),
		Watchers: g.watchers, Records: g.kept, Store: g.state, Nodes: g.nodes, Memory: g.memory})
	handlers := g.textHandlers(c, env, simulator)
	if err := g.makeServer(ctx, c, origin, env, handlers); err != nil {
		return err
	}
	return g.resume(ctx, handlers)
}

// administration returns the administration API, which HTTP and the control socket serve.
func (g *gateway) administration() *adminapi.API {
	return adminapi.New(adminapi.Options{
		Logger:   g.logger,
		State:    g.state,
		Registry: g.runtime.Tokens(),
		Ledger:   g.runtime.Ledger(),
		Guard:    adminapi.NewGuard(g.state, g.state.Now),
		Random:   rand.Reader,
		Overview: g.overview,
		Link:     func(secret string) string { return g.browser.Link(secret) }, // browser is made later
		Forget:   g.storage.content.DeleteOwner,
		Settings: g.settings,
	})
}

// textHandlers returns the handlers of all text shapes and of the tasks that share routes with them.
func (g *gateway) textHandlers(c *config.Config, env *dialogue.Env, simulator *sandbox.Model) *text.Handlers {
	return text.New(text.Options{
		Logger:     g.logger,
		Env:        env,
		Auth:       g.auth,
		Requests:   g.runtime.Text(),
		Catalog:    g.runtime.Catalog,
		Limits:     g.runtime.Keys(),
		Watchers:   g.watchers,
		Shapes:     registry.All,
		Store:      g.state,
		Ledger:     g.runtime.Ledger(),
		Background: g.runtime.Background(),
		Durable:    c.Data != "memory",
		Metrics:    g.telemetry.Counts(),
		Flow:       g.flow,
		Heartbeat:  time.Duration(c.Heartbeat),
		Attach:     g.attach,
		Tasks:      g.tasks(env, simulator),
	})
}

// openState opens the records, waits until it is this gateway's turn to serve, and opens the files beside them.
// The database is opened before wait and read after it, because a gateway that stands by must see
// the lease of the one that serves, and everything that it read earlier would be stale by the time
// of its turn.
func (g *gateway) openState(ctx context.Context, c *config.Config, wait func(context.Context, *gateway) error) error {
	cluster, err := g.listenForNodes(ctx, c.Cluster)
	if err != nil {
		return err
	}
	if g.store, err = datadir.OpenStore(c.Data, cluster, versionText()); err != nil {
		return err
	}
	if g.state, err = schema.Open(g.store, time.Now); err != nil {
		return datadir.Unavailable(err)
	}
	if wait != nil {
		if err := wait(ctx, g); err != nil {
			return err
		}
	}
	// The files are opened only when it is this gateway's turn, because another one may write there until then.
	if g.storage, err = openStorage(ctx, c, g.store); err != nil {
		return err
	}
	// Webhooks are set before any job can end, so that no event is missed.
	work.SetWebhooks(g.state, c.Subscriptions())
	return nil
}

// startRuntime starts the actors.
// The packages of actors know neither the simulator nor the registry of shapes. They get them here
// as functions, so that a test can start a runtime with any other model.
func (g *gateway) startRuntime(ctx context.Context, c *config.Config, env *dialogue.Env,
	simulator *sandbox.Model) (err error) {
	var lender journal.Lender
	if g.state.Several() {
		lender = g.store.(journal.Shared).Members().(journal.Lender)
	}
	g.runtime, err = runtime.Start(ctx, runtime.Options{Logger: g.logger, Flow: g.flow, Env: env, State: g.state,
		Lender: lender, Shapes: registry.All, Tokens: lifetimes(&c.OAuth), Simulate: simulator.Simulate,
		Pictures: registry.Pictures, SimulatePicture: simulator.Picture, SweepPictures: g.storage.sweep,
		Videos: videoUpstreams(simulator), VideoJobs: videoTimes(&c.Videos), Uploads: g.storage.content,
		ListModels: func(ctx context.Context, shape dialogue.Shape, c *upstream.Client) ([]string, bool, error) {
			return modellist.Fetch(ctx, c, &registry.Describe(shape).Probe)
		}})
	return err
}

// makeServer makes the rest of the handlers, and the server of all of them. origin is the address at which browsers
// reach the gateway.
func (g *gateway) makeServer(ctx context.Context, c *config.Config, origin string, env *dialogue.Env,
	handlers *text.Handlers) error {
	authorization, accountPages, err := g.authorization(ctx, origin)
	if err != nil {
		return err
	}
	if err := g.makeAdministrator(ctx, &c.Admin); err != nil {
		return err
	}
	options := server.Options{
		Logger:      g.logger,
		Text:        handlers,
		OAuth:       authorization,
		Portal:      accountPages,
		Admin:       g.admin,
		Shapes:      registry.All,
		Overload:    g.overload,
		Proxies:     c.TrustedProxies(),
		Connections: connections(allowedMemory(os.DirFS("/"), c.Limits.MemoryMiB)),
		ID:          newID,
		Health:      g.health,
		Stale:       g.staleness(),
		HTTPS:       strings.HasPrefix(origin, "https:"),
	}
	if options.Media, err = g.mediaHandlers(ctx, c, env); err != nil {
		return err
	}
	g.live = g.liveHandlers(origin)
	options.Live = g.live
	options.Socket = responsesocket.New(responsesocket.Options{Logger: g.logger, Auth: g.auth, Live: g.live,
		Memory: g.sockets, Enabled: func() bool { return g.config.Load().ResponsesWebSocket }})
	if err := g.setTelemetry(&options, &c.Telemetry); err != nil {
		return err
	}
	for _, a := range c.Aliases {
		options.Aliases = append(options.Aliases, server.Alias{From: a.Name, To: a.Value})
	}
	if c.TLS != nil {
		options.CertFile, options.KeyFile = c.TLS.Cert, c.TLS.Key
	}
	g.server = server.New(options)
	return nil
}

// newOverview returns what the pages and the API show of requests in flight, providers and actors.
func (g *gateway) newOverview() *httpflow.Overview {
	return &httpflow.Overview{Flow: g.flow, Serving: g.runtime.Providers, SetPaused: g.runtime.SetPaused,
		Pause: g.runtime.Pause, Tree: g.runtime.Tree, Now: time.Now, KeyName: g.keyName,
		RequestLog: g.requests}
}

// keyName returns the name of an API key, or "" if it was deleted, its user is disabled, or it belongs to a page.
func (g *gateway) keyName(id string) string {
	key, err := g.auth.ByID(id)
	if err != nil {
		return ""
	}
	return key.Name
}

// groupName returns the name of the group of a user, or "".
func (g *gateway) groupName(user string) string {
	view := g.state.View()
	if u, ok := identity.FindUserByName(view, user); ok && u.Group != 0 {
		group, _ := identity.FindGroup(view, u.Group)
		return group.Name
	}
	return ""
}

// resume continues the work that an earlier process left. It comes last in the start, because work that it begins is
// charged even if the start fails afterwards.
func (g *gateway) resume(ctx context.Context, handlers *text.Handlers) error {
	g.again = handlers.Again
	if err := g.runtime.TakeOver(ctx, g.again); err != nil {
		return datadir.Unavailable(err)
	}
	return nil
}

// configure puts what can change while the gateway runs in force: all of it, or
// nothing if it fails.
// The step that can fail comes first and is the only one: the catalogue is built and given to the
// runtime, which accepts all of it or nothing. Everything after it cannot fail, so a reload never
// leaves half of a file in force.
func (g *gateway) configure(ctx context.Context, c *config.Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	providers := c.CatalogProviders()
	cat, errs := c.BuildCatalog()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := g.runtime.Configure(ctx, cat, providers); err != nil {
		return err
	}
	// From here on nothing can fail.
	// Settings that need a restart stay as they are in the configuration in force. It then says what is true of the
	// process, and the next reload reports them again.
	inForce := *c
	// A reload keeps the settings that belong to listeners, the store and the log. They are copied from before, so
	// that the configuration in force never says something that is not true of the process.
	if before := g.config.Load(); before != nil {
		if names := fixed(before, c); len(names) > 0 {
			g.logger.Warn("some changed settings take effect with the next start", "settings", names)
		}
		inForce.Listen, inForce.TLS, inForce.Data = before.Listen, before.TLS, before.Data
		inForce.Cluster = before.Cluster
		inForce.Proxies = before.Proxies
		inForce.OAuth, inForce.Log, inForce.Aliases = before.OAuth.With(&c.OAuth), before.Log, before.Aliases
		inForce.Telemetry, inForce.Videos = before.Telemetry, before.Videos
		inForce.Requests.Store = before.Requests.Store
	}
	g.requests.Limit(requestLimits(&inForce)) // by the data directory that is in use, not by the one in the file
	if g.keeper != nil {
		g.keeper.Limit(recordingLimits(c))
	}
	g.state.KeepAudit(time.Duration(c.Audit.Keep), int64(c.Audit.Records))
	fixedKeys := c.FixedKeys()
	g.auth.SetFixed(fixedKeys)
	g.identities.Configure(c.SignIn.Clients())
	g.openPlaces(c.SignIn.Places)
	g.warnOfUnknownUsers(fixedKeys)
	g.admin.Guard.SetToken(c.Admin.Token.Reveal())
	g.auth.LimitFailures(c.Limits.FailedKeys)
	g.storage.content.SetMax(maxContent(c.Limits.ContentMiB))
	g.storage.content.SetMaxFiles(int64(c.Limits.ContentFiles))
	g.limit(&c.Limits, inForce.Data)
	if n := len(c.Warnings); n > 0 {
		g.logger.Warn("the configuration may not be as it was meant; stagedoor config check shows why", "warnings", n)
	}
	g.config.Store(&inForce)
	g.runtime.Webhooks().Configure(g.endpoints(c)) // mails that wait are sent at once, by the server in force
	g.read.Store(new(time.Now()))
	return nil
}

// limit puts the limits of the whole process in force.
// The limits are logged only when they changed, because a reload happens with every edit of the
// file.
func (g *gateway) limit(configured *config.Process, data string) {
	allowed := allowedMemory(os.DirFS("/"), configured.MemoryMiB)
	limitMemory(allowed)
	limits := withMemory(*configured, allowed)
	g.memory.Resize(workBytes(allowed))
	g.overload.Set(overload.Limits{Requests: limits.Requests, BodyBytes: int64(limits.BodyMiB) << 20})
	g.watchers.Resize(int64(limits.Watchers))
	g.sockets.Resize(socketBytes(allowed))
	g.kept.Pool().Resize(keptBytes(allowed))
	replies := int64(configured.RepliesMiB) << 20
	if data == "memory" {
		replies = keptBytes(allowed)
	}
	work.MaxReplyBytes(g.state, replies)
	work.SetResponseQuota(
		g.state,
		work.Quota{Responses: configured.StoredResponses, Conversations: configured.Conversations,
			Bytes: int64(configured.StoredMiB) << 20},
	)
	if inForce := (memoryInForce{allowed, limits}); inForce != g.limits {
		g.limits = inForce
		g.logger.Info("limits of the process", "memory_mib", allowed>>20, "requests", limits.Requests,
			"body_mib", limits.BodyMiB, "watchers", limits.Watchers)
	}
}

// memoryInForce holds the limits that were logged last.
type memoryInForce struct {
	allowed int64
	limits  config.Process
}

// warnOfUnknownUsers logs the fixed keys whose user does not exist. Their requests are refused as soon as
// they cost something. The user may be made later, so it is no mistake of the file.
func (g *gateway) warnOfUnknownUsers(keys []identity.Key) {
	users := g.state.View()
	for _, k := range keys {
		if _, ok := identity.FindUserByName(users, k.User); k.User != "" && !ok {
			g.logger.Warn("a key of the configuration names a user that there is not", "key", k.Name, "user", k.User)
		}
	}
}

// close takes down what was built, in reverse order.
// It is also called for a gateway that was built only in part, so every part is checked for nil. A
// part that does not close in time is logged and does not keep the others from closing.
func (g *gateway) close(ctx context.Context) {
	if g.runtime != nil {
		if err := g.runtime.Stop(ctx); err != nil {
			g.logger.Warn("not everything stopped in time", "cause", err)
		}
	}
	if g.requests != nil {
		if err := g.requests.Close(); err != nil {
			g.logger.Warn("the log of requests did not close", "cause", err)
		}
	}
	if g.keeper != nil {
		if err := g.keeper.Close(); err != nil {
			g.logger.Warn("the recordings of keys did not close", "cause", err)
		}
	}
	if g.telemetry != nil {
		if err := g.telemetry.Close(ctx); err != nil {
			g.logger.Warn("the last spans and metrics were not sent", "cause", err)
		}
	}
	g.nodes.Close()
	if g.nodesListener != nil {
		g.nodesListener.Close()
	}
	if g.state != nil {
		g.state.Close()
	}
	if g.store != nil {
		if err := g.store.Close(); err != nil {
			g.logger.Error("the store did not close", "cause", err)
		}
	}
	g.storage.close()
}

// newEnv returns the environment of translations with the real clock, real randomness and the memory of pool.
func newEnv(secret []byte, pool memory.Pool) *dialogue.Env {
	return &dialogue.Env{Now: time.Now, ID: newID, Sealer: dialogue.NewSealer(secret), Memory: pool,
		Signatures: newSignatureCache(maxSignatureSlots)}
}

// newID returns an identifier without a prefix. Identifiers sort by time, which makes writes to the durable store fast.
func newID() string {
	id, err := state.NewID("", time.Now(), rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail on any supported system
	}
	return id
}
