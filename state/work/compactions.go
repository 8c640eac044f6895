package work

import (
	"context"
	"encoding/hex"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// CompactionFor is the time for which the maker of a compacted conversation is remembered.
const CompactionFor = 90 * 24 * time.Hour

// maxCompactions is the number of compacted conversations whose makers are remembered for one owner. An agent compacts
// its conversation every few hours and goes on from the newest one only.
const maxCompactions = 1000

// compaction records which target compacted a conversation. Only that one can read what it made of it, so the
// conversation is lost to a gateway that forgets this when it restarts.
type compaction struct {
	ID    string      `json:"id"` // see compactionID
	Owner state.Owner `json:"owner"`
	Maker string      `json:"maker"`
	Until time.Time   `json:"until"`
}

// compactions holds the makers of compacted conversations for CompactionFor. byOwner lists those of an owner, the ones
// that expire first in front.
var compactions = state.Table[compaction]{
	Name:    journal.Compaction,
	ID:      func(c *compaction) string { return c.ID },
	Expires: func(c *compaction) time.Time { return c.Until },
	Indexes: map[string]state.Index[compaction]{
		byOwner: {Key: func(c *compaction) []byte { return createdBy(c.Owner, c.Until) }},
	},
}

// compactionID returns a hash of the owner and of what the provider made of the conversation, which may be large.
func compactionID(owner state.Owner, made string) string {
	id := state.HashSecret(string(owner) + "\x00" + made)
	return hex.EncodeToString(id[:])
}

// CompactionMaker returns the target that made a compacted conversation for the owner, or "" if that is not known. made
// is the text that the provider returned for the conversation.
func CompactionMaker(v state.View, owner state.Owner, made string) string {
	c, found := compactions.Get(v, compactionID(owner, made)).Record()
	if !found || !v.Now().Before(c.Until) {
		return ""
	}
	return c.Maker
}

// RememberCompaction records the target that made a compacted conversation. Beyond maxCompactions the owner's oldest
// ones are forgotten. It costs one commit.
func RememberCompaction(ctx context.Context, s *state.State, owner state.Owner, made, maker string) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		kept := compactions.Under(tx.View(), byOwner, state.TextKey(string(owner)))
		for _, oldest := range kept[:max(len(kept)+1-maxCompactions, 0)] {
			compactions.Remove(tx, oldest)
		}
		return compactions.Put(tx, compaction{ID: compactionID(owner, made), Owner: owner, Maker: maker,
			Until: tx.Now().Add(CompactionFor)})
	})
}
