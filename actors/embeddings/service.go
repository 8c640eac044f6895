// Package embeddings makes the attempts of a request for embeddings. It implements engine.Exchange; actors/engine owns
// the request, its retries and its end.
//
// A request in the upstream's own shape that fits into one call passes through: its bytes stay as they are, and a
// reply of more than holdBack bytes is streamed, so that its size costs no memory. Any other request is divided into
// as many calls as the upstream needs, some of them at a time. Their vectors are joined in the order of the
// inputs once all calls have succeeded; the first failure fails the request.
//
// Vectors of two models cannot be compared, so a request is only tried at targets that are the same model (Plan).
//
// # Usage
//
// Plan chooses the candidates, Begin starts a request, and the caller reads Pieces until it is
// closed and then calls Outcome. A caller whose client has left calls Abandon and goes on reading,
// because the pieces that are under way must be freed.
//
// # Concurrency
//
// A Service is safe for concurrent use. A Reply belongs to the one goroutine that reads it.
//
// # Money
//
// The tokens of all inputs are held once, whatever the number of calls, and the sum of what the calls report
// is charged. A call that was accepted and reports no usage is estimated by the gateway's own count.
package embeddings

import (
	"context"
	"net/http"
	"slices"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/vector"
)

// Simulator answers a request without an upstream. header is the client's. An error that is no *dialogue.Error is a
// reply that broke off.
type Simulator func(ctx context.Context, r *vector.Request, header http.Header) (vector.Source, dialogue.Usage, error)

// Service runs the requests for embeddings. It is safe for concurrent use.
type Service struct {
	engine   *engine.Engine
	env      *dialogue.Env
	dialects []*vector.Dialect
	simulate Simulator
}

// New returns a service whose requests e runs. simulate answers for providers of shape sandbox.
func New(e *engine.Engine, env *dialogue.Env, dialects []*vector.Dialect, simulate Simulator) *Service {
	return &Service{engine: e, env: env, dialects: dialects, simulate: simulate}
}

// Request is one request, which has been checked and routed. It is not changed after Begin.
type Request struct {
	// About describes the request to actors/flow, and has the ids of the request and its owner.
	About   flow.About
	Inbound *vector.Dialect
	Vectors *vector.Request
	Header  http.Header // the client's, for the sandbox
	// Plan lists the targets to try, in this order. It is never empty.
	Plan []catalog.Candidate
	// Tokens is the estimate that limiters reserve, and Class the priority class.
	Tokens, Class int
	// Meter, if set, holds and settles the request's money.
	Meter text.Meter
	// Dry, if set, keeps the calls of the request, of which none is sent.
	Dry *engine.DryRun
	// Ended, if set, is called once with how the request went, before its reply ends.
	Ended func(o *text.Outcome)
}

// Piece is a piece of a reply on its way to the client.
type Piece struct {
	Data []byte
	Last bool // nothing follows
	// Meta has what the headers say. It comes with the first piece.
	Meta text.Meta
	// Estimated, in the first piece, says that the reply has a count of tokens that the upstream did not report.
	Estimated bool
}

// window bounds the pieces that wait for the client.
const window = 2

// Begin starts a request. The end of ctx cancels it, as its client's leaving does. Begin never waits, and the reply
// always ends.
func (s *Service) Begin(ctx context.Context, q *Request) *Reply {
	r := &Reply{exchange{svc: s, request: q, outcome: text.Outcome{Usage: dialogue.NoUsage}}}
	spec := engine.Request{About: q.About, Class: q.Class, Tokens: q.Tokens, Plan: q.Plan, Dry: q.Dry,
		Window: window}
	if q.Meter != nil {
		spec.Money = &r.exchange
	}
	r.exchange.run.Begin(ctx, s.engine, spec, &r.exchange)
	return r
}

// Reply is a request in flight, as its caller sees it.
type Reply struct{ exchange exchange }

// Pieces returns the reply piece by piece. It is closed when the request is over. The caller reads it until then; a
// caller whose client has left calls Abandon first.
func (r *Reply) Pieces() <-chan Piece { return r.exchange.run.Output() }

// Abandon cancels the request because its client has left.
func (r *Reply) Abandon() { r.exchange.run.Abandon() }

// Outcome returns the result of the request. It may be called once Pieces is closed. A reply whose outcome has an error
// although it is committed is cut off.
func (r *Reply) Outcome() text.Outcome { return r.exchange.outcome }

// Plan returns the candidates for a model in the order in which to try them: those that make embeddings and are the
// same model as the first of those in the configuration. It returns nil if there are none. Weights choose among
// deployments of that model, so that the vectors of all requests can be compared.
func (s *Service) Plan(model catalog.Resolved, pick func(n int) int) []catalog.Candidate {
	serves := func(c catalog.Candidate) bool {
		return c.Provider.Shape == catalog.Sandbox || s.dialectOf(c.Provider, nil) != nil
	}
	configured := model.Plan(func(int) int { return 0 })
	first := slices.IndexFunc(configured, serves)
	if first < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(model.Plan(pick)), func(c catalog.Candidate) bool {
		return !serves(c) || c.Model != configured[first].Model
	})
}

// dialectOf returns how a provider is spoken to for a client of the dialect inbound, or nil if it makes no embeddings.
func (s *Service) dialectOf(p *catalog.Provider, inbound *vector.Dialect) *vector.Dialect {
	if inbound != nil && p.Serves(inbound.Shape.Name) {
		return inbound
	}
	for _, d := range s.dialects {
		if p.Serves(d.Shape.Name) {
			return d
		}
	}
	return nil
}
