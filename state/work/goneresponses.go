package work

import (
	"context"
	"encoding/hex"
	"math"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// GoneResponseFor is the time for which the id of a removed response is remembered.
const GoneResponseFor = 30 * 24 * time.Hour

// goneResponse records the id of a removed response, so that the id is not mistaken for that of a
// response that only a provider knows.
type goneResponse struct {
	ID    state.Hash  `json:"id"` // hash of the response's id
	Owner state.Owner `json:"owner"`
	// Number counts the removed responses of the owner.
	Number int64     `json:"number"`
	Until  time.Time `json:"until"`
	// Pending is set until the provider has deleted the response as well.
	Pending *pendingDeletion `json:"pending,omitempty"`
}

// pendingDeletion is the deletion of a response at its provider.
type pendingDeletion struct {
	ID       string    `json:"id"` // of the response
	Provider string    `json:"provider"`
	Attempts int       `json:"attempts,omitempty"` // number of failed attempts
	Due      time.Time `json:"due"`                // time of the next attempt
}

// goneResponses holds which responses have existed, for a while after they were removed. byDue lists those that must
// still be deleted at their providers, and byOwner those of an owner in the order of their removal.
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

// ownedGone returns a key of the index by owner, which sorts by number.
func ownedGone(owner state.Owner, number int64) []byte {
	return append(state.TextKey(string(owner)), state.NumberKey(number)...)
}

// KnowsResponse reports whether a response with this id is stored for any owner or was removed in
// the last 30 days. Such an id must not be requested from the provider, because the provider cannot
// tell the gateway's clients apart.
func KnowsResponse(v state.View, id string) bool {
	if responses.Get(v, id) != nil {
		return true
	}
	gone := goneResponses.Get(v, goneID(state.HashSecret(id)))
	return gone != nil && v.Now().Before(gone.Rec.Until)
}

// rememberResponse records the id of a response that is being removed. Each owner has at most as
// many such records as it may keep responses. Beyond that its oldest ones are dropped.
func (m *memory) rememberResponse(tx *state.Tx, h *ResponseHeader, pending *pendingDeletion) {
	most := int64(m.maxResponses)
	if q := m.kept.quota.Load(); q != nil && q.Responses > 0 {
		most = int64(q.Responses)
	}
	number := newestGoneNumber(tx.View(), h.Owner) + 1
	for range 2 { // the second one brings the owner below a quota that was lowered
		oldest := oldestGone(tx.View(), h.Owner)
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
	_ = goneResponses.Put(tx, g) // cannot fail: the header with the same values could be encoded
}

// oldestGone returns the owner's oldest record of a removed response, or nil.
func oldestGone(v state.View, owner state.Owner) (oldest *state.Row[goneResponse]) {
	goneResponses.From(v, byOwner, state.TextKey(string(owner)), func(r *state.Row[goneResponse]) bool {
		if r.Rec.Owner == owner {
			oldest = r
		}
		return false
	})
	return oldest
}

// newestGoneNumber returns the Number of the owner's newest record of a removed response, or 0.
func newestGoneNumber(v state.View, owner state.Owner) (number int64) {
	goneResponses.Back(v, byOwner, ownedGone(owner, math.MaxInt64), func(r *state.Row[goneResponse]) bool {
		if r.Rec.Owner == owner {
			number = r.Rec.Number
		}
		return false
	})
	return number
}

// UpstreamDeletion is a response that was removed here by age or number and that its provider still
// keeps.
type UpstreamDeletion struct {
	Response string
	Provider string
	Owner    state.Owner
}

// The first and the longest wait between two attempts to delete a response at its provider.
const (
	firstDeletionRetry   = time.Minute
	longestDeletionRetry = 24 * time.Hour
)

// ListUpstreamDeletions returns at most limit responses that their providers must delete now. It
// takes them from the owners in turn, so that one owner with many does not delay the others. Call
// EndUpstreamDeletion for each.
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

// EndUpstreamDeletion records the result of an attempt to delete a response at its provider. A
// failed attempt is repeated with growing waits until the id of the response is forgotten. Then
// givenUp is true.
func EndUpstreamDeletion(ctx context.Context, s *state.State, d UpstreamDeletion,
	failed bool) (givenUp bool, err error) {
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
