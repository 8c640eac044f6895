package text

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Receipts of what held nothing come from what is remembered of ended requests and
// from the records of video jobs: nothing is written for them on the way.

// freeFor is how long a request that held nothing has a receipt at most: it is
// remembered by the process, among the last ones. Receipts of those that held
// something are kept longer (ledger.keep is a day at least), so within that time one
// that has none in the store held nothing.
const freeFor = 24 * time.Hour

// unheld are receipts of requests that ended a while ago and may have held nothing,
// as they are remembered, the oldest first (decisions, Ledger: every request).
func (d *Doors) unheld(key *state.Key, request string) []state.Receipt {
	now := d.Env.Now()
	var all []state.Receipt
	for _, req := range slices.Backward(d.Flow.Ended(request)) {
		v := req.View(now)
		if v.Job {
			continue // its record tells, see filmed
		}
		if now.Sub(v.Began.Add(v.Age)) < freeFor && d.shares(key, v.Key) {
			all = append(all, freeReceipt(&v, key.User))
		}
	}
	return all
}

// shares reports whether a key sees what was done with another one: both are the
// same, or of one user.
func (d *Doors) shares(key *state.Key, other string) bool {
	if key.ID == other {
		return true
	}
	if key.User == "" {
		return false
	}
	k, err := d.Auth.ByID(other)
	return err == nil && k.User == key.User
}

// freeReceipt is the receipt of a request that cost nothing.
func freeReceipt(v *flow.View, account string) state.Receipt {
	u := &v.Result.Usage
	used := state.ReceiptUsage{Input: dialogue.CountOrZero(u.InputTotal), CacheRead: dialogue.CountOrZero(u.CacheRead), CacheWrite: dialogue.CountOrZero(u.CacheWrite),
		Output: v.Output, Reasoning: dialogue.CountOrZero(u.Reasoning), Images: int64(v.Result.Images),
		Estimated: u.Estimated || u.OutputTotal < 0 && v.Output > 0}
	return state.Receipt{Request: v.ID, Account: account, Key: v.Key, Model: v.Model, Upstream: v.Upstream, Provider: v.Provider, Attempts: v.Attempts,
		Usage: used, Prices: []state.PriceRow{}, Reason: endReason(v), Began: v.Began, Ended: v.Began.Add(v.Age)}
}

// endReason is how a request ended, in the ledger's words.
func endReason(v *flow.View) string {
	end := ledger.Failed
	switch status := v.Result.Status; {
	case status == 0:
		end = ledger.Finished
	case status == statusClientLeft:
		end = ledger.Left
	case v.First == 0 && status < http.StatusInternalServerError:
		end = ledger.Refused
	}
	return end.String()
}

// filmed are the receipts of video jobs: by the id of the request that began one, or
// by its own.
func (d *Doors) filmed(ctx context.Context, key *state.Key, request string) ([]state.Receipt, error) {
	var all []state.Receipt
	for _, job := range d.Store.View().RequestedVideos(request, state.OwnerOf(key.ID, key.User)) {
		if job.Account == "" {
			if job.Final() {
				all = append(all, filmReceipt(&job, key.User))
			}
			continue
		}
		paid, err := d.Store.Receipts(ctx, job.Account, job.ID)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
		all = append(all, paid...)
	}
	return all, nil
}

// filmReceipt is the receipt of a video that cost nothing.
func filmReceipt(job *state.Video, account string) state.Receipt {
	r := state.Receipt{Request: job.ID, Account: account, Key: job.Key, Model: job.Model, Upstream: job.UpstreamModel, Provider: job.Provider,
		Attempts: job.Attempts, Prices: []state.PriceRow{}, Reason: ledger.Failed.String(), Began: job.Created, Ended: job.Completed}
	if job.Error == nil {
		r.Reason, r.Usage.Seconds = ledger.Finished.String(), job.Billable
	}
	return r
}
