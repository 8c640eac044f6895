package work

import (
	"sync/atomic"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// memory is the state beside the tables of responses, conversations and deliveries.
type memory struct {
	outbox       outbox
	kept         quotaCounter // use of the quotas of responses and conversations
	replies      *share.Pool
	maxResponses int
	// videosGivenUp is the count that Stats returns.
	videosGivenUp atomic.Int64
	// conversations counts the conversations of each owner, and uses lists those in use.
	conversations *share.Pool
	uses          uses
}

// Option configures Module.
type Option func(*memory)

// MaxResponses sets the number of stored responses. Beyond it Sweep removes the oldest finished
// ones before they expire. Each takes about 1 KB of memory for its header. The default is 200,000.
func MaxResponses(n int) Option { return func(m *memory) { m.maxResponses = n } }

// Module returns the tables of stored responses, conversations, makers of compacted ones, finished replies, video jobs
// and deliveries.
func Module(options ...Option) state.Module {
	m := &memory{maxResponses: 200_000}
	m.kept.owners = make(map[state.Owner]Kept)
	m.conversations = share.New(share.Conversations, maxConversations, 1)
	m.uses.by = make(map[string]int)
	m.outbox.waiting = share.New(share.Webhooks, 10_000, 1)
	m.replies = share.New(share.Replies, defaultReplies, replyUnit)
	for _, o := range options {
		o(m)
	}
	return state.Module{
		Memory: m,
		Tables: []state.Registration{
			state.Register(&responses, state.Hooks[ResponseHeader]{
				Loaded:    m.countResponses,
				Committed: func(_ *state.State, before, after *ResponseHeader) { m.kept.apply(before, after) },
				Sweep:     m.sweepResponses,
			}),
			state.Register(&goneResponses, state.Hooks[goneResponse]{}),
			state.Register(&conversations, state.Hooks[Conversation]{
				Loaded:  m.countConversations,
				Written: m.countConversation,
				Committed: func(_ *state.State, before, after *Conversation) {
					m.kept.apply(before, after)
				},
			}),
			state.Register(&videos, state.Hooks[Video]{Sweep: sweepVideos}),
			state.Register(&videoKeys, state.Hooks[VideoKey]{}),
			state.Register(&replies, state.Hooks[Reply]{
				Loaded:  m.countReplies,
				Written: func(_ *state.Tx, before, after *Reply) { m.countReply(before, after) },
				Sweep:   sweepReplies,
			}),
			state.Register(&compactions, state.Hooks[compaction]{}),
			state.Register(&deliveries, state.Hooks[Delivery]{
				Loaded:  m.outbox.countAll,
				Written: func(_ *state.Tx, before, after *Delivery) { m.outbox.count(before, after) },
			}),
		},
		Checks: map[journal.Table]func(journal.Record) error{journal.Body: checkBodyRecord},
		Verify: verify,
	}
}

// Stats are figures for metrics.
type Stats struct {
	Responses int
	// ResponseBytes is the sum of the responses' sizes. ResponsesRefused counts the responses
	// beyond a quota.
	ResponseBytes, ResponsesRefused int64
	// DeletionsWithoutRoom and DeletionsGivenUp count, since the start, the responses that stay at
	// their providers because too many deletions of their owner waited, or because all attempts
	// failed.
	DeletionsWithoutRoom, DeletionsGivenUp int64
	// VideosGivenUp counts, since the start, the videos that stay at their providers because all attempts to delete
	// them failed.
	VideosGivenUp int64
}

// StatsOf returns the current figures.
func StatsOf(s *state.State) Stats {
	m := state.MemoryOf[*memory](s)
	k := &m.kept
	rows, bytes := k.totals()
	return Stats{
		Responses: rows, ResponseBytes: bytes, ResponsesRefused: k.refused.Load(),
		DeletionsWithoutRoom: k.undeleted.Load(), DeletionsGivenUp: k.givenUp.Load(),
		VideosGivenUp: m.videosGivenUp.Load(),
	}
}
