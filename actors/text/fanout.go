package text

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/actors/engine"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// maxFanOut is how many calls one request may have under way at once.
const maxFanOut = 8

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

// fanOut performs an attempt by several calls whose events are merged into one
// sequence: choices renumbered, usage summed, one start and one end.
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
		calls := pool.New().WithMaxGoroutines(maxFanOut).WithContext(ctx).WithCancelOnError().WithFirstError()
		for i := range parts {
			calls.Go(func(ctx context.Context) error {
				if f := a.onePart(ctx, m, i, parts[i].base, producers[i]); f != nil {
					return f
				}
				return nil
			})
		}
		err := calls.Wait()
		var f *upstream.Failure
		if errors.As(err, &f) {
			m.spent(int(a.accepted.Load()))
			return f
		}
		return nil
	})
}

// onePart runs one call under a permit of its own; the first runs under the
// attempt's. Each gives its permit back at its own end: the others may be
// waiting for it.
func (a *attempt) onePart(ctx context.Context, m *merger, i, base int, p producer) *upstream.Failure {
	permit := a.permit
	if i > 0 {
		var f *upstream.Failure
		if permit, f = a.c.Acquire(ctx, time.Now()); f != nil {
			return f
		}
	}
	f := engine.CallerFault(dialogue.Internal(nil)) // stands if p panics
	defer func() {
		used := m.usageOf(i)
		permit.Release(a.c.Outcome(f, tokensOf(&used)))
	}()
	var inBand *upstream.Failure // the failure that is an event
	f = p(ctx, func(ev *dialogue.Event) {
		if ev.Kind == dialogue.EventError {
			inBand = a.refusedInBody(ev.Err)
		}
		m.event(i, base, ev)
	}, m.flushLocked)
	if f == nil {
		f = inBand
	}
	return f
}

// merger makes one sequence of several.
type merger struct {
	mu    sync.Mutex
	emit  func(*dialogue.Event)
	flush func() *upstream.Failure
	began bool
	usage []dialogue.Usage
	left  int
}

func newMerger(parts int, emit func(*dialogue.Event), flush func() *upstream.Failure) *merger {
	m := &merger{emit: emit, flush: flush, usage: make([]dialogue.Usage, parts), left: parts}
	for i := range m.usage {
		m.usage[i] = dialogue.NoUsage
	}
	return m
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

func (m *merger) flushLocked() *upstream.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flush()
}

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
		total := m.total()
		for _, u := range m.usage { // a sum is unknown if one call did not report its part
			total.InputTotal = unlessMissing(total.InputTotal, u.InputTotal)
			total.OutputTotal = unlessMissing(total.OutputTotal, u.OutputTotal)
		}
		m.emit(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &total})
	}
	moved := *ev
	moved.Choice += base
	m.emit(&moved)
}

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

func promptTurns(req *dialogue.Request, prompt []byte) []dialogue.Turn {
	text, ok := dialogue.PromptText(prompt)
	if !ok {
		return nil
	}
	return []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Kind: dialogue.TextPart, Text: text}}}}
}
