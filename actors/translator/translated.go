package translator

import (
	"bytes"
	"context"
	"errors"
	"io"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// A producer makes the events of one reply. It calls flush whenever what it
// emitted should not wait for what comes next, and stops when flush fails. The
// failure it returns is one that is no event: nothing was emitted for it.
type producer func(ctx context.Context, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure

// translated carries a reply through the dialogue: a producer makes events, an
// emitter of the client's shape writes them.
type translated struct {
	*attempt
	ctx     context.Context
	req     *dialogue.Request
	emitter shapes.Emitter

	out     *Buffer
	content bool // a piece of answer has been emitted
	ended   bool
	failure *upstream.Failure
	usage   dialogue.Usage
}

// runTranslated performs an attempt through the dialogue. Each attempt has its
// own emitter, so nothing of a failed one is left over.
func (a *attempt) runTranslated(ctx context.Context, req *dialogue.Request, p producer) *upstream.Failure {
	t := &translated{attempt: a, ctx: ctx, req: req, usage: dialogue.NoUsage, out: newBuffer()}
	t.emitter = a.order.Inbound.NewEmitter(req, a.order.Mode, a.svc.env)
	a.failStream = t.appendFailure
	defer func() { t.out.Free() }()
	if f := p(ctx, t.event, t.flush); f != nil {
		t.fail(f)
	}
	return t.finish()
}

// over reports whether the sequence has ended.
func (t *translated) over() bool { return t.ended || t.failure != nil }

// event emits one event.
func (t *translated) event(ev *dialogue.Event) {
	if t.over() {
		return
	}
	switch ev.Kind {
	case dialogue.EventError:
		t.fail(t.refusedInBody(ev.Err))
		return
	case dialogue.EventOpen:
		if name, ok := t.renamed(ev); ok {
			call := *ev.Call
			call.Name = name
			ev.Call = &call
		}
		t.content = t.content || ev.PartKind == dialogue.CallPart || ev.PartKind == dialogue.MediaPart
	case dialogue.EventDelta:
		t.content = true
	case dialogue.EventUsage:
		t.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		t.reason = ev.Reason
	case dialogue.EventEnd:
		t.ended = true
		t.end(ev)
		return
	}
	t.out.B = t.emitter.Emit(t.out.B, ev)
}

// fail ends the sequence with a failure. Before anything was sent it is the
// actor's to decide on; after that the client is told in its stream.
func (t *translated) fail(f *upstream.Failure) {
	if t.over() {
		return
	}
	t.failure = f
	if t.told() {
		t.out.B = t.emitter.Emit(t.out.B, &dialogue.Event{Kind: dialogue.EventError, Err: f.Err})
	}
}

func (t *translated) appendFailure(dst []byte, err *dialogue.Error) []byte {
	return t.emitter.Emit(dst, &dialogue.Event{Kind: dialogue.EventError, Err: err})
}

// renamed gives a tool back the name the client knows it by.
func (t *translated) renamed(ev *dialogue.Event) (string, bool) {
	if ev.Call == nil || t.req.Renamed == nil {
		return "", false
	}
	name, ok := t.req.Renamed[ev.Call.Name]
	return name, ok
}

// end emits the terminal event, after showing it to the order's hook.
func (t *translated) end(ev *dialogue.Event) {
	before := len(t.out.B)
	t.out.B = t.emitter.Emit(t.out.B, ev)
	if t.order.Complete == nil {
		return
	}
	last := t.out.B[before:]
	if t.order.Mode == shapes.Stream {
		last = lastData(last)
	}
	replacement, err := t.order.Complete(t.ctx, t.meta, last)
	if err == nil {
		return
	}
	if !t.conduit.committed || replacement == nil {
		t.failure = &upstream.Failure{Class: upstream.CallerFault, Err: err}
		return
	}
	t.out.B = shapes.AppendEvent(t.out.B[:before], "", replacement)
}

// flush sends what has been emitted, once there is a piece of answer in it.
func (t *translated) flush() *upstream.Failure {
	hold := !t.content && !t.ended && !t.conduit.committed && len(t.out.B) < holdLimit
	if hold || len(t.out.B) == 0 || t.failure != nil {
		return nil
	}
	t.learn(t.usage, t.reason)
	out := t.out
	t.out = newBuffer()
	return t.deliver(t.ctx, out)
}

// told reports whether the client has, or has coming, a piece of the answer: a
// failure then belongs into its stream, whether or not the piece and the
// failure came in one read.
func (t *translated) told() bool {
	return t.conduit.committed || t.content && t.order.Mode != shapes.Whole
}

// finish sends what is left and says how it went.
func (t *translated) finish() *upstream.Failure {
	t.learn(t.usage, t.reason)
	if !t.over() {
		// A producer that stops without End or Error is a bug; the client must
		// not wait for it.
		t.fail(&upstream.Failure{Class: upstream.Transient, Err: dialogue.Incomplete()})
	}
	if t.failure == nil {
		return t.flush()
	}
	if t.told() {
		out := t.out
		t.out = newBuffer()
		t.lastWords(out)
	}
	return t.failure
}

// call makes a producer of one upstream call.
func (a *attempt) producer(call shapes.Call) producer {
	return func(ctx context.Context, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure {
		reply, f := a.send(ctx, call)
		if f != nil {
			return f
		}
		defer reply.Close()
		return readReply(reply, a.shape.NewParser(a.svc.env), emit, flush)
	}
}

// readReply lets parser make events of a reply, streamed or whole.
func readReply(reply *upstream.Reply, parser shapes.Parser, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure {
	if !reply.IsStream() {
		body, err := reply.ReadAll(nil)
		if err != nil {
			return err.(*upstream.Failure)
		}
		parser.Body(body, emit)
		return nil
	}
	events, err := reply.Events()
	if err != nil {
		return err.(*upstream.Failure)
	}
	pending := 0
	for !parser.Done() {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			parser.EOF(emit)
			return nil
		}
		if err != nil {
			return reply.Failed(err)
		}
		parser.Event(ev.Name, ev.Data, emit)
		if pending += len(ev.Data); events.Buffered() && pending < flushAt {
			continue
		}
		pending = 0
		if f := flush(); f != nil {
			return f
		}
	}
	reply.Drain()
	return nil
}

// lastData returns the data of the last server-sent event in b.
func lastData(b []byte) []byte {
	r := upstream.NewEventReader(bytes.NewReader(b))
	var last []byte
	for {
		ev, err := r.Next()
		if err != nil {
			return last
		}
		last = append(last[:0], ev.Data...)
	}
}
