package state

import (
	"encoding/binary"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Hold is money kept for a request under way. Its row exists from its begin to
// its one terminal entry, in the same commits.
type Hold struct {
	ID      uint64 `json:"id"` // the sequence of its begin
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	// Progress is what it would be settled at if the process ended now.
	Progress int64     `json:"progress,omitempty"`
	Began    time.Time `json:"began"`
	// Receipt is what is known of the request already.
	Receipt Receipt `json:"receipt"`
}

const byAccount = "account"

var holds = table[Hold]{
	durable: journal.Hold,
	id:      func(h *Hold) string { return string(sequenceKey(h.ID)) },
	more: map[string]*memdb.IndexSchema{
		byAccount: {Name: byAccount, Indexer: index[Hold](func(h *Hold) []byte { return terminated(h.Account) })},
	},
}

// sequenceKey is a sequence number as durable key: they are in time order.
func sequenceKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (tx *Tx) sequenceKey(n uint64) []byte {
	return tx.paper.keep(binary.BigEndian.AppendUint64(tx.paper.sheet(), n))
}

func sequenceOf(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

// Holds lists the holds under way that are journaled, of one account or ("") of
// all, oldest first. At start they are those of the process before.
func (s *State) Holds(account string) []Hold {
	var found []Hold
	keep := func(r *row[Hold]) bool {
		if account != "" && r.rec.Account != account {
			return false
		}
		found = append(found, r.rec)
		return true
	}
	if account == "" {
		holds.from(s.snapshot(), byID, nil, keep)
	} else {
		holds.from(s.snapshot(), byAccount, terminated(account), keep)
	}
	return found
}

// hold finds an open hold of an account.
func (tx *Tx) hold(account string, id uint64) *row[Hold] {
	r := holds.get(tx.mem, string(sequenceKey(id)))
	if r == nil || r.rec.Account != account {
		return nil
	}
	return r
}
