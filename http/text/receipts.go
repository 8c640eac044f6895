package text

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"stagedoor/actors/meter"
	"stagedoor/actors/text"
	"stagedoor/http/envelope"
	"stagedoor/http/overload"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/shapes/videos"
	"stagedoor/state"
)

// meter has the request charged to the key's user, or to the key's budget, and has everything
// counted that nothing was held for (decisions, Users and money).
func (v *visit) meter(o *text.Request) {
	if v.doors.Ledger == nil {
		return
	}
	row := state.UsageRow{Account: state.AccountOf(&v.key), Key: v.key.ID, Model: o.Head.Model, Requests: 1}
	priced := func(c catalog.Candidate) bool { return !c.Price.Zero() }
	account := v.key.Charged()
	if account == "" || !slices.ContainsFunc(o.Plan, priced) {
		o.Ended = func(out *text.Outcome) { v.doors.Ledger.CountUsage(counted(row, out)) }
		return
	}
	m := meter.NewText(v.doors.Ledger, v.doors.Env.Now, meter.Request{ID: o.ID, Account: account, Key: v.key.ID,
		Model: o.Head.Model, Body: o.Body, MaxTokens: o.Head.MaxTokens, Choices: max(o.Head.N,
			o.Head.Answers), Stream: o.Head.Stream, Lasting: o.Head.Background && v.doors.Durable})
	o.Meter = m
	o.Ended = func(out *text.Outcome) {
		if !m.Held() {
			v.doors.Ledger.CountUsage(counted(row, out))
		}
	}
}

// counted adds what a request used to its row.
func counted(row state.UsageRow, out *text.Outcome) state.UsageRow {
	u := &out.Usage
	row.InputTokens, row.CachedTokens, row.OutputTokens = dialogue.CountOrZero(u.InputTotal), dialogue.CountOrZero(u.CacheRead), dialogue.CountOrZero(u.OutputTotal)
	if u.OutputTotal < 0 {
		row.OutputTokens = out.Counted
	}
	return row
}

// receipt is what GET /v1/receipts/{request_id} answers.
type receipt struct {
	Object string `json:"object"`
	told
	// Earlier are requests that their client gave the same id, newest first.
	Earlier []told `json:"earlier,omitempty"`
}

// told is one receipt, with what became of the hold.
type told struct {
	state.Receipt
	Settlement string `json:"settlement"`
}

// What became of a hold.
const (
	settlementCharged  = "charged"
	settlementReleased = "released" // all of it was given back
	// settlementNone: nothing was held, because the model has no price or the key
	// belongs to nobody.
	settlementNone = "none"
)

func tell(r state.Receipt) told {
	switch {
	case r.Hold == 0:
		return told{r, settlementNone}
	case r.Charged == 0:
		return told{r, settlementReleased}
	}
	return told{r, settlementCharged}
}

// Receipt is GET /v1/receipts/{request_id}: what a request of this user's cost,
// and why. Other users' receipts do not exist, nor do those that the key's scopes do
// not cover (see readable).
func (d *Doors) Receipt(w http.ResponseWriter, r *http.Request) {
	dialect := envelope.Dialect(envelope.Plain)
	all, err := d.receipts(r)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	answer := receipt{Object: "receipt", told: tell(all[len(all)-1])}
	for _, earlier := range slices.Backward(all[:len(all)-1]) {
		answer.Earlier = append(answer.Earlier, tell(earlier))
	}
	body, err := json.Marshal(answer)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// receipts are those of a request id, the oldest first, and at least one.
func (d *Doors) receipts(r *http.Request) ([]state.Receipt, error) {
	key, err := d.Auth.Authenticate(r, false)
	if err != nil {
		return nil, err
	}
	if err := d.Auth.Permit(&key, r, "", ""); err != nil {
		return nil, err
	}
	if err := overload.Claim(r.Context(), state.OwnerOf(key.ID, key.User)); err != nil {
		return nil, err
	}
	all, err := d.find(r.Context(), &key, r.PathValue("request_id"))
	all = slices.DeleteFunc(all, func(r state.Receipt) bool { return !d.readable(&key, &r) })
	if errors.Is(err, state.ErrNotFound) || err == nil && len(all) == 0 {
		return nil, &dialogue.Error{Status: http.StatusNotFound, Type: dialogue.TypeNotFound, Param: "request_id",
			Code:    "not_found",
			Message: "there is no receipt for this request id"}
	}
	return all, err
}

// readable reports whether a key may read a receipt of its user: that of a request which
// it has made itself, or could have made, since it has the scope videos for a video and
// all scopes of text and pictures for anything else.
func (d *Doors) readable(key *state.Key, r *state.Receipt) bool {
	if key.Scopes == nil || r.Key == key.ID {
		return true
	}
	// A receipt does not say which scope its request needed.
	needed := slices.DeleteFunc(registry.Scopes(), func(scope string) bool {
		return scope == videos.Descriptor.Scope || scope == registry.ScopeModels
	})
	if _, job := d.Store.View().AnyVideo(r.Request); job || r.Usage.Seconds > 0 {
		needed = []string{videos.Descriptor.Scope}
	}
	return !slices.ContainsFunc(needed, func(scope string) bool { return !slices.Contains(key.Scopes, scope) })
}

// find looks for what was held first. What held nothing is remembered by others:
// they are asked before the ledger, so that what they say has ended is durable by
// then if it held anything.
func (d *Doors) find(ctx context.Context, key *state.Key, request string) ([]state.Receipt, error) {
	free := d.unheld(key, request)
	all, moving, err := d.settled(ctx, state.AccountOf(key), request)
	if !errors.Is(err, state.ErrNotFound) {
		return all, err
	}
	if all, err = d.filmed(ctx, key, request); len(all) > 0 || err != nil {
		return all, err
	}
	if moving {
		return nil, nil // it may cost something yet
	}
	return free, nil
}

const (
	// receiptPatience is how long a receipt that is being written is waited for:
	// nobody waits for a settlement without a charge, so its client may come first.
	receiptPatience = 500 * time.Millisecond
	receiptLook     = 10 * time.Millisecond
)

// settled returns the receipts of a request that may have ended just now. moving:
// there may be one more to come.
func (d *Doors) settled(ctx context.Context, account, request string) (all []state.Receipt, moving bool, err error) {
	for waited := time.Duration(0); ; waited += receiptLook {
		if d.Ledger != nil {
			if moving, err = d.Ledger.Moving(ctx, account, request); err != nil {
				moving = true // as far as is known
			}
		}
		all, err = d.Store.Receipts(ctx, account, request)
		if !moving || waited >= receiptPatience || !errors.Is(err, state.ErrNotFound) {
			return all, moving, err
		}
		select {
		case <-time.After(receiptLook):
		case <-ctx.Done():
			return nil, moving, ctx.Err()
		}
	}
}
