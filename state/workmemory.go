package state

import (
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// workMemory is what is kept beside the tables of stored responses and deliveries.
type workMemory struct {
	outbox       outbox
	kept         keeping // what owners keep of responses
	maxResponses int
}

// Option changes what WorkModule returns.
type Option func(*workMemory)

// MaxResponses bounds how many stored responses are kept. Beyond it Sweep removes the oldest finished ones, also if they
// have not expired. Each costs about 1 KB of memory for its header. The default is 200,000.
func MaxResponses(n int) Option { return func(m *workMemory) { m.maxResponses = n } }

// WorkModule returns the tables of stored responses, video jobs and deliveries.
func WorkModule(options ...Option) Module {
	m := &workMemory{maxResponses: 200_000}
	m.kept.owners = make(map[Owner]Kept)
	m.outbox.waiting = share.New(share.Webhooks, 10_000, 1)
	for _, o := range options {
		o(m)
	}
	return Module{
		Memory: m,
		Tables: []Registration{
			Register(&responses, Hooks[ResponseHeader]{
				Loaded:    m.countResponses,
				Committed: func(_ *State, before, after *ResponseHeader) { m.kept.change(before, after) },
				Sweep:     m.sweepResponses,
			}),
			Register(&goneResponses, Hooks[goneResponse]{}),
			Register(&videos, Hooks[Video]{Sweep: sweepVideos}),
			Register(&videoKeys, Hooks[VideoKey]{}),
			Register(&deliveries, Hooks[Delivery]{
				Loaded:  m.outbox.countAll,
				Written: func(_ *Tx, before, after *Delivery) { m.outbox.count(before, after) },
			}),
		},
		Checks: map[journal.Table]func(journal.Record) error{journal.Body: checkCold},
		Verify: verifyWork,
	}
}

// WorkStats are figures for an operator.
type WorkStats struct {
	Responses int
	// ResponseBytes are what they take, and ResponsesRefused were beyond a quota.
	ResponseBytes, ResponsesRefused int64
	// DeletionsWithoutRoom and DeletionsGivenUp are how many responses since the start are kept by their providers,
	// because too many deletions of their owner waited, or because all tries failed.
	DeletionsWithoutRoom, DeletionsGivenUp int64
}

// WorkStats returns the figures as they are now.
func (s *State) WorkStats() WorkStats {
	k := &MemoryOf[*workMemory](s).kept
	rows, bytes := k.totals()
	return WorkStats{
		Responses: rows, ResponseBytes: bytes, ResponsesRefused: k.refused.Load(),
		DeletionsWithoutRoom: k.undeleted.Load(), DeletionsGivenUp: k.givenUp.Load(),
	}
}
