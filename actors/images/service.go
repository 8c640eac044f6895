package images

import (
	"context"
	"sync/atomic"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Options configure a Service.
type Options struct {
	// Engine runs the requests.
	Engine *engine.Engine
	Now    func() time.Time
	// Shapes are the kinds of upstreams that make pictures.
	Shapes []*picture.Shape
	// Simulate answers for providers of shape sandbox. Without it they make no pictures.
	Simulate picture.Simulator
}

// Service runs the requests for pictures. It is safe for concurrent use.
type Service struct {
	Options
	shapes   map[dialogue.Shape]*picture.Shape
	inFlight atomic.Int64
}

// New returns a service.
func New(o Options) *Service {
	s := &Service{Options: o, shapes: make(map[dialogue.Shape]*picture.Shape)}
	for _, shape := range o.Shapes {
		s.shapes[shape.Name] = shape
	}
	return s
}

// Begin starts a request. The end of ctx cancels it, as its client's leaving does. Begin never waits, and the reply
// always ends.
func (s *Service) Begin(ctx context.Context, r *Request) *Reply {
	reply := &Reply{exchange{svc: s, request: r}}
	s.inFlight.Add(1)
	q := engine.Request{About: about(r), Class: r.Class, Tokens: r.Tokens, Plan: r.Plan, Dry: r.Dry,
		Window: window}
	if r.Meter != nil {
		q.Money = &reply.exchange
	}
	reply.exchange.run.Begin(ctx, s.Engine, q, &reply.exchange)
	return reply
}

// InFlight returns how many requests for pictures are in flight.
func (s *Service) InFlight() int { return int(s.inFlight.Load()) }

// shapeOf returns the shape in which a provider is called for a client of the shape inbound. It is the client's own if
// the provider serves it. It is nil for the sandbox, and ok is false for a provider that makes no pictures.
func (s *Service) shapeOf(p *catalog.Provider, inbound dialogue.Shape) (shape *picture.Shape, ok bool) {
	if p.Shape == catalog.Sandbox && s.Simulate != nil {
		return nil, true
	}
	if p.Serves(inbound) {
		shape = s.shapes[inbound]
	}
	for _, name := range append([]dialogue.Shape{p.Shape}, p.Also...) {
		if shape == nil {
			shape = s.shapes[name]
		}
	}
	return shape, shape != nil
}

// Reply is a request in flight, as its caller sees it.
type Reply struct{ exchange exchange }

// Partials returns the partial images. It is closed when the request is over. The caller reads it until then; a caller
// whose client has left calls Abandon first.
func (r *Reply) Partials() <-chan Partial { return r.exchange.run.Output() }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.exchange.run.Abandon() }

// Outcome returns the result of the request. It waits for the end of the request and drops partial images that nothing
// has read.
func (r *Reply) Outcome() *Outcome {
	for range r.Partials() {
	}
	return &r.exchange.outcome
}
