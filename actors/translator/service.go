package translator

import (
	"context"
	"net/http"

	"stagedoor/actors/engine"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// Simulator makes the events of a reply without any upstream. header is the
// client's. An error is a reply cut off in the middle.
type Simulator func(ctx context.Context, req *dialogue.Request, header http.Header, emit func(*dialogue.Event) error) error

// Service runs the requests for text. It is safe for concurrent use.
type Service struct {
	engine   *engine.Engine
	env      *dialogue.Env
	shapes   map[dialogue.Shape]*shapes.Shape
	simulate Simulator
}

// New returns a service whose requests e runs. simulate answers for providers of shape sandbox; it may be nil.
func New(e *engine.Engine, env *dialogue.Env, known []*shapes.Shape, simulate Simulator) *Service {
	s := &Service{engine: e, env: env, simulate: simulate, shapes: make(map[dialogue.Shape]*shapes.Shape)}
	for _, shape := range known {
		s.shapes[shape.Name] = shape
	}
	return s
}

// simulates reports whether the sandbox answers for a provider.
func (s *Service) simulates(p *engine.Provider) bool {
	return s.simulate != nil && p.Spec.Shape == catalog.Sandbox
}

// Begin starts a request. The end of ctx cancels it, as its client's leaving
// does. Begin never waits and always returns a reply that ends.
func (s *Service) Begin(ctx context.Context, order *Order) *Reply {
	r := &Reply{exchange{svc: s, order: order, outcome: Outcome{Usage: dialogue.NoUsage}}}
	q := engine.Request{About: about(order), Class: order.Class, Tokens: order.Tokens, Plan: order.Plan,
		Window: windowOf(order.Mode)}
	if order.Meter != nil {
		q.Money = &r.exchange
	}
	r.exchange.run.Begin(ctx, s.engine, q, &r.exchange)
	return r
}

// Memory returns what bounds the memory of requests.
func (s *Service) Memory() memory.Pool { return s.env.Memory }

func (s *Service) shape(name dialogue.Shape) *shapes.Shape { return s.shapes[name] }

// Reply is a request in flight, as its caller sees it.
type Reply struct{ exchange exchange }

// Frames brings the reply piece by piece and is closed at its end. The door
// must read it until then; a door whose client has left calls Abandon first.
func (r *Reply) Frames() <-chan Frame { return r.exchange.run.Output() }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.exchange.run.Abandon() }

// Outcome says how the request went. It may be read once Frames is closed.
func (r *Reply) Outcome() Outcome { return r.exchange.outcome }
