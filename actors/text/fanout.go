package text

import (
	"context"
	"slices"
	"sync"

	"stagedoor/actors/engine"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// part is one of the calls that together make the reply.
type part struct {
	req  *dialogue.Request
	base int // the index of its first choice
}

// split divides a request for several prompts or choices into calls for one
// prompt and at most most choices each. Choices are numbered prompt by prompt.
func split(req *dialogue.Request, most int) []part {
	n := max(req.N, 1)
	prompts := req.Prompts
	if len(prompts) == 0 {
		prompts = [][]byte{nil}
	}
	var parts []part
	for i, prompt := range prompts {
		for done := 0; done < n; done += most {
			sub := *req
			sub.N = min(most, n-done)
			if len(req.Prompts) > 0 {
				sub.Prompts = [][]byte{prompt}
				sub.Turns = promptTurns(req, prompt)
			}
			parts = append(parts, part{&sub, i*n + done})
		}
	}
	return parts
}

// fanOut performs an attempt by several calls at the same time. It merges their events into one sequence, in which the
// choices are renumbered, the usage is summed, and there is one start and one end.
func (a *attempt) fanOut(ctx context.Context, req *dialogue.Request, produce produceFunc) *upstream.Failure {
	parts := split(req, a.maxChoices())
	a.calls = len(parts)
	producers := make([]producer, len(parts))
	for i, p := range parts {
		var err error
		if producers[i], err = produce(p.req); err != nil {
			return engine.CallerFault(err)
		}
		req.Renamed = p.req.Renamed // the same for all: they have the same tools
	}
	a.translation(ctx, nil) // before the calls, which are made at the same time
	return a.runTranslated(ctx, req, func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		m := newMerger(len(parts), emit, flush)
		f := engine.Calls(ctx, len(parts), func(ctx context.Context, i int) *upstream.Failure {
			return a.persistentPart(ctx, m, i, parts[i].base, producers[i])
		})
		if f == nil {
			f = m.missing()
		}
		if f != nil {
			m.spent(int(a.accepted.Load()))
			return f
		}
		if m.endWithout() > 0 {
			a.report.Lose("n:incomplete")
			return flush()
		}
		return nil
	})
}

// persistentPart runs one call, and once more if it fails before its answer began. A second failure leaves its choices
// out of the reply, because the others are paid for. What it returns ends the reply: a failure after the answer began,
// the end of the request or of its reply, or a fault of the request itself before any call was answered.
func (a *attempt) persistentPart(ctx context.Context, m *merger, i, base int, p producer) *upstream.Failure {
	permit := a.permit
	if i > 0 {
		permit = nil
	}
	f := a.onePart(ctx, m, i, base, p, permit)
	ends := func() bool { return f.Class == upstream.Cancelled || m.hasBegun(i) || ctx.Err() != nil }
	if f != nil && f.Class != upstream.CallerFault && a.c.Runtime.Spec.Retries > 0 && !ends() {
		f = a.onePart(ctx, m, i, base, p, nil)
	}
	switch {
	case f == nil:
		return nil
	case ends(), f.Class == upstream.CallerFault && !m.anyBegun():
		return f
	}
	m.leaveOut(i, f)
	return nil
}

// onePart runs one call under the attempt's permit, or under one of its own if permit is nil.
func (a *attempt) onePart(ctx context.Context, m *merger, i, base int, p producer,
	permit *throttle.Permit) *upstream.Failure {
	return a.c.Call(ctx, permit, func() (int, *upstream.Failure) {
		var inBand *upstream.Failure // the failure that is an event
		f := p(ctx, func(ev *dialogue.Event) {
			if ev.Kind == dialogue.EventError {
				inBand = a.refusedInBody(ev.Err)
				return
			}
			m.event(i, base, ev)
		}, m.flushLocked)
		if f == nil {
			f = inBand
		}
		used := m.usageOf(i)
		return tokensOf(&used), f
	})
}

// merger makes one sequence of events of those of several calls, which run at the same time. Its
// lock guards everything, the emitter and the delivery to the client included, so that a slow
// client slows all calls.
type merger struct {
	mu    sync.Mutex
	emit  func(*dialogue.Event)
	flush func() *upstream.Failure
	began bool
	usage []dialogue.Usage
	left  int
	begun []bool              // parts that have emitted a piece of their choices
	out   []*upstream.Failure // of the parts that are left out
}

// newMerger returns a merger for so many calls.
func newMerger(parts int, emit func(*dialogue.Event), flush func() *upstream.Failure) *merger {
	m := &merger{emit: emit, flush: flush, usage: make([]dialogue.Usage, parts), left: parts,
		begun: make([]bool, parts), out: make([]*upstream.Failure, parts)}
	for i := range m.usage {
		m.usage[i] = dialogue.NoUsage
	}
	return m
}

// hasBegun reports whether a call has begun its answer.
func (m *merger) hasBegun(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun[i]
}

// anyBegun reports whether any call has begun its answer.
func (m *merger) anyBegun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.begun, true)
}

// leaveOut notes that a call has failed, so that its choices are not in the reply.
func (m *merger) leaveOut(i int, f *upstream.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out[i] = f
}

// missing returns a failure if all calls have failed.
func (m *merger) missing() *upstream.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.out, nil) {
		return nil
	}
	return m.out[0]
}

// endWithout returns the number of calls that are left out of the reply. If all other calls have ended, it emits the
// end of the reply, for which event would wait for ever.
func (m *merger) endWithout() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, f := range m.out {
		if f != nil {
			n++
		}
	}
	if n > 0 && m.left == n {
		m.end(&dialogue.Event{Kind: dialogue.EventEnd})
	}
	return n
}

// usageOf returns the usage that one call has reported so far.
func (m *merger) usageOf(i int) dialogue.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage[i]
}

// spent reports the usage of calls that together failed, of which so many were accepted. If
// some of those did not report their input, it is not known of all of them.
func (m *merger) spent(accepted int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.total()
	reported := 0
	for _, u := range m.usage {
		if u.InputTotal != dialogue.NoUsage.InputTotal {
			reported++
		}
	}
	if reported < accepted {
		total.InputTotal = dialogue.NoUsage.InputTotal
	}
	m.emit(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &total})
}

// flushLocked delivers what has been emitted. It locks, because calls flush on their own
// goroutines.
func (m *merger) flushLocked() *upstream.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flush()
}

// event handles an event of call i, whose first choice has the number base. The first start and the
// last end are emitted, and the usage of all calls as one sum before that end.
func (m *merger) event(i, base int, ev *dialogue.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch ev.Kind {
	case dialogue.EventStart:
		if m.began {
			return
		}
		m.began = true
	case dialogue.EventUsage:
		m.usage[i].Merge(*ev.Usage)
		return
	case dialogue.EventEnd:
		if m.left--; m.left > 0 {
			return
		}
		m.end(ev)
		return
	case dialogue.EventOpen, dialogue.EventDelta, dialogue.EventFinish:
		m.begun[i] = true
	}
	moved := *ev
	moved.Choice += base
	m.emit(&moved)
}

// end emits the usage of all calls and the end.
func (m *merger) end(ev *dialogue.Event) {
	total := m.total()
	for i, u := range m.usage { // a sum is unknown if one call did not report its part
		if m.out[i] == nil {
			total.InputTotal = unlessMissing(total.InputTotal, u.InputTotal)
			total.OutputTotal = unlessMissing(total.OutputTotal, u.OutputTotal)
		}
	}
	m.emit(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &total})
	m.emit(ev)
}

// unlessMissing returns sum, or "unknown" if of is unknown. A sum without one of its parts would be
// too small a charge.
func unlessMissing(sum, of int64) int64 {
	if of == dialogue.NoUsage.OutputTotal {
		return of
	}
	return sum
}

// total sums the usage that the calls have reported.
func (m *merger) total() dialogue.Usage {
	sum := dialogue.NoUsage
	for _, u := range m.usage {
		sum.Add(u)
	}
	return sum
}

// promptTurns returns the conversation for one prompt of a list, or nil if it is a list of tokens.
func promptTurns(req *dialogue.Request, prompt []byte) []dialogue.Turn {
	text, ok := dialogue.PromptText(prompt)
	if !ok {
		return nil
	}
	return []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Kind: dialogue.TextPart, Text: text}}}}
}
