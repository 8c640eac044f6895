package text

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/actors/engine"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
)

// holdLimit bounds the bytes that are held back before the first piece of answer. Beyond it the
// reply is sent, and a later failure becomes an error event in its stream.
const holdLimit = 64 << 10

// holdLimit returns the bound for this request. The first events of a stream repeat the
// instructions and tools of the request, which may be large. A reply that must have a compacted
// conversation waits behind them too, because a request that is answered otherwise can only be sent
// again while nothing has reached the client.
func (u *passthrough) holdLimit() int {
	if u.request.Head.Compaction != dialogue.NoCompaction {
		return largeReply
	}
	return holdLimit
}

// usageWait bounds how long an upstream may take to report the usage, or to end its reply, after
// the last piece of answer. The client waits as long for the end of the stream.
const usageWait = 2 * time.Second

// flushAt ends a chunk although more events are at hand.
const flushAt = 32 << 10

// passthrough carries a reply whose upstream speaks the client's shape. Events are forwarded as
// they came and only watched by the tap.
//
// It belongs to the goroutine of the attempt. out has events that are appended and not sent yet. They are
// sent together when no further event is at hand, or when they are many, so that a fast upstream costs few
// writes.
type passthrough struct {
	*attempt
	reply    *upstream.Reply
	key      string // the provider's, that the call was made with
	tap      shapes.Tap
	call     *telemetry.Call
	observer shapes.Parser // nil: prompts and replies are not kept
	late     *lateUsage
	events   *upstream.EventReader // nil: the reply is no stream
	out      *Buffer
	tier     callTier
	seen     bool // the first event
	content  bool // a piece of answer has passed
	inBand   bool // the failure is an event of the reply
	ended    bool // the terminal event has been appended
	// completeFailed is set if Request.Complete refused the end of the reply.
	completeFailed bool
}

// run carries the reply. A stream spends its life here, so the frame is kept small: what run needs only before or after
// the stream is in functions of its own, and close has all that is to be given back.
func (u *passthrough) run(ctx context.Context) *upstream.Failure {
	switch {
	case u.request.Head.Stream != u.reply.IsStream():
		return u.otherForm(ctx, u.reply)
	case !u.request.Head.Stream:
		return u.whole(ctx, u.reply)
	}
	var err error
	if u.events, err = u.reply.Events(); err != nil {
		return engine.FailureOf(err)
	}
	f := u.stream(ctx)
	if f != nil {
		u.endFailed(f)
	}
	return f
}

// endFailed reads the usage that is still to come of a stream that failed, and prepares its end.
func (u *passthrough) endFailed(f *upstream.Failure) {
	u.late.read(u.events, u.tap.Done, func(ev *upstream.Event) {
		u.keepTier(&u.tier, ev.Data)
		u.tap.Event(ev.Name, ev.Data)
	})
	u.noteUsage(u.tap.Usage(), u.tap.Reason())
	u.conclude(f)
}

// close ends the call and gives back what it holds. failure is the class of the failure, or "".
func (u *passthrough) close(failure string) {
	u.out.Free()
	u.events.Release()
	u.reply.Close()
	u.late.close()
	u.call.RecordUsage(u.outcome.Usage, u.outcome.Reason)
	u.endCall(u.call, failure)
}

// whole reads and delivers a reply that is one document.
func (u *passthrough) whole(ctx context.Context, reply *upstream.Reply) *upstream.Failure {
	buf := newBuffer()
	f := u.readWhole(ctx, reply, buf)
	if f == nil {
		f = u.deliver(ctx, buf)
	}
	if f != nil {
		buf.Free()
	}
	return f
}

// readWhole reads the document into buf, checks it, and settles it before the client gets it. The document is
// read into memory as a whole, since its usage and the reason of its end decide whether the client gets it.
// Each observer looks at the same bytes.
func (u *passthrough) readWhole(ctx context.Context, reply *upstream.Reply, buf *Buffer) *upstream.Failure {
	body, err := reply.ReadAll(buf.B)
	buf.B = body
	if err != nil {
		return engine.FailureOf(err)
	}
	u.keepModel(body)
	u.keepTier(&u.tier, body)
	u.keepNames(body)
	u.keepProofs(body)
	if u.observer != nil {
		u.observer.Body(body, u.call.KeepText)
	}
	out, bad := u.tap.Body(body)
	if bad != nil {
		return u.refused(bad)
	}
	if f := u.withheld(u.tap.Reason(), func() bool { return u.shape.Answer.Bytes(out) > 0 }); f != nil {
		return f
	}
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, replacement)
	}
	buf.B = out
	if usage := u.tap.Usage(); u.request.Meter != nil || usage.OutputTotal < 0 { // else nothing needs the guess
		u.counted.output = tokens.Estimate(u.shape.Answer.Bytes(out))
	}
	u.noteUsage(u.tap.Usage(), u.tap.Reason())
	if !u.closes() {
		return nil
	}
	if _, err := u.closeReply(ctx, out); err != nil {
		return engine.CallerFault(err)
	}
	return nil
}

// otherForm handles a whole reply to a request for a stream, and a stream in answer to a request
// for a whole reply. The client's parser would fail on it, so it is translated. A compacted
// conversation cannot be, and the text of any other reply is no summary.
func (u *passthrough) otherForm(ctx context.Context, reply *upstream.Reply) *upstream.Failure {
	if u.request.Head.Compaction != dialogue.NoCompaction {
		return u.refused(dialogue.BadUpstream("the reply to a request to compact has another form"))
	}
	req, err := u.decode()
	if err != nil {
		return engine.CallerFault(err)
	}
	return u.runTranslated(ctx, req, func(_ context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		parser := u.shape.NewParser(u.request.Head.Choices(), u.env)
		in := &incoming{attempt: u.attempt, reply: reply, parser: parser, late: u.late, emit: emit}
		defer func() { in.events.Release() }()
		return in.read(flush)
	})
}

// refused returns the failure for an error in the reply.
func (u *passthrough) refused(err *dialogue.Error) *upstream.Failure {
	f := u.refusedInBody(err)
	f.Compaction = u.isAboutCompaction(f)
	return f
}

// stream forwards events until the reply has ended. An answer is whole before the stream is: the usage
// follows it. The wait for that is bounded (usageWait).
func (u *passthrough) stream(ctx context.Context) *upstream.Failure {
	for !u.tap.Done() {
		if u.tap.Answered() && !u.events.Buffered() {
			u.reply.EndWithin(usageWait)
		}
		u.events.Wait()
		if f, more := u.take(ctx); !more {
			return f
		}
	}
	u.reply.Drain()
	return u.answered()
}

// take handles an event, or the error that came in its place. more is false if nothing further is to be read.
// When the client has left, the rest is only read for the usage (lateUsage), because it is charged.
func (u *passthrough) take(ctx context.Context) (f *upstream.Failure, more bool) {
	ev, err := u.events.Next()
	if u.late.left() {
		if err == nil && u.tap.Answered() && fields.CheckEvent(ev.Data) == nil {
			u.keepTier(&u.tier, ev.Data)
			u.tap.Event(ev.Name, ev.Data)
		}
		return engine.Cancelled(ctx), false
	}
	if errors.Is(err, io.EOF) || err != nil && u.tap.Answered() {
		return u.eof(ctx), false
	}
	if err != nil {
		return u.reply.Failed(err), false
	}
	if f := u.event(ctx, &ev); f != nil {
		return f, false
	}
	if u.tap.Answered() {
		u.late.answerEnded()
	}
	hold := !u.content && !u.sink.Committed() && !u.tap.Done() && u.out.Len() < u.holdLimit()
	if hold || (u.events.Buffered() && u.out.Len() < flushAt && !u.tap.Done()) {
		return nil, true
	}
	if f := u.flush(ctx); f != nil {
		return f, false
	}
	if !u.ended && u.outOfMoney() {
		return exhausted(), false
	}
	return nil, true
}

// event appends one event as the client gets it. The order of the steps counts: an event is checked and made
// valid UTF-8 before anything reads it, and the reply is closed before its last event is appended, since that
// may be replaced.
func (u *passthrough) event(ctx context.Context, ev *upstream.Event) *upstream.Failure {
	if bad := fields.CheckEvent(ev.Data); bad != nil {
		if u.tap.Answered() {
			return nil
		}
		return u.refusedInBody(bad)
	}
	if !utf8.Valid(ev.Data) {
		ev.Data, ev.Plain = bytes.ToValidUTF8(ev.Data, replacement), false
	}
	if ev.Name == "" && u.shape.Traits.NamesEvents {
		ev.Name, ev.Plain = nameOf(ev.Data), false
	}
	u.observe(ev)
	replaced, verdict, content := u.tap.Event(ev.Name, ev.Data)
	answered := func() bool { return u.content || u.shape.Answer.Bytes(ev.Data) > 0 }
	if f := u.withheld(u.tap.Reason(), answered); f != nil {
		return f
	}
	name := ev.Name
	switch {
	case verdict == shapes.Failed:
		u.inBand = true
		return u.refused(u.tap.Err())
	case verdict == shapes.Drop:
		return nil
	case u.tap.Done() && u.closes() && (content || u.begun()):
		last := ev.Data
		if verdict == shapes.Replace {
			last = replaced
		}
		instead, f := u.complete(ctx, last)
		if f != nil {
			return f
		}
		if instead != nil {
			name, replaced, verdict = typeOf(instead), instead, shapes.Replace
		}
	}
	if content {
		u.countContent(ev.Data)
	}
	if u.ended = u.tap.Done(); u.ended && !u.begun() {
		return &upstream.Failure{Class: upstream.Transient, Err: dialogue.Incomplete()} // an end without a beginning
	}
	u.out = u.out.ready()
	switch {
	case verdict == shapes.Replace:
		u.out.B = appendEvent(u.out.B, name, replaced)
	case ev.Plain:
		u.out.B = append(u.out.B, ev.Raw...)
	default:
		u.out.B = appendEvent(u.out.B, name, ev.Data)
	}
	return nil
}

// nameOf returns the name for an event that came without one: its type, if that fits on a line.
func nameOf(data []byte) string {
	name := typeOf(data)
	if strings.ContainsAny(name, "\r\n") {
		return ""
	}
	return name
}

// observe reads an event for the log, the price and the next turn of the conversation. It changes nothing of the reply.
func (u *passthrough) observe(ev *upstream.Event) {
	u.keepModel(ev.Data)
	u.keepTier(&u.tier, ev.Data)
	if !u.seen {
		u.seen = true
		u.keepNames(ev.Data)
	}
	if u.observer != nil {
		u.observer.Event(ev.Name, ev.Data, u.call.KeepText)
	}
	u.keepProofs(ev.Data)
}

// complete closes the reply before the client gets last, its last event. A reply that cannot be closed is a failure of
// the request as long as the client has got nothing. After that the client gets the event instead in place of last.
func (u *passthrough) complete(ctx context.Context, last []byte) (instead []byte, f *upstream.Failure) {
	u.noteUsage(u.tap.Usage(), u.tap.Reason())
	instead, err := u.closeReply(u.bounded(ctx), last)
	if err == nil {
		return nil, nil
	}
	if instead == nil || !u.sink.Committed() {
		u.completeFailed = true
		return nil, engine.CallerFault(err)
	}
	u.outcome.Err = err
	return instead, nil
}

// countContent counts an event that has a piece of the answer. Without a price only the number of pieces is needed.
func (u *passthrough) countContent(data []byte) {
	u.content = true
	u.call.CountPiece()
	if u.request.Meter != nil {
		u.counted.event(u.shape, data)
	} else {
		u.counted.piece()
	}
}

// begun reports whether anything of the reply has come before.
func (u *passthrough) begun() bool {
	return u.content || u.sink.Committed() || u.out.Len() > 0
}

// replacement stands for bytes that are no UTF-8: clients refuse a stream that
// has any.
var replacement = []byte("\ufffd")

// bounded returns ctx until the answer is whole, and then the one without the total
// deadline.
func (u *passthrough) bounded(ctx context.Context) context.Context {
	if u.tap.Answered() {
		return u.unbounded
	}
	return ctx
}

// flush delivers the events that have been collected.
func (u *passthrough) flush(ctx context.Context) *upstream.Failure {
	if u.out.Len() == 0 {
		return nil
	}
	u.noteUsage(u.tap.Usage(), u.tap.Reason())
	if f := u.deliver(u.bounded(ctx), u.out); f != nil {
		return f
	}
	u.terminated = u.ended
	u.out = nil
	return nil
}

// eof handles the end of the body before the terminal event, which some servers leave out, and the end of the
// wait for the usage. The tap decides whether the reply is complete without it. The price is settled before
// the end of the stream is sent, as for a reply that ends with its own event.
func (u *passthrough) eof(ctx context.Context) *upstream.Failure {
	owed, bad := u.tap.EOF()
	if bad != nil {
		return &upstream.Failure{Class: upstream.Transient, Err: bad}
	}
	if u.request.Meter != nil && u.begun() {
		u.noteUsage(u.tap.Usage(), u.tap.Reason())
		if err := u.sink.Settle(u.bounded(ctx)); err != nil {
			return engine.CallerFault(err)
		}
	}
	if u.ended = true; len(owed) > 0 {
		u.out = u.out.ready()
		u.out.B = append(u.out.B, owed...)
	}
	if f := u.flush(ctx); f != nil {
		return f
	}
	return u.answered()
}

// answered stores the usage of a stream that ended properly. It returns a failure for a
// stream without any content.
func (u *passthrough) answered() *upstream.Failure {
	u.noteUsage(u.tap.Usage(), u.tap.Reason())
	if !u.sink.Committed() {
		return &upstream.Failure{Class: upstream.Transient, Err: dialogue.Incomplete()}
	}
	return nil
}

// conclude prepares the end of a stream that failed: the error event of the shape, if the client
// has a piece of the answer or has one coming. Otherwise the engine decides about another attempt.
func (u *passthrough) conclude(f *upstream.Failure) {
	switch {
	case u.sink.Committed() || u.content && !u.completeFailed:
		u.last = u.failed(f)
	case u.inBand && u.out.Len() > 0:
		u.opening = u.failed(f)
	}
}

// failed returns the chunks that have not been sent yet, and the shape's terminal error event.
func (u *passthrough) failed(f *upstream.Failure) *Buffer {
	out := u.out.ready()
	u.out = nil
	switch {
	case u.ended: // and only its delivery failed
	case u.completeFailed:
		out.B = u.fallbackFailure(out.B, f.Err) // the tap has ended already
	default:
		out.B = u.failStream(out.B, f.Err)
	}
	return out
}

// appendEvent appends a server-sent event. Data of several lines gets a data field for each, as the
// format demands.
func appendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	dst = append(dst, "data: "...)
	for _, c := range data {
		dst = append(dst, c)
		if c == '\n' {
			dst = append(dst, "data: "...)
		}
	}
	return append(dst, "\n\n"...)
}
