package work

import (
	"context"
	"encoding/hex"
	"math"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// GoneResponseFor bounds the time that the id of a response is remembered after its removal.
const GoneResponseFor = 30 * 24 * time.Hour

// goneResponse remembers the id of a response that was removed, so that the id is not taken
// for one of a response that only its provider knows.
type goneResponse struct {
	ID    state.Hash  `json:"id"` // of the response's id
	Owner state.Owner `json:"owner"`
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

var goneResponses = state.Table[goneResponse]{
	Name:    journal.Gone,
	ID:      func(g *goneResponse) string { return goneID(g.ID) },
	Expires: func(g *goneResponse) time.Time { return g.Until },
	Indexes: map[string]state.Index[goneResponse]{
		byDue: {Key: func(g *goneResponse) []byte {
			if g.Pending == nil {
				return nil
			}
			return state.MinuteKey(g.Pending.Due)
		}},
		byOwner: {Unique: true, Key: func(g *goneResponse) []byte {
			return ownedGone(g.Owner, g.Number)
		}},
	},
}

func goneID(h state.Hash) string { return hex.EncodeToString(h[:]) }

// ownedGone is a key of the index by owner. It sorts by number.
func ownedGone(owner state.Owner, number int64) []byte {
	return append(state.TextKey(string(owner)), state.NumberKey(number)...)
}

// KnowsResponse reports whether a response with this id is kept for any owner, or was removed
// in the last 30 days. Its provider must not be asked for it: all clients are one there.
func KnowsResponse(v state.View, id string) bool {
	if responses.Get(v, id) != nil {
		return true
	}
	gone := goneResponses.Get(v, goneID(state.HashSecret(id)))
	return gone != nil && v.Now().Before(gone.Rec.Until)
}

// rememberResponse remembers the id of a response that is being removed. Each owner has as
// many such ids as it may keep responses, and loses the oldest ones beyond that.
func (m *memory) rememberResponse(tx *state.Tx, h *ResponseHeader, pending *pendingDeletion) {
	most := int64(m.maxResponses)
	if q := m.kept.quota.Load(); q != nil && q.Responses > 0 {
		most = int64(q.Responses)
	}
	number := lastGone(tx.View(), h.Owner) + 1
	for range 2 { // the second one brings the owner below a quota that was lowered
		oldest := firstGone(tx.View(), h.Owner)
		if oldest == nil || number-oldest.Rec.Number < most {
			break
		}
		if oldest.Rec.Pending != nil {
			tx.OnCommit(func() { m.kept.undeleted.Add(1) })
		}
		goneResponses.Remove(tx, oldest)
	}
	g := goneResponse{
		ID:      state.HashSecret(h.ID),
		Owner:   h.Owner,
		Number:  number,
		Until:   tx.Now().Add(GoneResponseFor),
		Pending: pending,
	}
	_ = goneResponses.Put(tx, g) // it can be encoded, because the header could
}

// firstGone returns the response of an owner that was removed first of those that are remembered, or nil.
func firstGone(v state.View, owner state.Owner) (oldest *state.Row[goneResponse]) {
	goneResponses.From(v, byOwner, state.TextKey(string(owner)), func(r *state.Row[goneResponse]) bool {
		if r.Rec.Owner == owner {
			oldest = r
		}
		return false
	})
	return oldest
}

// lastGone returns the number of the response of an owner that was removed last, or 0.
func lastGone(v state.View, owner state.Owner) (number int64) {
	goneResponses.Back(v, byOwner, ownedGone(owner, math.MaxInt64), func(r *state.Row[goneResponse]) bool {
		if r.Rec.Owner == owner {
			number = r.Rec.Number
		}
		return false
	})
	return number
}

// UpstreamDeletion is a response that has left by age or by number, and that its provider still keeps.
type UpstreamDeletion struct {
	Response string
	Provider string
	Owner    state.Owner
}

// Times between two attempts to delete a response at its provider.
const (
	firstDeletionRetry   = time.Minute
	longestDeletionRetry = 24 * time.Hour
)

// ListUpstreamDeletions returns at most limit responses that their providers must delete now. The owners take
// turns, so that one with many does not delay the others. EndUpstreamDeletion must be called for each.
func ListUpstreamDeletions(v state.View, limit int) []UpstreamDeletion {
	now := v.Now()
	var owners []state.Owner
	due := make(map[state.Owner][]UpstreamDeletion)
	goneResponses.From(v, byDue, nil, func(r *state.Row[goneResponse]) bool {
		g := &r.Rec
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
func EndUpstreamDeletion(
	ctx context.Context,
	s *state.State,
	d UpstreamDeletion,
	failed bool,
) (givenUp bool, err error) {
	givenUp, err = state.Do(ctx, s, func(tx *state.Tx) (bool, error) {
		r := goneResponses.Get(tx.View(), goneID(state.HashSecret(d.Response)))
		if r == nil || r.Rec.Pending == nil {
			return false, nil
		}
		g := r.Rec
		g.Pending = nil
		if failed {
			p := *r.Rec.Pending
			wait := min(firstDeletionRetry<<min(p.Attempts, 16), longestDeletionRetry)
			p.Attempts, p.Due = p.Attempts+1, tx.Now().Add(wait)
			if p.Due.Before(g.Until) {
				g.Pending = &p
			}
		}
		return failed && g.Pending == nil, goneResponses.Put(tx, g)
	})
	if err == nil && givenUp {
		state.MemoryOf[*memory](s).kept.givenUp.Add(1)
	}
	return givenUp, err
}
