package translator

import (
	"context"
	"errors"
	"io"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// holdLimit bounds what is held back while waiting for the first piece of
// answer. Past it the reply is committed and failures become stream errors.
const holdLimit = 64 << 10

// flushAt ends a frame although more events are at hand.
const flushAt = 32 << 10

// untouched carries a reply whose upstream speaks the client's shape: events
// are forwarded as they came, and only watched.
type untouched struct {
	*attempt
	tap     shapes.Tap
	content bool // a piece of answer has passed
}

func (u *untouched) run(ctx context.Context, reply *upstream.Reply) *upstream.Failure {
	if !u.order.Head.Stream {
		return u.whole(ctx, reply)
	}
	if !reply.IsStream() {
		return u.notStreamed(ctx, reply)
	}
	events, err := reply.Events()
	if err != nil {
		return err.(*upstream.Failure)
	}
	return u.stream(ctx, reply, events)
}

func (u *untouched) whole(ctx context.Context, reply *upstream.Reply) *upstream.Failure {
	buf := newBuffer()
	body, err := reply.ReadAll(buf.B)
	buf.B = body
	if err != nil {
		buf.Free()
		return err.(*upstream.Failure)
	}
	out, bad := u.tap.Body(body)
	if bad != nil {
		buf.Free()
		return u.refusedInBody(bad)
	}
	buf.B = out
	u.learn(u.tap.Usage(), u.tap.Reason())
	if u.order.Complete != nil {
		if _, err := u.order.Complete(ctx, u.meta, out); err != nil {
			buf.Free()
			return &upstream.Failure{Class: upstream.CallerFault, Err: err}
		}
	}
	return u.deliver(ctx, buf)
}

// notStreamed is a whole reply to a request for a stream. Sending it as it is
// would break the client's parser, so it goes through the dialogue after all.
func (u *untouched) notStreamed(ctx context.Context, reply *upstream.Reply) *upstream.Failure {
	req, err := u.decode()
	if err != nil {
		return callerFault(err)
	}
	return u.runTranslated(ctx, req, func(_ context.Context, emit func(*dialogue.Event), flush func() *upstream.Failure) *upstream.Failure {
		return readReply(reply, u.shape.NewParser(u.svc.env), emit, flush)
	})
}

func (u *untouched) stream(ctx context.Context, reply *upstream.Reply, events *upstream.EventReader) *upstream.Failure {
	out := newBuffer()
	defer func() { out.Free() }()
	for !u.tap.Done() {
		ev, err := events.Next()
		if err != nil {
			return u.ended(ctx, reply, out, err)
		}
		replaced, verdict, content := u.tap.Event(ev.Name, ev.Data)
		switch {
		case verdict == shapes.Failed:
			return u.broken(ctx, out, u.refusedInBody(u.tap.Err()))
		case verdict == shapes.Drop:
		default:
			if u.tap.Done() && u.order.Complete != nil {
				replaced, verdict = u.complete(ctx, ev.Data, replaced, verdict)
			}
			if verdict == shapes.Forward && ev.Plain {
				out.B = append(out.B, ev.Raw...)
			} else {
				if verdict == shapes.Forward {
					replaced = ev.Data
				}
				out.B = appendEvent(out.B, ev.Name, replaced)
			}
		}
		u.content = u.content || content
		hold := !u.content && !u.conduit.committed && !u.tap.Done() && len(out.B) < holdLimit
		if hold || len(out.B) == 0 || (events.Buffered() && len(out.B) < flushAt && !u.tap.Done()) {
			continue
		}
		u.learn(u.tap.Usage(), u.tap.Reason())
		if f := u.deliver(ctx, out); f != nil {
			out = newBuffer()
			return f
		}
		out = newBuffer()
	}
	u.learn(u.tap.Usage(), u.tap.Reason())
	reply.Drain()
	return nil
}

// complete shows the last event to the order's hook, which may replace it.
func (u *untouched) complete(ctx context.Context, data, replaced []byte, verdict shapes.Verdict) ([]byte, shapes.Verdict) {
	last := data
	if verdict == shapes.Replace {
		last = replaced
	}
	replacement, err := u.order.Complete(ctx, u.meta, last)
	if err != nil && replacement != nil {
		return replacement, shapes.Replace
	}
	return replaced, verdict
}

// ended handles the end of the body before the terminal event.
func (u *untouched) ended(ctx context.Context, reply *upstream.Reply, out *Buffer, err error) *upstream.Failure {
	if !errors.Is(err, io.EOF) {
		return u.broken(ctx, out, reply.Failed(err))
	}
	owed, bad := u.tap.EOF()
	if bad != nil {
		return u.broken(ctx, out, &upstream.Failure{Class: upstream.Transient, Err: bad})
	}
	u.learn(u.tap.Usage(), u.tap.Reason())
	rest := newBuffer()
	rest.B = append(append(rest.B, out.B...), owed...)
	if len(rest.B) == 0 {
		rest.Free()
		return nil
	}
	return u.deliver(ctx, rest)
}

// broken ends a reply that failed: with the shape's error event if the client
// has seen a part of it, else by handing the failure to the actor.
func (u *untouched) broken(ctx context.Context, out *Buffer, f *upstream.Failure) *upstream.Failure {
	u.learn(u.tap.Usage(), u.tap.Reason())
	if !u.conduit.committed && !u.content {
		return f
	}
	last := newBuffer()
	last.B = u.tap.Fail(append(last.B, out.B...), f.Err)
	u.lastWords(last)
	return f
}

// appendEvent frames data that may have several lines, as an upstream's may.
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
