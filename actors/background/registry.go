package background

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/sourcegraph/conc"

	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// maxRuns is the number of background responses in flight.
const maxRuns = 512

// Job is a response to run in the background.
type Job struct {
	ID    string
	Owner state.Owner
	// Request must be a streamed request of the responses shape. Its body and header must not be
	// shared.
	Request *text.Request
	// Queued is the response object with status queued, and Input the array of its input items.
	Queued, Input []byte
	Previous      string
	// Turn is the use of the conversation that the response belongs to, or nil. The job ends it.
	Turn *work.Turn
	// Streamed says that the client asked for a stream, so the events are stored for resuming.
	Streamed bool
	// Kept is stored with the response. If the process ends first, the next one makes the request
	// from it, see RestoreRequest. A response without Kept fails then.
	Kept []byte
	// run counts the processes that have worked on the response, from 1.
	run int
}

// maxTries is the number of times that a response is started. Without a limit, a response that crashes the process
// would do so forever.
const maxTries = 3

// size returns the number of bytes that the job holds in memory.
func (j *Job) size() int64 {
	return int64(len(j.Request.Body) + len(j.Queued) + len(j.Input) + len(j.Kept))
}

// canResume reports whether the response is started again if its process ends.
func (j *Job) canResume() bool { return len(j.Kept) > 0 && j.run < maxTries }

// firstNumber returns the number of the first event of this run. It is higher than any number of
// earlier runs, because they had fewer events than maxLog bytes. A client that resumes after an
// event of an earlier run therefore gets all events of this one.
func (j *Job) firstNumber() int64 { return int64(max(j.run-1, 0)) * maxLog }

// Registry starts and finds background responses. It is safe for concurrent use.
type Registry struct {
	system     *kit.System
	supervisor *actor.PID
	requests   *text.Service
	store      *state.State
	now        func() time.Time

	slots     *share.Pool // of maxRuns
	elsewhere FollowElsewhere

	running context.Context // ends with stop, after which no run and no StoreEnd begins
	stop    context.CancelFunc

	mu   sync.Mutex // guards runs, and stop against what begins
	runs map[string]*run
}

// Slots returns the pool of responses in flight, for metrics.
func (g *Registry) Slots() *share.Pool { return g.slots }

// NewRegistry returns a registry. Call Resume to continue the responses of earlier processes.
func NewRegistry(system *kit.System, tr *text.Service, store *state.State, now func() time.Time) (*Registry, error) {
	g := &Registry{system: system, requests: tr, store: store, now: now, runs: make(map[string]*run),
		slots: share.New(share.Background, maxRuns, 1)}
	g.running, g.stop = context.WithCancel(context.Background())
	var err error
	props := system.Props("background", func() actor.Actor { return &supervisor{g} })
	g.supervisor, err = system.SpawnUnique(props, "background")
	return g, err
}

// Start holds the money of the job, stores it, begins to run it and returns. The job goes on when ctx ends, so the
// client may wait for it or not. The error is a *share.Refused if there is no room for another response, and another one
// if there is no memory or no money, the store has failed, or the gateway shuts down.
func (g *Registry) Start(ctx context.Context, job Job) error {
	job.run = 1
	r := newRun(job, g.requests.Memory())
	r.origin = telemetry.OriginOf(ctx)
	if err := g.slots.Take(string(job.Owner), 1); err != nil {
		return err
	}
	g.addRun(r)
	// The client's request ends now and releases its memory, so the job has to count its own.
	if err := r.memory.Grow(job.size()); err != nil {
		g.removeRun(r)
		return dialogue.NoMemory(err)
	}
	if err := job.Request.HoldAhead(ctx); err != nil {
		g.removeRun(r)
		return err
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
	if err == nil {
		return g.startRun(r)
	}
	job.Request.ReleaseAhead(ctx, err)
	g.removeRun(r)
	return err
}

// startRun starts the recorder of a run. If it cannot, the run fails.
func (g *Registry) startRun(r *run) error {
	if g.startRecorder(r) {
		return nil
	}
	refused := dialogue.ShuttingDown(upstream.ErrDraining)
	r.job.Request.ReleaseAhead(r.ctx, refused)
	g.finishRun(r, refused)
	g.removeRun(r)
	return refused
}

// startRecorder reports whether the recorder was started. The lock ensures that none is started
// after stopRuns.
func (g *Registry) startRecorder(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running.Err() != nil {
		return false
	}
	if g.store.Several() {
		g.system.Go(g.supervisor, "background cancellation", func(context.Context) any {
			g.heedCancel(r)
			return nil
		})
	}
	g.system.Go(g.supervisor, "background response", func(context.Context) any {
		defer g.removeRun(r)
		g.record(r)
		return nil
	})
	return true
}

// supervisor represents the registry in the tree of actors and owns the goroutines of its
// recorders. Stopping it ends the runs. The request of each run has an actor of its own in the
// engine.
type supervisor struct{ registry *Registry }

// Receive implements actor.Actor.
func (s *supervisor) Receive(c actor.Context) {
	if _, stopping := c.Message().(*actor.Stopping); stopping {
		s.registry.stopRuns()
	}
}

// stopRuns refuses further runs and ends those in flight.
func (g *Registry) stopRuns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop()
	for _, r := range g.runs {
		r.cancel(upstream.ErrDraining)
	}
}

// addRun registers a run that has a slot. removeRun gives the slot back.
func (g *Registry) addRun(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs[r.job.ID] = r
}

// removeRun ends a run and releases what it holds.
func (g *Registry) removeRun(r *run) {
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

// findRun returns the run of an owner's response, or nil.
func (g *Registry) findRun(id string, owner state.Owner) *run {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.runs[id]; r != nil && r.job.Owner == owner {
		return r
	}
	return nil
}

// Status returns queued or in_progress for a response in flight, and "" for any other.
func (g *Registry) Status(id string, owner state.Owner) string {
	r := g.findRun(id, owner)
	if r == nil {
		return ""
	}
	return r.status()
}

// Cancel ends a response in flight, in this process or in another one, and waits until its end is
// durable or ctx ends. It returns false if the response is not in flight in the background.
func (g *Registry) Cancel(ctx context.Context, id string, owner state.Owner) bool {
	r := g.findRun(id, owner)
	if r == nil {
		return g.cancelElsewhere(ctx, id, owner)
	}
	r.cancel(errCancelled)
	for {
		_, more, changed := r.eventsAfter(1 << 62)
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

// cancelElsewhere cancels a response that may be in flight in another process, and waits until it has ended. It marks
// the record of the response, in which that process finds that it must end it. It returns false if no such response is
// in flight.
func (g *Registry) cancelElsewhere(ctx context.Context, id string, owner state.Owner) bool {
	h, changed, err := work.WatchResponse(g.store, id, owner)
	if err != nil || h.Finished() || !h.Background || !g.store.Several() {
		return false // a response in the foreground ends with the request of its client
	}
	if err := work.CancelResponse(ctx, g.store, id, owner); err != nil {
		g.system.Logger().Warn("background response not cancelled", "response_id", id, "cause", err)
		return false
	}
	for err == nil && !h.Finished() {
		select {
		case <-changed:
		case <-g.store.Failed():
			return true
		case <-ctx.Done():
			return true
		}
		h, changed, err = work.WatchResponse(g.store, id, owner)
	}
	return true
}

// heedCancel ends a run when another process has cancelled its response.
func (g *Registry) heedCancel(r *run) {
	for {
		h, changed, err := work.WatchResponse(g.store, r.job.ID, r.job.Owner)
		switch {
		case err != nil || h.Finished():
			return
		case h.Cancelled:
			r.cancel(errCancelled)
			return
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return
		}
	}
}

// FollowElsewhere calls send with the events of an owner's response that another process makes and that follow the
// sequence number after. It returns an error when there are no more, send fails or ctx ends: the record of the response
// says how it goes on.
type FollowElsewhere func(ctx context.Context, node state.Node, id string, owner state.Owner, after int64,
	send func(Event) error) error

// FollowWith makes Watch follow responses that other processes make. It is called before any Watch.
func (g *Registry) FollowWith(follow FollowElsewhere) { g.elsewhere = follow }

// FindHere returns a function that calls send with the events of a response in flight in this process, as Watch does,
// or nil if it is not. It is for other processes, so the event with which this one hands the response over is left out:
// their clients get the events of the process that goes on.
func (g *Registry) FindHere(id string, owner state.Owner) func(
	ctx context.Context, after int64, send func(Event) error) error {
	r := g.findRun(id, owner)
	if r == nil {
		return nil
	}
	return func(ctx context.Context, after int64, send func(Event) error) error {
		return r.follow(ctx, after, func(ev Event) error {
			if ev.handOver {
				return nil
			}
			return send(ev)
		})
	}
}

// betweenTries is the time after which a process that does not answer is asked again for the events of a response.
const betweenTries = time.Second

// Watch calls send with the events of a response in flight that follow the sequence number after, until the response
// ends, send fails or ctx ends. It returns false if the response is not in flight, or not any more: the events after
// the last one that was sent are then in the store.
//
// Another process may make the response. Its events are followed there, and when that process ends, with the one that
// goes on, whose events have higher numbers. While it cannot be reached, Watch waits. The error is that of send, or
// state.ErrUnavailable once the store of this process has failed, since it does not hear of the response any more.
func (g *Registry) Watch(ctx context.Context, id string, owner state.Owner, after int64,
	send func(Event) error) (bool, error) {
	for {
		h, changed, err := work.WatchResponse(g.store, id, owner)
		if r := g.findRun(id, owner); r != nil {
			return true, r.follow(ctx, after, send)
		}
		if err != nil || h.Finished() || !g.store.Several() {
			return false, nil
		}
		var again <-chan time.Time
		if g.elsewhere != nil {
			if err := g.followUntil(ctx, changed, &h, &after, send); err != nil {
				return true, err
			}
			again = time.After(betweenTries)
		}
		select {
		case <-changed:
		case <-again:
		case <-g.store.Failed():
			return true, g.store.Err()
		case <-ctx.Done():
			return false, nil
		}
	}
}

// followUntil follows a response in the process that makes it until the stream ends, changed is closed, because a
// process that hangs ends no stream, or the store of this process fails. The error is that of send.
func (g *Registry) followUntil(ctx context.Context, changed <-chan struct{}, h *work.ResponseHeader, after *int64,
	send func(Event) error) (refused error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg conc.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-changed:
			cancel()
		case <-g.store.Failed():
			cancel()
		case <-ctx.Done():
		}
	})
	_ = g.elsewhere(ctx, h.Node, h.ID, h.Owner, *after, func(ev Event) error {
		if refused = send(ev); refused == nil {
			*after = ev.Sequence
		}
		return refused
	})
	return refused
}
