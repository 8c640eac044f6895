package text

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"stagedoor/actors/meter"
	"stagedoor/actors/translator"
	"stagedoor/http/envelope"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// meter has the key's user charged for the order (decisions, Users and money).
// Keys that belong to nobody and models without a price cost nothing, the
// machinery included.
func (v *visit) meter(o *translator.Order) {
	priced := func(c catalog.Candidate) bool { return !c.Price.Zero() }
	if v.key.User == "" || v.doors.Ledger == nil || !slices.ContainsFunc(o.Plan, priced) {
		return
	}
	o.Meter = meter.NewText(v.doors.Ledger, v.doors.Env.Now, meter.Request{ID: o.ID, Account: v.key.User, Key: v.key.ID,
		Model: o.Head.Model, Body: o.Body, MaxTokens: o.Head.MaxTokens, Choices: o.Head.N, Stream: o.Head.Stream, Lasting: o.Head.Background && v.doors.Durable})
}

// receipt is what GET /v1/receipts/{request_id} answers.
type receipt struct {
	Object string `json:"object"`
	state.Receipt
	// Earlier are requests that their client gave the same id, newest first.
	Earlier []state.Receipt `json:"earlier,omitempty"`
}

// Receipt is GET /v1/receipts/{request_id}: what a request of this user's cost,
// and why. Other users' receipts do not exist.
func (d *Doors) Receipt(w http.ResponseWriter, r *http.Request) {
	dialect := d.Shapes[dialogue.Chat].Envelope
	all, err := d.receipts(r)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	slices.Reverse(all)
	body, err := json.Marshal(receipt{Object: "receipt", Receipt: all[0], Earlier: all[1:]})
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

func (d *Doors) receipts(r *http.Request) ([]state.Receipt, error) {
	key, err := d.Auth.Authenticate(r, false)
	if err != nil {
		return nil, err
	}
	if err := d.Auth.Permit(&key, r, "", ""); err != nil {
		return nil, err
	}
	all, err := d.settled(r.Context(), key.User, r.PathValue("request_id"))
	if errors.Is(err, state.ErrNotFound) {
		return nil, &dialogue.Error{Status: http.StatusNotFound, Type: dialogue.TypeNotFound, Param: "request_id", Code: "not_found",
			Message: "there is no receipt for this request id"}
	}
	return all, err
}

const (
	// receiptPatience is how long a receipt that is being written is waited for:
	// nobody waits for a settlement without a charge, so its client may come first.
	receiptPatience = 500 * time.Millisecond
	receiptLook     = 10 * time.Millisecond
)

// settled returns the receipts of a request that may have ended just now.
func (d *Doors) settled(ctx context.Context, account, request string) ([]state.Receipt, error) {
	for waited := time.Duration(0); ; waited += receiptLook {
		moving := false
		if d.Ledger != nil && waited < receiptPatience {
			moving, _ = d.Ledger.Moving(ctx, account, request) // if not known, there is nothing to wait for
		}
		all, err := d.Store.Receipts(ctx, account, request)
		if !moving || !errors.Is(err, state.ErrNotFound) {
			return all, err
		}
		select {
		case <-time.After(receiptLook):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
