package state

import (
	"encoding/hex"
	"math"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// GoneResponseFor is how long the id of a response is remembered after its removal.
const GoneResponseFor = 30 * 24 * time.Hour

// goneResponse remembers the id of a response that was removed, so that the id is not taken
// for one of a response that only its provider knows.
type goneResponse struct {
	ID    Hash  `json:"id"` // of the response's id
	Owner Owner `json:"owner"`
	// Number counts the removed responses of the owner.
	Number int64     `json:"number"`
	Until  time.Time `json:"until"`
}

var goneResponses = table[goneResponse]{
	durable: journal.Gone,
	id:      func(g *goneResponse) string { return goneID(g.ID) },
	expires: func(g *goneResponse) time.Time { return g.Until },
	more: map[string]*memdb.IndexSchema{
		byOwner: {Name: byOwner, Unique: true, Indexer: index[goneResponse](func(g *goneResponse) []byte {
			return ownedGone(g.Owner, g.Number)
		})},
	},
}

func goneID(h Hash) string { return hex.EncodeToString(h[:]) }

// ownedGone is a key of the index by owner. It sorts by number.
func ownedGone(owner Owner, number int64) []byte {
	return append(terminated(string(owner)), numbers(number)...)
}

// KnowsResponse tells whether a response with this id is kept for any owner, or was removed
// in the last 30 days. Its provider must not be asked for it: all clients are one there.
func (s *State) KnowsResponse(id string) bool {
	txn := s.snapshot()
	if responses.get(txn, id) != nil {
		return true
	}
	gone := goneResponses.get(txn, goneID(HashSecret(id)))
	return gone != nil && s.now().Before(gone.rec.Until)
}

// rememberResponse remembers the id of a response that is being removed. Each owner has as
// many such ids as it may keep responses, and loses the oldest ones beyond that.
func (s *State) rememberResponse(tx *Tx, h *ResponseHeader) {
	most := int64(s.maxResponses)
	if q := s.kept.quota.Load(); q != nil && q.Responses > 0 {
		most = int64(q.Responses)
	}
	number := tx.lastGone(h.Owner) + 1
	for range 2 { // the second one brings the owner below a quota that was lowered
		var oldest *row[goneResponse]
		goneResponses.from(tx.mem, byOwner, terminated(string(h.Owner)), func(r *row[goneResponse]) bool {
			oldest = r
			return false
		})
		if oldest == nil || oldest.rec.Owner != h.Owner || number-oldest.rec.Number < most {
			break
		}
		goneResponses.remove(tx, oldest)
	}
	g := goneResponse{ID: HashSecret(h.ID), Owner: h.Owner, Number: number, Until: tx.now.Add(GoneResponseFor)}
	_ = goneResponses.put(tx, g) // it can be encoded, because the header could
}

// lastGone returns the number of the response of an owner that was removed last, or 0.
func (tx *Tx) lastGone(owner Owner) int64 {
	it, err := tx.mem.ReverseLowerBound(goneResponses.name(), byOwner, ownedGone(owner, math.MaxInt64))
	if err != nil {
		return 0
	}
	if r, ok := it.Next().(*row[goneResponse]); ok && r.rec.Owner == owner {
		return r.rec.Number
	}
	return 0
}
