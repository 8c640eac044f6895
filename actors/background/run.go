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

// maxLog bounds the events kept of one response.
const maxLog = 32 << 20

// errCancelled is the cause with which Cancel ends a run.
var errCancelled = errors.New("response cancelled")

// errTooLarge ends a run that says more than can be kept.
var errTooLarge = dialogue.ResponseTooLarge()

// Event is one event of a response's stream.
type Event struct {
	Sequence int64
	Raw      []byte // framed
}

// run is a response in flight: what its recorder and its watchers share.
type run struct {
	job    Job
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something is added
	events  []Event
	held    []byte // the event of a failure, until it is known what becomes of it
	size    int
	started bool
	done    bool

	origin telemetry.Origin // the request that asked for it
	memory memory.Claim     // for the job and its events; under mu once it runs
}

func newRun(job Job, budget memory.Pool) *run {
	r := &run{job: job, changed: make(chan struct{}), memory: memory.NewClaim(budget, string(job.Owner))}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// add appends the events of a chunk, which holds whole ones. Past the bound it still does, and returns an error so that
// the run is ended.
func (r *run) add(chunk []byte) error {
	events := upstream.NewEventReader(bytes.NewReader(chunk))
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		ev, err := events.Next()
		if err != nil {
			break
		}
		e := renumbered(&ev, r.job.numbers())
		if kind := gjson.GetBytes(ev.Data, "type").Str; kind == "response.failed" || kind == "error" {
			r.held = e.Raw
			continue
		}
		r.append(e)
	}
	r.started = true
	r.tell()
	if r.size > maxLog {
		return errTooLarge
	}
	return nil
}

func (r *run) append(e Event) {
	r.events = append(r.events, e)
	r.size += len(e.Raw)
	r.memory.Adopt(int64(len(e.Raw)))
}

// renumbered is an event of a run whose numbers begin at from.
func renumbered(ev *upstream.Event, from int64) Event {
	number := gjson.GetBytes(ev.Data, "sequence_number").Int() + from
	if from == 0 {
		return Event{number, bytes.Clone(ev.Raw)}
	}
	data, err := sjson.SetBytes(ev.Data, "sequence_number", number)
	if err != nil {
		data = ev.Data // no object: nothing that is resumed behind
	}
	return Event{number, framed(ev.Name, data)}
}

func framed(name string, data []byte) []byte {
	var raw []byte
	if name != "" {
		raw = append(append(append(raw, "event: "...), name...), '\n')
	}
	return append(append(append(raw, "data: "...), data...), "\n\n"...)
}

// admit adds the failure that was held back: it is how the response ends.
func (r *run) admit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		return
	}
	ev, err := upstream.NewEventReader(bytes.NewReader(r.held)).Next()
	if err == nil {
		r.append(Event{gjson.GetBytes(ev.Data, "sequence_number").Int(), r.held})
	}
	r.held = nil
	r.tell()
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
	all := make([]byte, 0, r.size)
	last := int64(0)
	for _, ev := range r.events {
		all = append(all, ev.Raw...)
		last = ev.Sequence
	}
	return all, last
}

// last is the type and data of the last event so far, and the number of the
// next one.
func (r *run) last() (kind string, data []byte, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return "", nil, r.job.numbers()
	}
	last := r.events[len(r.events)-1]
	ev, err := upstream.NewEventReader(bytes.NewReader(last.Raw)).Next()
	if err != nil {
		return "", nil, last.Sequence + 1
	}
	return gjson.GetBytes(ev.Data, "type").Str, ev.Data, last.Sequence + 1
}

// ending returns the response of the terminal event, or nil if there was none, and whether the stream has ended, which
// it also does with a bare error.
func (r *run) ending() (body []byte, ended bool) {
	kind, data, _ := r.last()
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		return []byte(gjson.GetBytes(data, "response").Raw), true
	case "error":
		return nil, true
	}
	return nil, false
}

// end appends the terminal event of a response that the gateway ended. There is
// no event for a cancellation; clients stop at an unknown one, so the status of
// the response says it (wire/responses.md).
func (r *run) end(body []byte) {
	_, _, next := r.last()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(Event{next, failedEvent(body, next)})
	r.tell()
}

func failedEvent(body []byte, sequence int64) []byte {
	event := strconv.AppendInt([]byte(`{"type":"response.failed","sequence_number":`), sequence, 10)
	return framed("response.failed", append(append(append(event, `,"response":`...), body...), '}'))
}

// record runs the request, keeps its output, and concludes the run when it is over. So no watcher learns of an end
// that is not durable.
func (g *Registry) record(r *run) {
	defer func() {
		if reason := recover(); reason != nil {
			g.system.Logger().Error("background response panicked", "response_id", r.job.ID,
				"panic", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
			g.conclude(r, dialogue.ServerError(errCrashed, nil))
			panic(reason) // kit counts it
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
	if r.handsOver(failure) {
		g.handOver(r)
		return
	}
	g.conclude(r, failure)
}

// handsOver reports whether a run that ended with failure ended with its process
// and will be begun again by the next one.
func (r *run) handsOver(failure *dialogue.Error) bool {
	return r.job.lasts() && errors.Is(failure, upstream.ErrDraining) && !errors.Is(context.Cause(r.ctx), errCancelled)
}

// handOver leaves a response to the next process: its record is as it was when
// it began. Its watchers get an event that asks them to come again.
func (g *Registry) handOver(r *run) {
	_, _, next := r.last()
	event := []byte(`{"type":"error","sequence_number":`)
	event = strconv.AppendInt(event, next, 10)
	event = append(event, `,"code":"shutting_down","message":"the gateway is restarting and goes on with the response: `+
		`resume its stream or retrieve it","param":null}`...)
	r.mu.Lock()
	r.held = nil
	r.append(Event{next, framed("error", event)})
	r.mu.Unlock()
	r.finish()
	g.system.Logger().Info("background response left to the next process", "response_id", r.job.ID, "run", r.job.run)
}

// conclude settles a run whose reply has ended: as its last event says, or if
// there is none, as cancelled or failed. So of a cancellation and the last event
// the first one counts.
func (g *Registry) conclude(r *run, failure *dialogue.Error) {
	r.admit()
	body, ended := r.ending()
	switch {
	case body != nil:
	case errors.Is(context.Cause(r.ctx), errCancelled):
		body = responses.Cancelled(r.job.Queued, g.now())
	default:
		body = responses.Failed(r.job.Queued, failure)
	}
	if !ended {
		r.end(body)
	}
	g.keep(r, body)
}

// keep makes the last state durable and only then tells the watchers that it is
// over.
func (g *Registry) keep(r *run, body []byte) {
	defer r.finish()
	log, last := r.log()
	if !r.job.Streamed {
		log = nil
	}
	turn, err := TurnItems(context.Background(), r.job.Turn, r.job.Input, body)
	if err == nil {
		err = g.update(r.job.ID, r.job.Owner, body, log, last, turn)
	}
	if errors.Is(err, state.ErrTooLarge) {
		err = g.update(r.job.ID, r.job.Owner, responses.Failed(r.job.Queued, errTooLarge), log, last, nil)
	}
	r.job.Turn.End() // before a watcher begins the next turn
	if err != nil {
		g.system.Logger().Error("background response not stored", "response_id", r.job.ID, "cause", err)
	}
}

// TurnItems returns what a response with this body adds to the conversation of turn: its input, which is an array, and
// its output if it has ended with an answer. It is nil for a nil turn.
func TurnItems(ctx context.Context, turn *work.Turn, input, body []byte) ([]json.RawMessage, error) {
	if turn == nil || !responses.Answered(responses.Status(body)) {
		return nil, nil
	}
	return turn.Items(ctx, responses.Elements(input), responses.OutputItems(body))
}

// update stores the last state of a response with what it adds to its conversation, unless it has ended or is deleted.
func (g *Registry) update(id string, owner state.Owner, body, log []byte, last int64, turn []json.RawMessage) error {
	_, err := work.UpdateResponse(context.Background(), g.store, id, owner,
		work.ResponseUpdate{Status: responses.Status(body), Body: body, Events: log, LastEvent: last, Turn: turn})
	if errors.Is(err, state.ErrFinished) || errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}
