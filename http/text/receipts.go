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
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// meter sets the Meter of o, so that the request is charged to the key's user or to the key's budget. A request that
// holds no money has its usage counted when it ends (decisions, Users and money). A dry run is not counted.
func (rc *requestContext) meter(o *text.Request) {
	if rc.handlers.Ledger == nil {
		return
	}
	row := money.UsageRow{Account: identity.AccountOf(&rc.key), Key: rc.key.ID, Model: o.Head.Model, Requests: 1}
	now := rc.handlers.Env.Now()
	priced := func(c catalog.Candidate) bool { return c.MayCharge(now) }
	account := rc.key.Charged()
	if account == "" || !slices.ContainsFunc(o.Plan, priced) {
		if rc.dry != nil {
			return
		}
		o.Ended = func(out *text.Outcome) { rc.handlers.Ledger.CountUsage(counted(row, out)) }
		return
	}
	m := meter.NewText(
		rc.handlers.Ledger,
		rc.handlers.Env.Now,
		meter.Request{ID: o.ID, Account: account, Key: rc.key.ID,
			Model: o.Head.Model, Body: o.Body, MaxTokens: o.Head.MaxTokens, Choices: max(o.Head.N,
				o.Head.Answers), Stream: o.Head.Stream, Lasting: o.Head.Background && rc.handlers.Durable, Dry: rc.dry},
	)
	o.Meter = m
	if rc.dry != nil {
		return // it is not counted as a request to a model
	}
	o.Ended = func(out *text.Outcome) {
		if !m.Held() {
			rc.handlers.Ledger.CountUsage(counted(row, out))
		}
	}
}

// counted returns row with the usage of a request added.
func counted(row money.UsageRow, out *text.Outcome) money.UsageRow {
	u := &out.Usage
	row.InputTokens, row.CachedTokens, row.OutputTokens = dialogue.CountOrZero(
		u.InputTotal,
	), dialogue.CountOrZero(
		u.CacheRead,
	), dialogue.CountOrZero(u.OutputTotal)
	if u.OutputTotal < 0 {
		row.OutputTokens = out.Counted
	}
	return row
}

// receipt is the reply to GET /v1/receipts/{request_id}.
type receipt struct {
	Object string `json:"object"`
	settledReceipt
	// Overtaken lists the providers that the request was sent to besides (hedging), with what each of them cost.
	Overtaken []settledReceipt `json:"overtaken,omitempty"`
	// Earlier lists requests to which the client gave the same id, newest first.
	Earlier []settledReceipt `json:"earlier,omitempty"`
}

// settledReceipt is one receipt with the settlement of its hold.
type settledReceipt struct {
	money.Receipt
	Settlement string `json:"settlement"`
}

// These are the values of settlement.
const (
	settlementCharged  = "charged"
	settlementReleased = "released" // all of the hold was released
	// settlementNone means that no money was held, because the model has no price or the
	// key has no user.
	settlementNone = "none"
)

// settlementOf returns a receipt with what became of its hold.
func settlementOf(r money.Receipt) settledReceipt {
	switch {
	case r.Hold == 0:
		return settledReceipt{r, settlementNone}
	case r.Charged == 0:
		return settledReceipt{r, settlementReleased}
	}
	return settledReceipt{r, settlementCharged}
}

// Receipt serves GET /v1/receipts/{request_id}, which reports the cost of a request and its reason. A
// receipt of another user, or one that the key's scopes do not cover (see readable), is a 404.
func (hs *Handlers) Receipt(w http.ResponseWriter, r *http.Request) {
	dialect := envelope.Dialect(envelope.Plain)
	all, err := hs.receipts(r)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	answer := receiptOf(all)
	body, err := json.Marshal(answer)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// receiptOf makes the reply of the receipts of one request id, oldest first. The receipt of a provider that was
// overtaken belongs to the request during which it was at work. It may have ended after that request.
func receiptOf(all []money.Receipt) receipt {
	overtaken := func(r money.Receipt) bool { return r.Reason == money.ReasonOvertaken }
	last := len(all) - 1
	for last > 0 && overtaken(all[last]) {
		last--
	}
	main := &all[last]
	answer := receipt{Object: "receipt", settledReceipt: settlementOf(*main)}
	for i, r := range slices.Backward(all) {
		switch {
		case i == last:
		case overtaken(r) && !r.Began.After(main.Ended) && !r.Ended.Before(main.Began):
			answer.Overtaken = append(answer.Overtaken, settlementOf(r))
		default:
			answer.Earlier = append(answer.Earlier, settlementOf(r))
		}
	}
	return answer
}

// receipts returns the receipts of a request id, oldest first. It returns an error if there are none.
func (hs *Handlers) receipts(r *http.Request) ([]money.Receipt, error) {
	key, err := hs.Auth.Authenticate(r, false)
	if err != nil {
		return nil, err
	}
	if err := hs.Auth.Permit(&key, r, "", ""); err != nil {
		return nil, err
	}
	if err := overload.Claim(r.Context(), state.OwnerOf(key.ID, key.User)); err != nil {
		return nil, err
	}
	all, err := hs.findReceipts(r.Context(), &key, r.PathValue("request_id"))
	all = slices.DeleteFunc(all, func(r money.Receipt) bool { return !hs.readable(&key, &r) })
	if errors.Is(err, state.ErrNotFound) || err == nil && len(all) == 0 {
		return nil, dialogue.NotFound("request_id", "receipt for this request id")
	}
	return all, err
}

// readable reports whether a key may read a receipt of its user. It may read the receipts of its own
// requests, and of those that it could have made: with the scope videos, receipts of videos, and with
// all scopes of text and pictures, all others.
func (hs *Handlers) readable(key *identity.Key, r *money.Receipt) bool {
	if key.Scopes == nil || r.Key == key.ID {
		return true
	}
	// A receipt does not say which scope its request needed.
	needed := slices.DeleteFunc(registry.Scopes(), func(scope string) bool {
		return scope == videos.Descriptor.Scope || scope == registry.ScopeModels
	})
	if _, job := work.FindAnyVideo(hs.Store.View(), r.Request); job || r.Usage.Seconds > 0 {
		needed = []string{videos.Descriptor.Scope}
	}
	return !slices.ContainsFunc(needed, func(scope string) bool { return !slices.Contains(key.Scopes, scope) })
}

// findReceipts returns the receipts of requests that held money, or else those of a video job, or else those of
// requests that held none. It reads the last kind first, because a request that is known to have ended then has a
// durable receipt if it held money. It returns none for a request that may still be charged.
func (hs *Handlers) findReceipts(ctx context.Context, key *identity.Key, request string) ([]money.Receipt, error) {
	free := hs.unheld(key, request)
	all, moving, err := hs.settled(ctx, identity.AccountOf(key), request)
	if !errors.Is(err, state.ErrNotFound) {
		return all, err
	}
	if all, err = hs.videoReceipts(ctx, key, request); len(all) > 0 || err != nil {
		return all, err
	}
	if moving {
		return nil, nil // the request may still be charged
	}
	return free, nil
}

const (
	// receiptPatience bounds the wait for a receipt that is being written. A
	// settlement is written after the reply, so the client may ask first.
	receiptPatience = 500 * time.Millisecond
	receiptLook     = 10 * time.Millisecond
)

// settled returns the receipts of a request that may have ended just now, and waits up to receiptPatience for one that
// is being written. moving reports whether another one may follow.
func (hs *Handlers) settled(ctx context.Context,
	account, request string) (all []money.Receipt, moving bool, err error) {
	for waited := time.Duration(0); ; waited += receiptLook {
		if hs.Ledger != nil {
			if moving, err = hs.Ledger.Moving(ctx, account, request); err != nil {
				moving = true // as far as is known
			}
		}
		all, err = money.Receipts(ctx, hs.Store, account, request)
		failed := err != nil && !errors.Is(err, state.ErrNotFound)
		if !moving || waited >= receiptPatience || failed {
			return all, moving, err
		}
		select {
		case <-time.After(receiptLook):
		case <-ctx.Done():
			return nil, moving, ctx.Err()
		}
	}
}
