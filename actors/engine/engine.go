package engine

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/upstream"
)

// Options configure an Engine.
type Options struct {
	System *kit.System
	Now    func() time.Time
	// Providers finds the providers of the configuration in force.
	Providers Providers
}

// Engine runs the requests of a gateway. It is safe for concurrent use.
type Engine struct {
	system    *kit.System
	now       func() time.Time
	providers Providers
	telemetry *telemetry.Telemetry
	flow      *flow.Registry
	retries   retryBudget
	// firstPieces has the times of targets of models with hedge: p95.
	firstPieces firstPieces
	shards      []shard // a power of two of them
	next        atomic.Uint64
	inFlight    *kit.InFlight
	// supervisor cancels the requests when the system stops, and owns settlements.
	supervisor *actor.PID
	// cutOff ends when a drain cancels the requests that are left.
	cutOff    context.Context
	endCutOff context.CancelFunc
}

// New starts an engine.
func New(o Options) (*Engine, error) {
	e := &Engine{system: o.System, now: o.Now, providers: o.Providers, inFlight: kit.NewInFlight(),
		shards: make([]shard, shardCount())}
	e.cutOff, e.endCutOff = context.WithCancel(context.Background())
	for i := range e.shards {
		s := &e.shards[i]
		s.system = o.System
		s.props = o.System.Props("request", func() actor.Actor { return s.pending }, kit.CountedByKind())
	}
	var err error
	e.supervisor, err = o.System.SpawnUnique(o.System.Props("engine", func() actor.Actor { return &supervisor{e} }), "engine")
	return e, err
}

// shardCount returns a power of two that is at least the number of processors, so that the choice of a shard is an AND.
func shardCount() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return n
}

// Watch makes requests visible in a registry. It is called before the first request.
func (e *Engine) Watch(r *flow.Registry) { e.flow = r }

// Observe makes requests traced and counted. It is called before the first request.
func (e *Engine) Observe(t *telemetry.Telemetry) { e.telemetry = t }

// Telemetry returns what Observe was given, or nil.
func (e *Engine) Telemetry() *telemetry.Telemetry { return e.telemetry }

// Metrics returns the metrics of Observe, or nil.
func (e *Engine) Metrics() *telemetry.Metrics {
	if e.telemetry == nil {
		return nil
	}
	return e.telemetry.Metrics
}

// Provider returns a provider of the configuration in force, or nil.
func (e *Engine) Provider(name string) *Provider { return e.providers(name) }

// InFlight returns how many requests are in flight.
func (e *Engine) InFlight() int { return e.inFlight.Count() }

// CutOff returns a channel that is closed when a drain cancels the requests that are left.
func (e *Engine) CutOff() <-chan struct{} { return e.cutOff.Done() }

// Drain waits until no request is in flight, or until ctx ends. From then on requests are refused, and those that are
// left are cancelled: they end with an error of their own form. Drain waits for that up to grace, and returns how many
// requests it cancelled. It is called once.
func (e *Engine) Drain(ctx context.Context, grace time.Duration) (cancelled int) {
	return e.inFlight.Drain(ctx, grace, e.cut)
}

// cut refuses new requests and cancels those in flight.
func (e *Engine) cut() {
	e.endCutOff()
	for i := range e.shards {
		e.shards[i].cut(upstream.ErrDraining)
	}
}

// supervisor stands for the engine among the actors: stopping it cancels the requests in flight.
type supervisor struct{ engine *Engine }

// Receive implements actor.Actor.
func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Stopping:
		s.engine.cut()
	case *kit.Crashed:
		s.engine.system.Logger().Error("settlement panicked", "stack", string(m.Recovered.Stack))
	}
}
