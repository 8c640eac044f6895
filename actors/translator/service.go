package translator

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// Provider is one provider at run time: what it is configured to be, the
// throttle in front of it and the client that calls it.
type Provider struct {
	Spec   *catalog.Provider
	Gate   *throttle.Client
	Client *upstream.Client
	// Simulate, if set, answers instead of an upstream: the embedded sandbox.
	Simulate Simulator
}

// SpareKeys is how many of the provider's keys can be used for a model now, after one of
// them was refused; 0 if that was the only one.
func (p *Provider) SpareKeys(now time.Time, model string) int {
	if p.Client == nil {
		return 0
	}
	keys := p.Client.Keys()
	usable, all := keys.Usable(model, now), len(keys.All())
	if usable == all {
		return max(all-1, 0) // the refused one does not rest yet
	}
	return usable
}

// Judge is what the throttle is told of a failed call for a model, and for how long the
// model should be left alone. A refusal of one key says nothing about the others, and a
// request that can never fit says nothing about other requests.
func (p *Provider) Judge(f *upstream.Failure, model string, now time.Time) (throttle.Kind, time.Duration) {
	refused := f.Class == upstream.RateLimited || f.Class == upstream.Credential
	if f.TooLarge || refused && p.SpareKeys(now, model) > 0 {
		return throttle.CallerFault, 0
	}
	wait := f.RetryAfter
	if f.Class == upstream.RateLimited && p.Client != nil {
		if rest := p.Client.Keys().Rest(model, now); rest > 0 {
			wait = rest // until the first key may be used again
		}
	}
	return throttle.KindOf(f.Class), wait
}

// Total is how long a request may take from beginning to end, all attempts
// together (faults.md 4). A provider that is no longer configured has the default.
func (p *Provider) Total() time.Duration {
	if p == nil || p.Spec.Timeouts.Total == 0 {
		return upstream.DefaultTimeouts.Total
	}
	return p.Spec.Timeouts.Total
}

// Simulator makes the events of a reply without any upstream. header is the
// client's. An error is a reply cut off in the middle.
type Simulator func(ctx context.Context, req *dialogue.Request, header http.Header, emit func(*dialogue.Event) error) error

// Providers finds the providers of the configuration in force.
type Providers func(name string) *Provider

// Service is what all requests share. It is safe for concurrent use.
type Service struct {
	env       *dialogue.Env
	system    *kit.System
	shapes    map[dialogue.Shape]shapes.Shape
	providers Providers
	budget    budget
	telemetry *telemetry.Telemetry
	shards    []*actor.PID // a power of two of them
	next      atomic.Uint64
	inFlight  *kit.InFlight
	flow      *flow.Registry
	// cutOff ends when requests are cut off by a drain.
	cutOff    context.Context
	endCutOff context.CancelFunc
}

// New starts the service's shards.
func New(system *kit.System, env *dialogue.Env, known []shapes.Shape, providers Providers) (*Service, error) {
	s := &Service{env: env, system: system, providers: providers, shapes: make(map[dialogue.Shape]shapes.Shape), inFlight: kit.NewInFlight()}
	s.cutOff, s.endCutOff = context.WithCancel(context.Background())
	for _, shape := range known {
		s.shapes[shape.Name()] = shape
	}
	return s, s.startShards()
}

// Watch lets a registry know of the requests to come. It is called before the first
// of them.
func (s *Service) Watch(r *flow.Registry) { s.flow = r }

// Begin starts a request. The end of ctx cancels it, as its client's leaving
// does. Begin never waits and always returns a reply that ends.
func (s *Service) Begin(ctx context.Context, order *Order) *Reply {
	ctx, cancel := context.WithCancelCause(ctx)
	all := &carried{}
	all.conduit.frames = make(chan Frame, windowOf(order.Mode))
	all.conduit.metrics, all.conduit.outcome.Usage = s.metrics(), dialogue.NoUsage
	all.conduit.flow = s.flow.Begin(ctx, about(order), cancel)
	all.conduit.ended = order.Ended
	if order.Meter != nil {
		all.conduit.after = func(out Outcome) { s.afterwards(ctx, order.Meter, out) }
	}
	r, o := &all.reply, &all.open
	r.conduit, r.cancel = &all.conduit, cancel
	o.svc, o.order, o.ctx, o.cancel, o.conduit = s, order, ctx, cancel, &all.conduit
	if !s.inFlight.Enter() {
		o.Reject(kit.ReasonStopped)
		return r
	}
	s.system.Send(s.shards[s.next.Add(1)&uint64(len(s.shards)-1)], o)
	return r
}

// carried is what a request has from its beginning to its end, made in one piece.
type carried struct {
	reply   Reply
	conduit conduit
	open    open
}

// Memory returns what bounds the memory of requests.
func (s *Service) Memory() memory.Pool { return s.env.Memory }

// InFlight is how many requests are under way.
func (s *Service) InFlight() int { return s.inFlight.Count() }

// Drain waits until no request is under way, or ctx ends. From then on requests
// are refused, and those that are left are cancelled: they end with their
// shape's error event. Drain waits for that up to grace, and returns how many it
// cancelled. It is called once.
func (s *Service) Drain(ctx context.Context, grace time.Duration) (cancelled int) {
	return s.inFlight.Drain(ctx, grace, func() {
		s.endCutOff()
		for _, pid := range s.shards {
			s.system.Send(pid, &cut{upstream.ErrDraining})
		}
	})
}

func (s *Service) shape(name dialogue.Shape) shapes.Shape { return s.shapes[name] }

// Reply is a request under way.
type Reply struct {
	conduit *conduit
	cancel  context.CancelCauseFunc
}

// Frames brings the reply piece by piece and is closed at its end. The door
// must read it until then; a door whose client has left calls Abandon first.
func (r *Reply) Frames() <-chan Frame { return r.conduit.frames }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.cancel(upstream.ErrClient) }

// Outcome says how the request went. It may be read once Frames is closed.
func (r *Reply) Outcome() Outcome { return r.conduit.outcome }
