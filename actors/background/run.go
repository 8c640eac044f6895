package background

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/kit"
	"stagedoor/actors/translator"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
	"stagedoor/state"
)

// maxLog bounds the events kept of one response.
const maxLog = 32 << 20

// errCancelled is the cause with which Cancel ends a run.
var errCancelled = errors.New("response cancelled")

// Event is one event of a response's stream.
type Event struct {
	Sequence int64
	Raw      []byte // framed
}

// run is a response under way: what its actor and its watchers share.
type run struct {
	job    Job
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something is added
	events  []Event
	size    int
	started bool
	done    bool
}

func newRun(job Job) *run {
	r := &run{job: job, changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// add appends the events of a frame, which holds whole ones.
func (r *run) add(frame []byte) error {
	events := upstream.NewEventReader(bytes.NewReader(frame))
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		ev, err := events.Next()
		if err != nil {
			break
		}
		seq := gjson.GetBytes(ev.Data, "sequence_number").Int()
		r.events = append(r.events, Event{seq, bytes.Clone(ev.Raw)})
		r.size += len(ev.Raw)
	}
	r.started = true
	r.tell()
	if r.size > maxLog {
		return fmt.Errorf("more than %d bytes of events", maxLog)
	}
	return nil
}

func (r *run) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// after returns the events behind a sequence number, whether there will be
// more, and a channel that is closed when there are.
func (r *run) after(sequence int64) ([]Event, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.events)
	for first > 0 && r.events[first-1].Sequence > sequence {
		first--
	}
	return r.events[first:len(r.events):len(r.events)], !r.done, r.changed
}

func (r *run) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.done = true
		r.tell()
	}
}

// status is in_progress once there is a piece of answer.
func (r *run) status() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return "in_progress"
	}
	return "queued"
}

// log is the whole stream as bytes, and the number of its last event.
func (r *run) log() ([]byte, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []byte
	last := int64(0)
	for _, ev := range r.events {
		all = append(all, ev.Raw...)
		last = ev.Sequence
	}
	return all, last
}

// response is the actor of one run. It owns the goroutine that reads the reply,
// and ends when that does.
type response struct {
	reg *Registry
	run *run
}

// ended is the reading goroutine's last act.
type ended struct{}

// Receive implements actor.Actor.
func (a *response) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		a.reg.system.Go(c.Self(), "background response", func(context.Context) any {
			a.reg.read(a.run)
			return &ended{}
		})
	case *kit.Crashed:
		a.reg.system.Logger().Error("background response panicked", "response_id", a.run.job.ID,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		a.reg.fail(a.run, &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "server_error", Message: "the gateway met an internal error"})
		c.Stop(c.Self())
	case *ended:
		c.Stop(c.Self())
	case *actor.Stopping:
		a.run.cancel(upstream.ErrDraining)
	case *actor.Stopped:
		a.reg.forget(a.run)
	}
}

// read performs the order and keeps its reply.
func (g *Registry) read(r *run) {
	var final []byte
	order := *r.job.Order
	order.Complete = func(_ context.Context, _ translator.Meta, last []byte) ([]byte, *dialogue.Error) {
		if doc := gjson.GetBytes(last, "response"); doc.IsObject() {
			final = []byte(doc.Raw)
		}
		return nil, nil
	}
	reply := g.translator.Begin(r.ctx, &order)
	var failure *dialogue.Error
	for f := range reply.Frames() {
		if f.Err != nil {
			failure = f.Err
			continue
		}
		if err := r.add(f.Data.B); err != nil {
			r.cancel(err)
		}
		f.Data.Free()
	}
	switch {
	case errors.Is(context.Cause(r.ctx), errCancelled):
		g.keep(r, responses.Cancelled(r.job.Queued, g.now()))
	case final != nil:
		g.keep(r, final)
	case failure != nil:
		g.fail(r, failure)
	default:
		g.fail(r, outcomeError(reply))
	}
}

func outcomeError(reply *translator.Reply) *dialogue.Error {
	if err := reply.Outcome().Err; err != nil {
		return err
	}
	return dialogue.Incomplete()
}

// fail ends a run with an error, as its last event if it is streamed.
func (g *Registry) fail(r *run, err *dialogue.Error) {
	failed := responses.Failed(r.job.Queued, err)
	events, _, _ := r.after(-1)
	if len(events) == 0 || !terminal(events[len(events)-1].Raw) {
		next := int64(0)
		if len(events) > 0 {
			next = events[len(events)-1].Sequence + 1
		}
		data, _ := sjson.SetRawBytes([]byte(`{"type":"response.failed"}`), "response", failed)
		data, _ = sjson.SetBytes(data, "sequence_number", next)
		_ = r.add(append(append([]byte("event: response.failed\ndata: "), data...), "\n\n"...))
	}
	g.keep(r, failed)
}

func terminal(raw []byte) bool {
	for _, name := range []string{"response.completed", "response.incomplete", "response.failed", "error"} {
		if bytes.HasPrefix(raw, []byte("event: "+name+"\n")) {
			return true
		}
	}
	return false
}

// keep makes the last state durable and only then tells the watchers that it
// is over. Of a cancellation and the last event, the first one counts.
func (g *Registry) keep(r *run, body []byte) {
	log, last := r.log()
	if !r.job.Streamed {
		log = nil
	}
	_, err := g.store.UpdateResponse(context.Background(), r.job.ID, r.job.Owner,
		state.ResponseUpdate{Status: responses.Status(body), Body: body, Events: log, LastEvent: last})
	if err != nil && !errors.Is(err, state.ErrFinished) && !errors.Is(err, state.ErrNotFound) {
		g.system.Logger().Error("background response not stored", "response_id", r.job.ID, "cause", err)
	}
	r.finish()
}
