package painter

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// Options are what the service works with.
type Options struct {
	System *kit.System
	Now    func() time.Time
	// Shapes are the kinds of upstreams that pictures can be had from.
	Shapes []*picture.Shape
	// Providers finds those of the configuration in force.
	Providers engine.Providers
	// Simulate answers for providers of shape sandbox; nil: they make no pictures.
	Simulate picture.Simulator
	// Sweep, if set, is called now and then to remove what was kept and has
	// expired.
	Sweep func() error
}

// Service is what all requests share. It is safe for concurrent use.
type Service struct {
	Options
	shapes    map[dialogue.Shape]*picture.Shape
	parent    *actor.PID
	inFlight  *kit.InFlight
	flow      *flow.Registry
	telemetry *telemetry.Telemetry
}

// New starts the service.
func New(o Options) (*Service, error) {
	s := &Service{Options: o, shapes: make(map[dialogue.Shape]*picture.Shape), inFlight: kit.NewInFlight()}
	for _, shape := range o.Shapes {
		s.shapes[shape.Name] = shape
	}
	props := o.System.Props("painter", func() actor.Actor { return newParent(s) }, kit.WithSupervisor(stopAlways))
	var err error
	s.parent, err = o.System.SpawnUnique(props, "painter")
	return s, err
}

// Watch lets a registry know of the requests to come. It is called before the first
// of them.
func (s *Service) Watch(r *flow.Registry) { s.flow = r }

// Begin starts a request. The end of ctx cancels it, as its client's leaving
// does. Begin never waits and always returns a reply that ends.
func (s *Service) Begin(ctx context.Context, order *Order) *Reply {
	ctx, cancel := context.WithCancelCause(ctx)
	o := &open{svc: s, order: order, ctx: ctx, reply: newReply(cancel)}
	o.reply.flow = s.flow.Begin(ctx, about(order), cancel)
	if !s.inFlight.Enter() {
		o.Reject(kit.ReasonStopped)
		return o.reply
	}
	s.System.Send(s.parent, o)
	return o.reply
}

// InFlight is how many requests are under way.
func (s *Service) InFlight() int { return s.inFlight.Count() }

// Drain waits until no request is under way, or ctx ends. From then on requests
// are refused, and those that are left are cancelled and told so. Drain waits for
// that up to grace, and returns how many it cancelled. It is called once.
func (s *Service) Drain(ctx context.Context, grace time.Duration) (cancelled int) {
	return s.inFlight.Drain(ctx, grace, func() { s.System.Send(s.parent, &cut{upstream.ErrDraining}) })
}

// settle lets a meter settle a request that is over, beside everything else.
func (s *Service) settle(meter Meter, o *Outcome) {
	s.System.Go(s.parent, "settle", func(context.Context) any {
		if err := meter.End(context.Background(), o); err != nil {
			s.System.Logger().Error("request not settled", "cause", err)
		}
		return nil
	})
}
