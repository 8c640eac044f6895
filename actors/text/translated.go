package text

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/tidwall/gjson"

	"stagedoor/actors/engine"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// A producer makes the events of one reply: an upstream call, the sandbox, or several calls that
// are merged. It calls flush whenever the events so far should not wait for the next one, and stops
// when flush returns a failure. It returns why it stopped early, or a failure for which there was
// no event.
type producer func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure

type (
	emitFunc  = func(*dialogue.Event)
	flushFunc = func() *upstream.Failure
	// produceFunc makes the producer of a request, or of a part of it.
	produceFunc = func(*dialogue.Request) (producer, error)
)

// translated carries a reply through the neutral form: a producer makes events, and an emitter of
// the client's shape writes them.
//
// Several events may be emitted before a flush, and out has their bytes. Of the flags, started and content
// say whether a failure is an error of the request or an event of its stream (conclude), and completeFailed
// that the end was taken back.
type translated struct {
	*attempt
	ctx     context.Context
	req     *dialogue.Request
	emitter shapes.Emitter
	// summarizer is the emitter if the client wants a summary. Nothing is sent before there is one.
	summarizer shapes.Summarizer

	out     *Buffer
	started bool // the reply began in good order
	content bool // a piece of answer has been emitted
	ended   bool
	inBand  bool // the failure is an event of the reply
	// completeFailed is set if Request.Complete refused the end of the reply.
	completeFailed bool

	failure *upstream.Failure
	usage   dialogue.Usage
	parts   int // that have been opened
	// finished counts the choices that have said why they ended.
	finished  int
	openParts openParts
	// arguments bound the nesting of the JSON in open calls, by choice and part. A client's shape
	// may write them as an object, and a client's parser must not fail on a depth that the gateway
	// would have refused.
	arguments map[[2]int]*fields.Nesting
}

// runTranslated performs an attempt through the dialogue. Each attempt has its
// own emitter, so nothing of a failed one is left over.
func (a *attempt) runTranslated(ctx context.Context, req *dialogue.Request, p producer) *upstream.Failure {
	t := &translated{attempt: a, ctx: ctx, req: req, usage: dialogue.NoUsage}
	t.emitter = a.request.Inbound.NewEmitter(req, a.request.Mode, a.env)
	t.summarizer, _ = t.emitter.(shapes.Summarizer)
	if a.request.Mode != shapes.Whole {
		a.failStream = t.appendFailure
	}
	defer func() { t.out.Free() }()
	if f := p(ctx, t.event, t.flush); f != nil {
		t.fail(f)
	}
	return t.finish()
}

// over reports whether the sequence has ended.
func (t *translated) over() bool { return t.ended || t.failure != nil }

// event emits one event. Events after the end or after a failure only add to the usage, because a failed reply was paid
// for, too.
func (t *translated) event(ev *dialogue.Event) {
	if ev.Kind == dialogue.EventUsage {
		t.usage.Merge(*ev.Usage)
	}
	if t.over() {
		return
	}
	switch ev.Kind {
	case dialogue.EventError:
		t.inBand = true
		t.fail(t.refusedInBody(ev.Err))
	case dialogue.EventStart:
		t.started = true
		t.outcome.ReplyModel = ev.Model
	case dialogue.EventOpen:
		t.openPart(ev)
	case dialogue.EventClose:
		delete(t.arguments, [2]int{ev.Choice, ev.Part})
		t.keepProofs(ev)
	case dialogue.EventDelta:
		t.addToPart(ev)
	case dialogue.EventFinish:
		t.finishChoice(ev.Reason)
	case dialogue.EventEnd:
		t.end(ev)
		return
	}
	if t.over() {
		return
	}
	if t.request.Meter != nil {
		t.openParts.see(ev)
	}
	t.out = t.out.ready()
	t.out.B = t.emit(t.out.B, ev)
}

// openPart adapts the beginning of a part to the client. It gives a tool its client's name, shows the picture of a
// vendor's own tool as a picture, reports what else such a tool did as a loss, and fails a reply of too many parts.
func (t *translated) openPart(ev *dialogue.Event) {
	if t.parts++; t.parts > fields.MaxParts {
		t.fail(t.refusedInBody(fields.TooManyParts()))
		return
	}
	if ev.PartKind == dialogue.ServerPart && ev.Origin != t.request.Inbound.Name {
		if ev.Media != nil {
			ev.PartKind, ev.Opaque = dialogue.MediaPart, nil // the client can show the picture, not the tool's item
		} else {
			t.report.Lose("reply:server_tool") // in the header of a stream only if it comes before the text
		}
	}
	if ev.PartKind == dialogue.MediaPart && !t.request.Inbound.Traits.ShowsImages {
		t.report.Lose("reply:image") // in the header of a stream only if it is the first piece
	}
	if name, ok := t.renamed(ev); ok {
		call := *ev.Call
		call.Name = name
		ev.Call = &call
	}
	t.content = t.content || t.summarizer == nil &&
		(ev.PartKind == dialogue.CallPart || ev.PartKind == dialogue.MediaPart)
	if ev.Call == nil {
		return
	}
	t.counted.text(ev.Call.Name)
	if ev.PartKind == dialogue.CallPart && !ev.Call.Custom {
		if t.arguments == nil {
			t.arguments = make(map[[2]int]*fields.Nesting)
		}
		t.arguments[[2]int{ev.Choice, ev.Part}] = new(fields.Nesting)
	}
}

// addToPart counts a piece of a part. Arguments that are nested too deeply fail the reply before the client's parser
// sees them.
func (t *translated) addToPart(ev *dialogue.Event) {
	if n := t.arguments[[2]int{ev.Choice, ev.Part}]; n != nil {
		if bad := n.Add("call", ev.Text); bad != nil {
			t.fail(t.refusedInBody(bad))
			return
		}
	}
	t.content = t.summarizer == nil
	t.counted.text(ev.Text)
}

// finishChoice counts a choice that has ended. After the last one only the usage is missing, which may arrive after the
// deadline of the request (attempt.unbounded). It also fails an answer that the content filter withheld.
func (t *translated) finishChoice(reason dialogue.Reason) {
	t.reason = reason
	if t.finished++; t.finished < t.request.Head.Choices() {
		return
	}
	t.ctx = t.unbounded
	if f := t.withheld(reason, func() bool { return t.content }); f != nil {
		t.fail(f)
	}
}

// emit appends what the client gets for an event. The emitters write JSON, so that a line or
// paragraph separator of Unicode can only stand in a string. There it is escaped, because some
// clients split events at those characters, too.
func (t *translated) emit(dst []byte, ev *dialogue.Event) []byte {
	from := len(dst)
	dst = t.emitter.Emit(dst, ev)
	if !bytes.Contains(dst[from:], separatorPrefix) {
		return dst
	}
	escaped := bytes.ReplaceAll(dst[from:], lineSeparator, []byte(`\u2028`))
	escaped = bytes.ReplaceAll(escaped, paragraphSeparator, []byte(`\u2029`))
	return append(dst[:from], escaped...)
}

var (
	lineSeparator      = []byte("\u2028")
	paragraphSeparator = []byte("\u2029")
	// separatorPrefix holds the bytes with which both separators begin in UTF-8.
	separatorPrefix = lineSeparator[:2]
)

// fail ends the sequence with a failure. Before anything was sent, the engine decides what follows; after that, the
// client's stream ends with it.
func (t *translated) fail(f *upstream.Failure) {
	if !t.over() {
		t.failure = f
	}
}

// appendFailure appends the terminal error event of the client's shape.
func (t *translated) appendFailure(dst []byte, err *dialogue.Error) []byte {
	return t.emit(dst, &dialogue.Event{Kind: dialogue.EventError, Err: err})
}

// renamed returns the client's own name for a tool whose name the encoder had to change.
func (t *translated) renamed(ev *dialogue.Event) (string, bool) {
	if ev.Call == nil || t.req.Renamed == nil {
		return "", false
	}
	name, ok := t.req.Renamed[ev.Call.Name]
	return name, ok
}

// end emits the terminal event, after showing it to Request.Complete and settling.
func (t *translated) end(ev *dialogue.Event) {
	if t.summarizer != nil && t.summarizer.Summary() == "" {
		t.fail(&upstream.Failure{Class: upstream.Transient, Err: dialogue.BadUpstream("the model wrote no summary")})
		return
	}
	t.ctx = t.unbounded
	t.out = t.out.ready()
	before := t.out.Len()
	out := t.emit(t.out.B, ev)
	t.ended = true
	if !t.closes() {
		t.out.B = out
		return
	}
	t.noteUsage(t.usage, t.reason)
	last := out[before:]
	if t.request.Mode == shapes.Stream && t.request.Complete != nil {
		last = lastData(last)
	}
	replacement, err := t.closeReply(t.ctx, last)
	switch {
	case err == nil:
		t.out.B = out
	case t.sink.Committed() && replacement != nil:
		t.out.B = shapes.AppendEvent(out[:before], typeOf(replacement), replacement)
		t.outcome.Err = err
	default:
		t.ended, t.out.B = false, out[:before]
		t.failure, t.completeFailed = engine.CallerFault(err), true
	}
}

// typeOf returns the name of an event of a shape that also writes it into the data.
func typeOf(data []byte) string { return gjson.GetBytes(data, "type").Str }

// flush sends what has been emitted, once it has a piece of answer. If the money is used up, it
// ends the reply.
func (t *translated) flush() *upstream.Failure {
	if t.failure != nil {
		return t.failure
	}
	hold := !t.content && !t.ended && !t.sink.Committed() && t.out.Len() < holdLimit
	if hold || t.out.Len() == 0 {
		return nil
	}
	t.noteUsage(t.usage, t.reason)
	if f := t.send(); f != nil {
		return f
	}
	if !t.ended && t.outOfMoney() {
		return t.endEarly()
	}
	return nil
}

// send delivers what has been emitted.
func (t *translated) send() *upstream.Failure {
	if f := t.deliver(t.ctx, t.out); f != nil {
		return f
	}
	t.out = nil
	t.terminated = t.ended
	return nil
}

// finish sends the rest of the reply, and returns the failure of the attempt or nil. It is called once, also
// for a producer that has failed.
func (t *translated) finish() *upstream.Failure {
	if !t.over() {
		// A producer that stops without End or Error is a bug; the client must
		// not wait for it.
		t.fail(&upstream.Failure{Class: upstream.Transient, Err: dialogue.Incomplete()})
	}
	t.noteUsage(t.usage, t.reason)
	if t.failure == nil {
		if f := t.flush(); f != nil {
			t.failure, t.ended = f, false
		}
	}
	if t.failure != nil {
		t.conclude()
	}
	return t.failure
}

// conclude prepares how a stream that failed ends. Once the client has a piece of the answer, or has one coming, the
// stream ends with the failure. Whether piece and failure came in one read must make no difference.
func (t *translated) conclude() {
	streamed := t.request.Mode != shapes.Whole
	begun := t.sink.Committed() || t.content && !t.completeFailed
	switch {
	case streamed && begun:
		t.last = t.failed()
	case streamed && t.started && t.inBand:
		t.opening = t.failed()
	}
}

// failed returns the chunks that have not been sent yet, and the shape's terminal error event.
func (t *translated) failed() *Buffer {
	out := t.out.ready()
	t.out = nil
	before := len(out.B)
	out.B = t.appendFailure(out.B, t.failure.Err)
	if len(out.B) == before && t.completeFailed {
		// The emitter has ended already, with an event that Request.Complete took back.
		out.B = t.fallbackFailure(out.B, t.failure.Err)
	}
	return out
}

// producer makes a producer of one upstream call. en is what the gateway does to the reply.
func (a *attempt) producer(call shapes.Call, choices int, en dialogue.Enforced) producer {
	p := func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		in, f := a.open(ctx, &call, choices, emit)
		if f != nil {
			return f
		}
		defer in.close()
		return in.read(flush)
	}
	return a.watched(call.Stream, a.enforced(en, call.Stream, choices, len(call.Body), p))
}

// incoming is the reply of one upstream call, from which parser makes events. A stream spends its life in read, so what
// is needed only before or after a wait is in functions of its own, which keeps the stack of each stream small.
type incoming struct {
	attempt *attempt
	reply   *upstream.Reply
	parser  shapes.Parser
	late    *lateUsage // may be nil
	emit    emitFunc
	events  *upstream.EventReader // nil: the reply is no stream
	tier    callTier
	pending int // bytes of events since the last flush
}

// open makes the call. The shape gives its parser before there is a reply, because a panic in between would leave the
// reply open.
func (a *attempt) open(
	ctx context.Context, call *shapes.Call, choices int, emit emitFunc,
) (*incoming, *upstream.Failure) {
	key := a.provider.TakeKey(a.svc.env.Now(), a.c.Model)
	in := &incoming{attempt: a, parser: a.shape.NewParser(choices, a.env), emit: func(ev *dialogue.Event) {
		if ev.Kind == dialogue.EventError {
			a.judgeKey(key, a.refusedInBody(ev.Err))
		}
		emit(ev)
	}}
	ctx, in.late = a.usageContext(ctx)
	var f *upstream.Failure
	if in.reply, f = a.send(ctx, *call, key); f != nil {
		in.late.close()
		return nil, f
	}
	return in, nil
}

// close ends the call.
func (in *incoming) close() {
	in.events.Release()
	in.reply.Close()
	in.late.close()
}

// read reads the reply, streamed or whole.
func (in *incoming) read(flush flushFunc) *upstream.Failure {
	if !in.reply.IsStream() {
		body, err := in.reply.ReadAll(nil)
		if err != nil {
			return engine.FailureOf(err)
		}
		in.attempt.keepTier(&in.tier, body)
		in.parser.Body(body, in.emit)
		return nil
	}
	var err error
	if in.events, err = in.reply.Events(); err != nil {
		return engine.FailureOf(err)
	}
	for !in.parser.Done() {
		if in.parser.Answered() && !in.events.Buffered() {
			in.reply.EndWithin(usageWait)
		}
		in.events.Wait()
		if f, more := in.take(flush); !more {
			return f
		}
	}
	in.reply.Drain()
	return nil
}

// take handles an event, or the error that came in its place. more is false if nothing further is to be read.
func (in *incoming) take(flush flushFunc) (f *upstream.Failure, more bool) {
	ev, err := in.events.Next()
	answered := in.parser.Answered()
	if in.late.left() {
		if err == nil && answered && fields.CheckEvent(ev.Data) == nil {
			in.attempt.keepTier(&in.tier, ev.Data)
			in.parser.Event(ev.Name, ev.Data, usageOnly(in.emit))
		}
		in.late.parse(in)
		return engine.Cancelled(in.late.attempt.ctx), false
	}
	if errors.Is(err, io.EOF) || err != nil && answered {
		return atEOF(in.parser, in.emit), false
	}
	if err != nil {
		return in.reply.Failed(err), false
	}
	switch bad := fields.CheckEvent(ev.Data); {
	case bad == nil:
		in.attempt.keepTier(&in.tier, ev.Data)
		in.parser.Event(ev.Name, ev.Data, in.emit)
	case !answered:
		in.emit(&dialogue.Event{Kind: dialogue.EventError, Err: bad})
		return nil, false
	}
	if in.parser.Answered() {
		in.late.answerEnded()
	}
	if in.pending += len(ev.Data); in.events.Buffered() && in.pending < flushAt {
		return nil, true
	}
	in.pending = 0
	if f := flush(); f != nil {
		in.late.parse(in)
		return f, false
	}
	return nil, true
}

// atEOF ends a body without a terminal event. An error there is the gateway's
// finding, not something the upstream said.
func atEOF(parser shapes.Parser, emit func(*dialogue.Event)) (f *upstream.Failure) {
	parser.EOF(func(ev *dialogue.Event) {
		if ev.Kind == dialogue.EventError {
			f = &upstream.Failure{Class: upstream.Transient, Err: ev.Err}
			return
		}
		emit(ev)
	})
	return f
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
