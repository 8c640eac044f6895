package text

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"

	"stagedoor/actors/engine"
	"stagedoor/actors/recording"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// Simulator makes the events of a reply without any upstream. header is the
// client's. An error is a reply cut off in the middle.
type Simulator func(ctx context.Context, req *dialogue.Request, header http.Header,
	emit func(*dialogue.Event) error) error

// Service runs the requests for text. It is safe for concurrent use.
type Service struct {
	engine   *engine.Engine
	env      *dialogue.Env
	shapes   map[dialogue.Shape]*shapes.Shape
	simulate Simulator
	inFlight atomic.Int64
	recorder recording.Recorder
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

// Begin starts a request. The end of ctx cancels it, as its client's leaving does. Begin never waits, and the reply
// always ends.
func (s *Service) Begin(ctx context.Context, q *Request) *Reply {
	r := &Reply{exchange{svc: s, env: cmp.Or(q.Env, s.env).ForOwner(q.Owner), request: q,
		outcome: Outcome{Usage: dialogue.NoUsage}}}
	spec := engine.Request{About: about(q), Class: q.Class, Tokens: q.Tokens, Plan: r.exchange.selectTargets(ctx),
		Dry:    q.Dry,
		Window: windowOf(q.Mode)}
	if q.Meter != nil {
		spec.Money = &r.exchange
	}
	var draft *recording.Draft
	if q.Dry == nil {
		if draft = s.recorder.Begin(q.Key); draft != nil {
			r.exchange.record(draft)
		}
	}
	// A recording for a replay has one exchange, no client waits for background work, and a summary is sent whole at
	// its end, so that its target always looks slow.
	if !draft.Alone() && !q.Head.Background && q.Head.Compaction == dialogue.NoCompaction {
		spec.Hedge = q.Plan[0].Hedge
	}
	s.inFlight.Add(1)
	r.exchange.run.Begin(ctx, s.engine, spec, &r.exchange)
	return r
}

// Recorder returns the recorder with which the exchanges of keys can be recorded.
func (s *Service) Recorder() *recording.Recorder { return &s.recorder }

// InFlight returns how many requests for text are in flight.
func (s *Service) InFlight() int { return int(s.inFlight.Load()) }

// Memory returns what bounds the memory of requests.
func (s *Service) Memory() memory.Pool { return s.env.Memory }

func (s *Service) shape(name dialogue.Shape) *shapes.Shape { return s.shapes[name] }

// Reply is a request in flight, as its caller sees it.
type Reply struct{ exchange exchange }

// Chunks returns the reply piece by piece. It is closed when the request is over. The caller reads it until then; a
// caller whose client has left calls Abandon first.
func (r *Reply) Chunks() <-chan Chunk { return r.exchange.run.Output() }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.exchange.run.Abandon() }

// Outcome returns the result of the request. It may be called once Chunks is closed.
func (r *Reply) Outcome() Outcome {
	if served := r.exchange.served; served != nil {
		return served.outcome
	}
	return r.exchange.outcome
}
