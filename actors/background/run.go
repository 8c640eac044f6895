package background

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/work"
)

// errCrashed is the message of a response whose run crashed.
const errCrashed = "the gateway met an internal error"

// maxLog is the number of bytes of events that are kept of one response.
const maxLog = 32 << 20

// errCancelled is the cause with which Cancel ends a run.
var errCancelled = errors.New("response cancelled")

// errTooLarge ends a run whose output is too large to keep.
var errTooLarge = dialogue.ResponseTooLarge()

// Event is one event of a response's stream.
type Event struct {
	Sequence int64
	Raw      []byte // the event as it is sent, with its frame

	handOver bool // it asks the client to resume, because another process goes on
}

// run is a response in flight. Its recorder and its watchers share it.
type run struct {
	job    Job
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every change
	events  []Event
	held    []byte // a failure event that is not sent yet, because the response may be handed over
	size    int
	started bool
	done    bool

	origin telemetry.Origin // request that started the response
	memory memory.Claim     // memory of the job and its events; guarded by mu once it runs
}

// newRun returns a run that has not begun. Its context is not that of the request, because the run
// goes on when the client has left.
func newRun(job Job, budget memory.Pool) *run {
	r := &run{job: job, changed: make(chan struct{}), memory: memory.NewClaim(budget, string(job.Owner))}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// add appends the events of a chunk, which contains only whole events. It holds back an event that reports a failure,
// because another process may go on with the response. If the log exceeds maxLog, the events are still appended, and
// the error says that the run must end.
func (r *run) add(chunk []byte) error {
	events := upstream.NewEventReader(bytes.NewReader(chunk))
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		ev, err := events.Next()
		if err != nil {
			break
		}
		e := renumberEvent(&ev, r.job.firstNumber())
		if kind := gjson.GetBytes(ev.Data, "type").Str; kind == "response.failed" || kind == "error" {
			r.held = e.Raw
			continue
		}
		r.append(e)
	}
	r.started = true
	r.notifyWatchers()
	if r.size > maxLog {
		return errTooLarge
	}
	return nil
}

// append keeps an event for readers that come later, and counts its bytes against the budget for
// memory.
func (r *run) append(e Event) {
	r.events = append(r.events, e)
	r.size += len(e.Raw)
	r.memory.Adopt(int64(len(e.Raw)))
}

// renumberEvent returns an event with its number increased by from.
func renumberEvent(ev *upstream.Event, from int64) Event {
	number := gjson.GetBytes(ev.Data, "sequence_number").Int() + from
	if from == 0 {
		return Event{Sequence: number, Raw: bytes.Clone(ev.Raw)}
	}
	data, err := sjson.SetBytes(ev.Data, "sequence_number", number)
	if err != nil {
		data = ev.Data // not an object, so no client resumes after it
	}
	return Event{Sequence: number, Raw: frameEvent(ev.Name, data)}
}

// frameEvent returns an event as it is sent.
func frameEvent(name string, data []byte) []byte {
	var raw []byte
	if name != "" {
		raw = append(append(append(raw, "event: "...), name...), '\n')
	}
	return append(append(append(raw, "data: "...), data...), "\n\n"...)
}

// appendHeldFailure appends the failure that was held back, because the response ends with it.
func (r *run) appendHeldFailure() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		return
	}
	ev, err := upstream.NewEventReader(bytes.NewReader(r.held)).Next()
	if err == nil {
		r.append(Event{Sequence: gjson.GetBytes(ev.Data, "sequence_number").Int(), Raw: r.held})
	}
	r.held = nil
	r.notifyWatchers()
}

// notifyWatchers wakes all watchers. The caller must hold mu.
func (r *run) notifyWatchers() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// eventsAfter returns the events after a sequence number, whether more will follow, and a channel
// that is closed when the run changes.
func (r *run) eventsAfter(sequence int64) ([]Event, bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.events)
	for first > 0 && r.events[first-1].Sequence > sequence {
		first--
	}
	return r.events[first:len(r.events):len(r.events)], !r.done, r.changed
}

// follow calls send with the events after a sequence number until the run ends, send fails or ctx ends.
func (r *run) follow(ctx context.Context, after int64, send func(Event) error) error {
	for {
		events, more, changed := r.eventsAfter(after)
		for _, ev := range events {
			if err := send(ev); err != nil {
				return err
			}
			after = ev.Sequence
		}
		if !more && len(events) == 0 {
			return nil
		}
		if !more {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// finish marks the run as ended.
func (r *run) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.done = true
		r.notifyWatchers()
	}
}

// status returns in_progress once there is a piece of the answer.
func (r *run) status() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return "in_progress"
	}
	return "queued"
}

// encodedLog returns all events as bytes, and the number of the last one.
func (r *run) encodedLog() ([]byte, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]byte, 0, r.size)
	last := int64(0)
	for _, ev := range r.events {
		all = append(all, ev.Raw...)
		last = ev.Sequence
	}
	return all, last
}

// lastEvent returns the type and data of the last event, and the number of the next one.
func (r *run) lastEvent() (kind string, data []byte, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return "", nil, r.job.firstNumber()
	}
	last := r.events[len(r.events)-1]
	ev, err := upstream.NewEventReader(bytes.NewReader(last.Raw)).Next()
	if err != nil {
		return "", nil, last.Sequence + 1
	}
	return gjson.GetBytes(ev.Data, "type").Str, ev.Data, last.Sequence + 1
}

// finalBody returns the response of the terminal event, or nil if there is none, and whether the
// stream has ended. A bare error event ends it as well.
func (r *run) finalBody() (body []byte, ended bool) {
	kind, data, _ := r.lastEvent()
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		return []byte(gjson.GetBytes(data, "response").Raw), true
	case "error":
		return nil, true
	}
	return nil, false
}

// appendFailure appends the terminal event of a response that the gateway has ended. The API has no
// event for a cancellation, and clients stop at an unknown event. So a cancelled response ends with
// response.failed, and its status says that it was cancelled.
func (r *run) appendFailure(body []byte) {
	_, _, next := r.lastEvent()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(Event{Sequence: next, Raw: failedEvent(body, next)})
	r.notifyWatchers()
}

// failedEvent returns a response.failed event.
func failedEvent(body []byte, sequence int64) []byte {
	event := strconv.AppendInt([]byte(`{"type":"response.failed","sequence_number":`), sequence, 10)
	return frameEvent("response.failed", append(append(append(event, `,"response":`...), body...), '}'))
}

// record runs the request, keeps its output and finishes the run, so that watchers learn of an end
// only when it is durable.
func (g *Registry) record(r *run) {
	defer func() {
		if reason := recover(); reason != nil {
			g.system.Logger().Error("background response panicked", "response_id", r.job.ID,
				"panic", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
			g.finishRun(r, dialogue.ServerError(errCrashed, nil))
			panic(reason) // package kit counts and reports it
		}
	}()
	ctx, span := r.origin.Begin(r.ctx, telemetry.SpanBackground)
	defer span.End()
	reply := g.requests.Begin(ctx, r.job.Request)
	failure := dialogue.Incomplete()
	for c := range reply.Chunks() {
		if c.Err != nil {
			failure = c.Err
			continue
		}
		if err := r.add(c.Data.B); err != nil {
			r.cancel(err)
		}
		c.Data.Free()
	}
	if err := reply.Outcome().Err; err != nil {
		failure = err
	}
	if r.canHandOver(failure) {
		g.handOver(r)
		return
	}
	g.finishRun(r, failure)
}

// canHandOver reports whether the run ended because its process stops and the next process will
// start it again.
func (r *run) canHandOver(failure *dialogue.Error) bool {
	return r.job.canResume() && errors.Is(failure, upstream.ErrDraining) && !errors.Is(context.Cause(r.ctx),
		errCancelled)
}

// handOver leaves a response to the next process. Its record stays as it was at the start. Its
// watchers get an event that asks them to resume.
func (g *Registry) handOver(r *run) {
	_, _, next := r.lastEvent()
	event := []byte(`{"type":"error","sequence_number":`)
	event = strconv.AppendInt(event, next, 10)
	event = append(event, `,"code":"shutting_down","message":"the gateway is restarting and goes on with the response: `+
		`resume its stream or retrieve it","param":null}`...)
	r.mu.Lock()
	r.held = nil
	r.append(Event{Sequence: next, Raw: frameEvent("error", event), handOver: true})
	r.mu.Unlock()
	r.finish()
	g.system.Logger().Info("background response left to the next process", "response_id", r.job.ID, "run", r.job.run)
}

// finishRun stores the end of a run: the response of the last event or, without one, a cancelled or
// failed response. If a cancellation and the last event race, the first one counts.
func (g *Registry) finishRun(r *run, failure *dialogue.Error) {
	r.appendHeldFailure()
	body, ended := r.finalBody()
	switch {
	case body != nil:
	case errors.Is(context.Cause(r.ctx), errCancelled):
		body = responses.Cancelled(r.job.Queued, g.now())
	default:
		body = responses.Failed(r.job.Queued, failure)
	}
	if !ended {
		r.appendFailure(body)
	}
	g.storeResult(r, body)
}

// storeResult stores the final state and then ends the watchers.
func (g *Registry) storeResult(r *run, body []byte) {
	defer r.finish()
	log, last := r.encodedLog()
	if !r.job.Streamed {
		log = nil
	}
	own := func(n state.Node) bool { return n == g.store.Node() } // another process may have taken the response over
	u := work.ResponseUpdate{Body: body, Events: log, LastEvent: last, Ended: own, Ends: r.job.Turn}
	turn, err := TurnItems(context.Background(), r.job.Turn, r.job.Input, body)
	if err == nil {
		u.Turn = turn
		err = g.storeEnd(r.job.ID, func() error { return g.updateStored(r.job.ID, r.job.Owner, u) })
	}
	if errors.Is(err, state.ErrTooLarge) {
		u.Turn, u.Body = nil, responses.Failed(r.job.Queued, errTooLarge)
		err = g.updateStored(r.job.ID, r.job.Owner, u)
	}
	r.job.Turn.End() // before finish, so that a watcher can begin the next turn
	if err != nil {
		g.system.Logger().Error("response not stored", "response_id", r.job.ID, "cause", err)
	}
}

// The times between two tries to store the end of a response.
const (
	firstWait   = time.Second
	longestWait = 8 * time.Second
)

// storeEnd calls store, which stores the end of a response, until the store takes changes again. It returns before if
// the store has failed for good or the process stops, because the next one ends the response then. The error is that of
// the last call.
func (g *Registry) storeEnd(id string, store func() error) error {
	err := store()
	for wait := firstWait; passing(err); wait = min(2*wait, longestWait) {
		if wait == firstWait {
			g.system.Logger().Warn("the end of a response is not stored yet", "response_id", id, "cause", err)
		}
		select {
		case <-time.After(wait):
		case <-g.store.Failed():
			return err
		case <-g.running.Done():
			return err
		}
		err = store()
	}
	return err
}

// StoreEnd stores the end of a response whose client was reading it, which end makes of the response as it is stored.
// It does not wait for that, because the store may be away. Nothing happens if the response has an end already, or if
// the process stops.
func (g *Registry) StoreEnd(id string, owner state.Owner, end func(begun []byte) []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running.Err() != nil {
		return
	}
	g.system.Go(g.supervisor, "end of a response", func(ctx context.Context) any {
		err := g.storeEnd(id, func() error {
			r, err := work.ReadResponse(ctx, g.store, id, owner)
			if err != nil {
				return err
			}
			return g.updateStored(id, owner, work.ResponseUpdate{Body: end(r.Body)})
		})
		if err != nil && !errors.Is(err, state.ErrNotFound) { // not found if it was deleted meanwhile
			g.system.Logger().Error("response not stored", "response_id", id, "cause", err)
		}
		return nil
	})
}

// TurnItems returns the items that a response with this body adds to its conversation: its input,
// which is an array, and its output. It returns nil if turn is nil or the response has ended
// without an answer.
func TurnItems(ctx context.Context, turn *work.Turn, input, body []byte) ([]json.RawMessage, error) {
	if turn == nil || !responses.Answered(responses.Status(body)) {
		return nil, nil
	}
	return turn.Items(ctx, responses.Elements(input), responses.OutputItems(body))
}

// updateStored stores the final state of a response, which is that of u.Body, unless it has ended,
// was deleted or is another process's.
func (g *Registry) updateStored(id string, owner state.Owner, u work.ResponseUpdate) error {
	u.Status = responses.Status(u.Body)
	_, err := work.UpdateResponse(context.Background(), g.store, id, owner, u)
	if errors.Is(err, state.ErrFinished) || errors.Is(err, state.ErrNotFound) || errors.Is(err, work.ErrTaken) {
		return nil
	}
	return err
}
