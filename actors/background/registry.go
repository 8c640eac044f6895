package background

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/actors/translator"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
)

// maxRuns bounds how many responses may be under way in the background.
const maxRuns = 512

// Job is a response to be run.
type Job struct {
	ID    string
	Owner state.Owner
	// Order must be a streamed one of the responses shape, with a body of its
	// own. Its Complete is set by this package.
	Order *translator.Order
	// Queued is the response object with status queued; Input its input items.
	Queued, Input []byte
	Previous      string
	// Streamed: the client asked for a stream, so events stay for resuming.
	Streamed bool
}

// Registry starts and finds background responses. Safe for concurrent use.
type Registry struct {
	system     *kit.System
	translator *translator.Service
	store      *state.State
	now        func() time.Time

	mu   sync.Mutex
	runs map[string]*run
}

// NewRegistry also settles what an earlier process left unfinished.
func NewRegistry(ctx context.Context, system *kit.System, tr *translator.Service, store *state.State, now func() time.Time) (*Registry, error) {
	g := &Registry{system: system, translator: tr, store: store, now: now, runs: make(map[string]*run)}
	return g, g.recover(ctx)
}

// recover fails the responses whose work ended with the process that did it.
func (g *Registry) recover(ctx context.Context) error {
	for _, h := range g.store.Responses(state.ResponseFilter{Unfinished: true}) {
		r, err := g.store.Response(ctx, h.ID, h.Owner)
		if err != nil {
			return fmt.Errorf("recover response %s: %w", h.ID, err)
		}
		failed := responses.Failed(r.Body, &dialogue.Error{Status: 500, Code: "server_error", Type: dialogue.TypeAPI,
			Message: "the gateway was restarted while the response was under way"})
		if _, err := g.store.UpdateResponse(ctx, h.ID, h.Owner, state.ResponseUpdate{Status: "failed", Body: failed}); err != nil {
			return fmt.Errorf("recover response %s: %w", h.ID, err)
		}
	}
	return nil
}

// Start makes the job durable and runs it.
func (g *Registry) Start(ctx context.Context, job Job) error {
	r := newRun(job)
	if !g.enter(r) {
		return &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Code: "rate_limit_exceeded",
			Message: "too many background responses are under way, try again later", RetryAfter: 5 * time.Second}
	}
	err := g.store.PutResponse(ctx, state.StoredResponse{
		ResponseHeader: state.ResponseHeader{ID: job.ID, Owner: job.Owner, Previous: job.Previous, Model: job.Order.Head.Model,
			Status: "queued", Background: true, Streamed: job.Streamed},
		Body: job.Queued, Input: job.Input})
	if err != nil {
		g.forget(r)
		return err
	}
	props := g.system.Props("background", func() actor.Actor { return &response{reg: g, run: r} })
	if _, err := g.system.SpawnUnique(props, "background/"+job.ID); err != nil {
		g.fail(r, &dialogue.Error{Status: 500, Code: "server_error", Type: dialogue.TypeAPI, Message: "the gateway met an internal error", Cause: err})
		g.forget(r)
		return err
	}
	return nil
}

func (g *Registry) enter(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.runs) >= maxRuns {
		return false
	}
	g.runs[r.job.ID] = r
	return true
}

func (g *Registry) forget(r *run) {
	r.cancel(context.Canceled)
	r.finish()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.runs, r.job.ID)
}

func (g *Registry) find(id string, owner state.Owner) *run {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.runs[id]; r != nil && r.job.Owner == owner {
		return r
	}
	return nil
}

// Status is queued or in_progress for a response that is under way, else "".
func (g *Registry) Status(id string, owner state.Owner) string {
	r := g.find(id, owner)
	if r == nil {
		return ""
	}
	return r.status()
}

// Cancel ends a response that is under way and waits until that is durable.
// false: it is not under way.
func (g *Registry) Cancel(ctx context.Context, id string, owner state.Owner) bool {
	r := g.find(id, owner)
	if r == nil {
		return false
	}
	r.cancel(errCancelled)
	for {
		_, more, changed := r.after(1 << 62)
		if !more {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true
		}
	}
}

// Watch calls send with the events of a response that is under way, from the
// one after the sequence number on, until it ends, send fails or ctx ends.
// false: it is not under way, and its events are in the store.
func (g *Registry) Watch(ctx context.Context, id string, owner state.Owner, after int64, send func(raw []byte) error) (bool, error) {
	r := g.find(id, owner)
	if r == nil {
		return false, nil
	}
	for {
		events, more, changed := r.after(after)
		for _, ev := range events {
			if err := send(ev.Raw); err != nil {
				return true, err
			}
			after = ev.Sequence
		}
		if !more && len(events) == 0 {
			return true, nil
		}
		if !more {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true, context.Cause(ctx)
		}
	}
}
