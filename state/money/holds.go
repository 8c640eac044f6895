package money

import (
	"encoding/binary"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Hold is money held for a request in flight. The entry that opens the hold adds its row, and the
// entry that closes it removes the row, each in the same commit.
type Hold struct {
	ID      uint64 `json:"id"` // sequence number of the entry that opened it
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	// Progress is the amount that is charged if the process ends now.
	Progress int64     `json:"progress,omitempty"`
	Began    time.Time `json:"began"`
	// Node is the process that settles it. Once that has ended, the hold is ended by another one.
	Node state.Node `json:"node,omitempty"`
	// Receipt holds what is known about the request already.
	Receipt Receipt `json:"receipt"`
}

const byAccount = "account"

// holds holds the open holds by the number of the ledger entry that began them. A hold leaves with its settlement.
var holds = state.Table[Hold]{
	Name: journal.Hold,
	ID:   func(h *Hold) string { return string(state.SequenceKey(h.ID)) },
	Indexes: map[string]state.Index[Hold]{
		byAccount: {Key: func(h *Hold) []byte { return state.TextKey(h.Account) }},
	},
}

// sequenceKey is like state.SequenceKey, but allocates nothing for each key.
func (m *ledgerMemory) sequenceKey(n uint64) []byte {
	return m.records.keep(binary.BigEndian.AppendUint64(m.records.free(), n))
}

// ListHolds returns the durable open holds of one account, or of all if account is "", oldest
// first. At start these are the holds of the previous process.
func ListHolds(v state.View, account string) []Hold {
	if account == "" {
		return holds.List(v, state.ByID, nil)
	}
	return holds.List(v, byAccount, state.TextKey(account))
}

// Nodes returns the processes that have open holds or allowances, for State.Ended. Some may be there several times.
func Nodes(v state.View) (all []state.Node) {
	for h := range holds.All(v) {
		all = append(all, h.Node)
	}
	for a := range allowances.All(v) {
		all = append(all, a.Node)
	}
	return all
}

// FindHold returns a durable open hold of an account.
func FindHold(v state.View, account string, id uint64) (Hold, bool) {
	return holdOf(v, account, id).Record()
}

// FindHoldOf returns the oldest durable open hold of a request, or nil.
func FindHoldOf(v state.View, account, request string) *Hold {
	for _, r := range holds.Under(v, byAccount, state.TextKey(account)) {
		if r.Rec.Receipt.Request == request {
			return new(r.Rec)
		}
	}
	return nil
}

// holdOf returns an open hold if it belongs to the account, or nil.
func holdOf(v state.View, account string, id uint64) *state.Row[Hold] {
	r := holds.Get(v, string(state.SequenceKey(id)))
	if r == nil || r.Rec.Account != account {
		return nil
	}
	return r
}
