package background

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// maxRuns bounds how many responses may be under way in the background.
const maxRuns = 512

// Job is a response to be run.
type Job struct {
	ID    string
	Owner state.Owner
	// Request must be a streamed one of the responses shape, with a body and a
	// header of its own.
	Request *text.Request
	// Queued is the response object with status queued; Input its input items.
	Queued, Input []byte
	Previous      string
	// Turn is the use of the conversation that the response belongs to, or nil. The job ends it.
	Turn *work.Turn
	// Streamed: the client asked for a stream, so events stay for resuming.
	Streamed bool
	// Kept is stored with the response. If the process ends first, the next one makes the request from it (Again).
	// A response without it fails then.
	Kept []byte
	// run counts the processes that worked on it, from 1.
	run int
}

// maxTries bounds how often a response is begun: what ends every process that
// works on it must not do so for ever.
const maxTries = 3

// size counts the bytes that the job holds in memory.
func (j *Job) size() int64 {
	return int64(len(j.Request.Body) + len(j.Queued) + len(j.Input) + len(j.Kept))
}

// lasts reports whether the response is begun again should its process end.
func (j *Job) lasts() bool { return len(j.Kept) > 0 && j.run < maxTries }

// numbers is what the events of this run are numbered from. It is beyond any
// event of the runs before, which had fewer of them than bytes, so that a client
// that resumes behind what it has read of them gets all of this one.
func (j *Job) numbers() int64 { return int64(max(j.run-1, 0)) * maxLog }

// Registry starts and finds background responses. Safe for concurrent use.
type Registry struct {
	system     *kit.System
	supervisor *actor.PID
	requests   *text.Service
	store      *state.State
	now        func() time.Time

	slots *share.Pool // of maxRuns

	mu       sync.Mutex
	runs     map[string]*run
	stopping bool
}

// Slots returns the pool of responses under way, for metrics.
func (g *Registry) Slots() *share.Pool { return g.slots }

// NewRegistry makes a registry. Resume goes on with what an earlier process left.
func NewRegistry(system *kit.System, tr *text.Service, store *state.State, now func() time.Time) (*Registry, error) {
	g := &Registry{system: system, requests: tr, store: store, now: now, runs: make(map[string]*run),
		slots: share.New(share.Background, maxRuns, 1)}
	var err error
	props := system.Props("background", func() actor.Actor { return &supervisor{g} })
	g.supervisor, err = system.SpawnUnique(props, "background")
	return g, err
}

// Start makes the job durable and runs it. A client that leaves meanwhile changes nothing. The error is a
// *share.Refused if there is no room for a further response.
func (g *Registry) Start(ctx context.Context, job Job) error {
	job.run = 1
	r := newRun(job, g.requests.Memory())
	r.origin = telemetry.OriginOf(ctx)
	if err := g.slots.Take(string(job.Owner), 1); err != nil {
		return err
	}
	g.enter(r)
	// The request of the client ends now, and with it the count of its body.
	if err := r.memory.Grow(job.size()); err != nil {
		g.forget(r)
		return dialogue.NoMemory(err)
	}
	ctx = context.WithoutCancel(ctx)
	h := work.ResponseHeader{
		ID:         job.ID,
		Owner:      job.Owner,
		Previous:   job.Previous,
		Model:      job.Request.Head.Model,
		Status:     "queued",
		Background: true,
		Streamed:   job.Streamed,
		Runs:       job.run,
	}
	if job.Turn != nil {
		h.Conversation, h.Position = job.Turn.Conversation.ID, job.Turn.Conversation.Next
	}
	err := work.PutResponse(ctx, g.store, work.StoredResponse{
		ResponseHeader: h,
		Body:           job.Queued, Input: job.Input, Request: job.Kept})
	if err != nil {
		g.forget(r)
		return err
	}
	return g.begin(r)
}

// begin starts the recorder of a run. A run that cannot begin has failed.
func (g *Registry) begin(r *run) error {
	if g.startRecorder(r) {
		return nil
	}
	refused := dialogue.ShuttingDown(upstream.ErrDraining)
	g.conclude(r, refused)
	g.forget(r)
	return refused
}

// startRecorder reports whether the recorder was started. The lock makes sure that none is started once the tree stops.
func (g *Registry) startRecorder(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return false
	}
	g.system.Go(g.supervisor, "background response", func(context.Context) any {
		defer g.forget(r)
		g.record(r)
		return nil
	})
	return true
}

// supervisor stands for the registry among the actors, and owns the goroutines of its recorders. Stopping it ends the
// runs. Each request that a run makes has an actor of its own, in the engine.
type supervisor struct{ registry *Registry }

// Receive implements actor.Actor.
func (s *supervisor) Receive(c actor.Context) {
	if _, stopping := c.Message().(*actor.Stopping); stopping {
		s.registry.stop()
	}
}

// stop refuses further runs and ends those in flight.
func (g *Registry) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	for _, r := range g.runs {
		r.cancel(upstream.ErrDraining)
	}
}

// enter keeps a run that has a slot; forget gives that back.
func (g *Registry) enter(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs[r.job.ID] = r
}

func (g *Registry) forget(r *run) {
	r.cancel(context.Canceled)
	r.job.Turn.End()
	r.finish()
	r.mu.Lock()
	r.memory.End()
	r.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs[r.job.ID] == r {
		delete(g.runs, r.job.ID)
		g.slots.Give(string(r.job.Owner), 1)
	}
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
func (g *Registry) Watch(
	ctx context.Context,
	id string,
	owner state.Owner,
	after int64,
	send func(raw []byte) error,
) (bool, error) {
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
