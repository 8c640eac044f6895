package state

import (
	"context"
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
	// Pending is set until the provider has deleted the response, too.
	Pending *pendingDeletion `json:"pending,omitempty"`
}

// pendingDeletion is the deletion of a response at its provider.
type pendingDeletion struct {
	ID       string    `json:"id"` // of the response
	Provider string    `json:"provider"`
	Attempts int       `json:"attempts,omitempty"` // that failed
	Due      time.Time `json:"due"`                // when the next one may begin
}

var goneResponses = table[goneResponse]{
	durable: journal.Gone,
	id:      func(g *goneResponse) string { return goneID(g.ID) },
	expires: func(g *goneResponse) time.Time { return g.Until },
	more: map[string]*memdb.IndexSchema{
		byDue: {Name: byDue, AllowMissing: true, Indexer: index[goneResponse](func(g *goneResponse) []byte {
			if g.Pending == nil {
				return nil
			}
			return minute(g.Pending.Due)
		})},
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
func (s *State) rememberResponse(tx *Tx, h *ResponseHeader, pending *pendingDeletion) {
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
		if oldest.rec.Pending != nil {
			tx.OnCommit(func() { s.kept.undeleted.Add(1) })
		}
		goneResponses.remove(tx, oldest)
	}
	g := goneResponse{ID: HashSecret(h.ID), Owner: h.Owner, Number: number, Until: tx.now.Add(GoneResponseFor), Pending: pending}
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

// UpstreamDeletion is a response that has left by age or by number, and that its provider still keeps.
type UpstreamDeletion struct {
	Response string
	Provider string
	Owner    Owner
}

// Times between two attempts to delete a response at its provider.
const (
	firstDeletionRetry   = time.Minute
	longestDeletionRetry = 24 * time.Hour
)

// UpstreamDeletions returns at most limit responses that their providers must delete now. The owners take
// turns, so that one with many does not delay the others. EndUpstreamDeletion must be called for each.
func (s *State) UpstreamDeletions(limit int) []UpstreamDeletion {
	now := s.now()
	var owners []Owner
	due := make(map[Owner][]UpstreamDeletion)
	goneResponses.from(s.snapshot(), byDue, nil, func(r *row[goneResponse]) bool {
		g := &r.rec
		if g.Pending.Due.After(now) {
			return g.Pending.Due.Unix()/60 <= now.Unix()/60
		}
		if due[g.Owner] == nil {
			owners = append(owners, g.Owner)
		}
		if len(due[g.Owner]) < limit {
			due[g.Owner] = append(due[g.Owner], UpstreamDeletion{g.Pending.ID, g.Pending.Provider, g.Owner})
		}
		return true
	})
	var turn []UpstreamDeletion
	for len(turn) < limit && len(due) > 0 {
		for _, owner := range owners {
			if list := due[owner]; len(list) > 0 && len(turn) < limit {
				turn, due[owner] = append(turn, list[0]), list[1:]
			} else if len(list) == 0 {
				delete(due, owner)
			}
		}
	}
	return turn
}

// EndUpstreamDeletion ends an attempt to delete a response at its provider. One that failed is repeated later
// and later, until the id of the response is forgotten: then givenUp is true.
func (s *State) EndUpstreamDeletion(ctx context.Context, d UpstreamDeletion, failed bool) (givenUp bool, err error) {
	givenUp, err = Do(ctx, s, func(tx *Tx) (bool, error) {
		r := goneResponses.get(tx.mem, goneID(HashSecret(d.Response)))
		if r == nil || r.rec.Pending == nil {
			return false, nil
		}
		g := r.rec
		g.Pending = nil
		if failed {
			p := *r.rec.Pending
			wait := min(firstDeletionRetry<<min(p.Attempts, 16), longestDeletionRetry)
			p.Attempts, p.Due = p.Attempts+1, tx.now.Add(wait)
			if p.Due.Before(g.Until) {
				g.Pending = &p
			}
		}
		return failed && g.Pending == nil, goneResponses.put(tx, g)
	})
	if err == nil && givenUp {
		s.kept.givenUp.Add(1)
	}
	return givenUp, err
}

// UndeletedResponses returns how many responses since the start are kept by their providers although their
// owners had more deletions to wait for than ids that are remembered.
func (s *State) UndeletedResponses() int64 { return s.kept.undeleted.Load() }
