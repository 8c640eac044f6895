package images

import (
	"context"
	"errors"
	"io"
	"net/http"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// part is one of the calls that together make the reply.
type part struct {
	request  *picture.Request
	call     *picture.Call // nil: the sandbox
	partials *partials
	permit   *throttle.Permit // nil: the call acquires one
}

// partials counts the partial images of one call. A call that streams makes one image. A picture that was
// begun is paid for even if its call fails, so its partial images are counted when they are passed on.
type partials struct {
	sent  int
	whole bool // the last of them is the picture
}

// passed counts a partial image that was passed on. At the quality high, the last partial image that was
// asked for is the finished picture. That counts in the price of a stream that breaks off.
func (a *attempt) passed(n *partials, r *picture.Request, p *picture.Partial) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome.Partials++
	if n.sent++; n.sent == 1 {
		a.outcome.Begun++
	}
	if !n.whole && r.Quality == "high" && p.Index+1 >= r.Partials {
		n.whole = true
		a.outcome.Whole++
	}
}

// made counts the images of a call that succeeded. They are no longer begun ones. What a successful call
// makes is counted by made alone. The counts of passed are taken back, so that no picture counts twice.
func (a *attempt) made(n *partials, reply *picture.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome.Made += reply.Delivered()
	if n.sent > 0 {
		a.outcome.Begun--
	}
	if n.whole {
		a.outcome.Whole--
	}
}

// accept records in the outcome that the provider accepted the request, so that it may charge for it.
func (a *attempt) accept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome.Accepted = true
}

// parts divides the request into calls of as many images as one can make, and
// writes them. The sandbox makes any number.
func (a *attempt) parts(ctx context.Context) ([]part, *upstream.Failure) {
	r := a.request.Picture
	if a.shape == nil {
		return []part{{request: r, partials: new(partials)}}, nil
	}
	most := max(a.shape.MaxImages(r, a.c.Model), 1)
	var parts []part
	for left := max(r.N, 1); left > 0; left -= most {
		sub := *r
		sub.N = min(most, left)
		call, err := a.shape.Encode(ctx, &sub, a.c.Model, &a.report)
		if ctx.Err() != nil {
			return nil, engine.Cancelled(ctx) // it waited for a mask
		}
		if err != nil {
			return nil, engine.CallerFault(err)
		}
		a.passthrough = call.Passthrough
		parts = append(parts, part{request: &sub, call: call, partials: new(partials)})
	}
	return parts, nil
}

// make makes all images, or none, because one call that fails ends the others. The first call has the permit p.
func (a *attempt) make(ctx context.Context, p *throttle.Permit) (*picture.Reply, *upstream.Failure) {
	parts, f := a.parts(ctx)
	if f != nil {
		return nil, f
	}
	parts[0].permit = p
	if len(parts) == 1 {
		return a.one(ctx, parts[0])
	}
	replies := make([]*picture.Reply, len(parts))
	f = engine.Calls(ctx, len(parts), func(ctx context.Context, i int) (f *upstream.Failure) {
		replies[i], f = a.one(ctx, parts[i])
		return f
	})
	if f != nil {
		return nil, finalIfSpent(f, replies)
	}
	return merged(replies), nil
}

// finalIfSpent returns the failure of several calls. If some of them have made pictures, it is one after which the
// request is not sent again, because these pictures cost money.
func finalIfSpent(f *upstream.Failure, replies []*picture.Reply) *upstream.Failure {
	for _, r := range replies {
		if r != nil {
			spent := *f
			spent.Class = upstream.CallerFault
			return &spent
		}
	}
	return f
}

// merged returns one reply that consists of several. It has no Raw, because the bytes of one upstream reply are not the
// reply to the client any more. If a call does not report its usage, the sum is too small and not unknown.
func merged(replies []*picture.Reply) *picture.Reply {
	all := *replies[0]
	all.Raw = nil
	for _, r := range replies[1:] {
		all.Images = append(all.Images, r.Images...)
		switch {
		case r.Usage == nil:
		case all.Usage == nil:
			all.Usage = r.Usage
		default:
			sum := *all.Usage
			sum.Add(r.Usage)
			all.Usage = &sum
		}
	}
	return &all
}

// one performs one call. used is what the limiter counts against the provider's tokens a minute.
func (a *attempt) one(ctx context.Context, p part) (reply *picture.Reply, f *upstream.Failure) {
	f = a.c.Call(ctx, p.permit, func() (used int, f *upstream.Failure) {
		a.mu.Lock()
		a.called = true
		a.mu.Unlock()
		ctx, call := a.beginCall(ctx, p)
		f = engine.CallerFault(dialogue.Internal(nil)) // stands if what follows panics
		defer func() { a.endCall(call, reply, f) }()
		if p.call == nil {
			reply, f = a.simulate(ctx, p)
		} else {
			reply, f = a.askOrYield(ctx, p)
		}
		if reply == nil {
			return 0, f
		}
		trim(reply, p.request.N)
		a.made(p.partials, reply)
		if u := reply.Usage; u != nil {
			used = int(u.Input() + u.Output())
		}
		return used, f
	})
	return reply, f
}

// trim leaves out what was not asked for: the client pays for no more than that, and
// each image may have to be fetched and kept.
func trim(reply *picture.Reply, n int) {
	if n = max(n, 1); len(reply.Images) > n {
		reply.Images, reply.Raw = reply.Images[:n], nil
	}
}

// askOrYield makes a call. If the upstream refuses it, askOrYield calls once more without the features of the request
// that may be the reason, if the shape can simplify it so. The reply then reports the features as losses.
func (a *attempt) askOrYield(ctx context.Context, p part) (*picture.Reply, *upstream.Failure) {
	reply, f := a.ask(ctx, p)
	y, yields := a.shape.Codec.(picture.Simplifier)
	if f == nil || !f.Answered || !yields {
		return reply, f
	}
	less, lost := y.Simplify(p.request, a.c.Model, f.Err)
	if less == nil {
		return reply, f
	}
	call, err := a.shape.Encode(ctx, less, a.c.Model, new(dialogue.Report)) // whose losses are known
	if err != nil {
		return nil, f
	}
	reply, again := a.ask(ctx, part{request: less, call: call, partials: p.partials})
	if again != nil {
		return nil, again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range lost {
		a.report.Lose(name)
	}
	return reply, nil
}

// simulate lets the embedded sandbox answer. A sandbox ends with an Event that is Done. One that ends without
// it is treated as a stream that was cut off.
func (a *attempt) simulate(ctx context.Context, p part) (*picture.Reply, *upstream.Failure) {
	var done *picture.Reply
	var stopped *upstream.Failure
	err := a.svc.Simulate(ctx, p.request, a.request.Header, func(ev *picture.Event) error {
		a.accept()
		if done == nil {
			done, stopped = a.event(ctx, p, ev)
		}
		if stopped != nil {
			return stopped
		}
		return nil
	})
	switch {
	case stopped != nil:
		return nil, stopped
	case ctx.Err() != nil:
		return nil, engine.Cancelled(ctx)
	case err != nil:
		return nil, a.refusedInBody(err)
	case done == nil:
		return nil, a.refusedInBody(io.ErrUnexpectedEOF)
	}
	return done, nil
}

// ask calls the upstream.
func (a *attempt) ask(ctx context.Context, p part) (*picture.Reply, *upstream.Failure) {
	h := p.call.Header.Clone()
	if h == nil {
		h = make(http.Header, 2)
	}
	h.Set("Content-Type", p.call.Body.ContentType())
	if p.call.Stream {
		h.Set("Accept", "text/event-stream")
	}
	now := a.svc.Now()
	key := a.c.Runtime.TakeKey(now, a.c.Model)
	reply, err := a.c.Runtime.Client.Send(ctx,
		upstream.Request{Method: http.MethodPost, Path: p.call.Path, Query: p.call.Query,
			Header: h, Body: p.call.Body.Open, Length: p.call.Body.Len(), Owner: a.request.Owner}, a.shape.Authorize, key)
	if err != nil {
		return nil, engine.FailureOf(err)
	}
	defer reply.Close()
	made, f := a.read(ctx, p, reply)
	a.c.Runtime.JudgeKey(key, a.c.Model, f, a.svc.Now())
	return made, f
}

// read reads the reply to one call: an error, a stream or a body. The vendor decides which of the
// latter two it sends, whatever the request asked for.
func (a *attempt) read(ctx context.Context, p part, reply *upstream.Reply) (*picture.Reply, *upstream.Failure) {
	if reply.Status != http.StatusOK {
		body, err := reply.ReadAll(nil)
		if err != nil && len(body) == 0 {
			body = nil // the status is enough
		}
		decoded := a.shape.DecodeError(reply.Status, reply.Header, body)
		return nil, upstream.Refused(a.traits(), reply.Status, reply.Header, decoded, a.c.Runtime.Secrets()...)
	}
	a.accept()
	if reply.IsStream() {
		return a.events(ctx, p, reply)
	}
	body, err := reply.ReadAll(nil)
	if err != nil {
		return nil, engine.FailureOf(err)
	}
	made, err := a.shape.Body(p.request, body)
	if err != nil {
		return nil, a.refusedInBody(err)
	}
	if p.request.Stream {
		made.Raw = nil // it is no event
	}
	return made, nil
}

// events reads a streamed reply to its last event.
func (a *attempt) events(ctx context.Context, p part, reply *upstream.Reply) (*picture.Reply, *upstream.Failure) {
	events, err := reply.Events()
	if err != nil {
		return nil, engine.FailureOf(err)
	}
	for {
		raw, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil, a.refusedInBody(io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, engine.FailureOf(reply.Failed(err))
		}
		ev, err := a.shape.Event(p.request, raw.Name, raw.Data)
		if err != nil {
			return nil, a.refusedInBody(err)
		}
		if ev == nil {
			continue
		}
		if made, f := a.event(ctx, p, ev); made != nil || f != nil {
			if made != nil && !p.request.Stream {
				made.Raw = nil // it is an event
			}
			reply.Drain()
			return made, f
		}
	}
}

// event passes a partial image on, or returns the reply.
func (a *attempt) event(ctx context.Context, p part, ev *picture.Event) (*picture.Reply, *upstream.Failure) {
	if ev.Done != nil || ev.Partial == nil {
		return ev.Done, nil
	}
	if !a.request.Picture.Stream {
		return nil, nil // the client waits for the whole
	}
	if f := usable(&ev.Partial.Image); f != nil {
		return nil, f
	}
	return nil, a.send(ctx, p, ev.Partial)
}

// send delivers a partial image. Two locks are used, because mu must not be held while the client is slow.
func (a *attempt) send(ctx context.Context, p part, image *picture.Partial) *upstream.Failure {
	a.mu.Lock()
	meta := a.outcome.Meta
	meta.Losses = a.report.Header()
	a.mu.Unlock()
	a.sending.Lock()
	defer a.sending.Unlock()
	if !a.sink.Committed() {
		a.sink.Flow().Enter(flow.Replying)
	}
	if err := a.sink.Send(ctx, Partial{image, &meta}); err != nil {
		return upstream.CancelledBy(err)
	}
	a.passed(p.partials, p.request, image)
	return nil
}
