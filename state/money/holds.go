package money

import (
	"encoding/binary"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Hold is money kept for a request under way. Its row exists from its begin to
// its one terminal entry, in the same commits.
type Hold struct {
	ID      uint64 `json:"id"` // the sequence of its begin
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	// Progress would be charged if the process ended now.
	Progress int64     `json:"progress,omitempty"`
	Began    time.Time `json:"began"`
	// Receipt holds the facts about the request that are known already.
	Receipt Receipt `json:"receipt"`
}

const byAccount = "account"

var holds = state.Table[Hold]{
	Name: journal.Hold,
	ID:   func(h *Hold) string { return string(state.SequenceKey(h.ID)) },
	Indexes: map[string]state.Index[Hold]{
		byAccount: {Key: func(h *Hold) []byte { return state.TextKey(h.Account) }},
	},
}

// sequenceKey is SequenceKey without an allocation of its own.
func (m *ledgerMemory) sequenceKey(n uint64) []byte {
	return m.records.keep(binary.BigEndian.AppendUint64(m.records.free(), n))
}

// ListHolds lists the open holds that are durable, of one account or ("") of all, oldest first. At start they are those
// of the process before.
func ListHolds(v state.View, account string) []Hold {
	if account == "" {
		return holds.List(v, state.ByID, nil)
	}
	return holds.List(v, byAccount, state.TextKey(account))
}

// holdOf returns an open hold of an account, or nil.
func holdOf(v state.View, account string, id uint64) *state.Row[Hold] {
	r := holds.Get(v, string(state.SequenceKey(id)))
	if r == nil || r.Rec.Account != account {
		return nil
	}
	return r
}
