package text

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// Receipts of requests that held no money are made from the registry of ended requests and from the
// records of video jobs. Nothing is written for them while the requests run.

// freeFor is the longest time for which a request that held no money has a receipt. The store keeps
// receipts of other requests at least as long (ledger.keep is a day or more), so a request without a
// receipt in the store held no money.
const freeFor = 24 * time.Hour

// unheld returns receipts of ended requests that may have held no money, oldest first (decisions,
// Ledger: every request).
func (hs *Handlers) unheld(key *identity.Key, request string) []money.Receipt {
	now := hs.Env.Now()
	var all []money.Receipt
	for _, req := range slices.Backward(hs.Flow.Ended(request)) {
		v := req.View(now)
		if v.Job {
			continue // videoReceipts uses its record
		}
		if now.Sub(v.Began.Add(v.Age)) < freeFor && hs.shares(key, v.Key) {
			r := freeReceipt(&v, key.User)
			hs.estimateCost(&r, v.Result)
			all = append(all, r)
		}
	}
	return all
}

// shares reports whether a key may see requests of another key: both are the same, or belong to one
// user.
func (hs *Handlers) shares(key *identity.Key, other string) bool {
	if key.ID == other {
		return true
	}
	if key.User == "" {
		return false
	}
	k, err := hs.Auth.ByID(other)
	return err == nil && k.User == key.User
}

// freeReceipt returns the receipt of a request that cost nothing.
func freeReceipt(v *flow.View, account string) money.Receipt {
	u := &v.Result.Usage
	used := money.ReceiptUsage{
		Input:      dialogue.CountOrZero(u.InputTotal),
		CacheRead:  dialogue.CountOrZero(u.CacheRead),
		CacheWrite: dialogue.CountOrZero(u.CacheWrite),
		Output:     v.Output,
		Reasoning:  dialogue.CountOrZero(u.Reasoning),
		Images:     int64(v.Result.Images),
		Estimated:  u.Estimated || u.OutputTotal < 0 && v.Output > 0,
	}
	return money.Receipt{
		Request:  v.ID,
		Account:  account,
		Key:      v.Key,
		Model:    v.Model,
		Upstream: v.Upstream,
		Provider: v.Provider,
		Attempts: v.Attempts,
		Usage:    used,
		Prices:   []money.PriceRow{},
		Reason:   endReason(v),
		Began:    v.Began,
		Ended:    v.Began.Add(v.Age),
	}
}

// estimateCost adds to the receipt of a request that was not charged what it would cost by the list of models, or that
// this is not known.
func (hs *Handlers) estimateCost(r *money.Receipt, result *flow.Result) {
	plan := hs.planFor(r.Model)
	at := slices.IndexFunc(plan, func(c catalog.Candidate) bool {
		return c.Provider.Name == r.Provider && c.Model == r.Upstream
	})
	if at < 0 || r.Usage == (money.ReceiptUsage{}) {
		return
	}
	c := &plan[at]
	if c.PriceUnknown() {
		r.Flags = append(r.Flags, ledger.FlagUnpriced)
	} else if p := c.Estimate("", r.Began).AtTier(result.ServiceTier); !p.Zero() && p.Source != "" {
		u := result.Usage
		u.OutputTotal = max(u.OutputTotal, r.Usage.Output)
		r.ListCost, r.Catalog = p.Tokens(u), p.Source
	}
}

// endReason returns the outcome of a request as the ledger names it.
func endReason(v *flow.View) string {
	end := ledger.Failed
	switch status := v.Result.Status; {
	case status == 0:
		end = ledger.Finished
	case status == dialogue.StatusClientClosed:
		end = ledger.Left
	case v.First == 0 && status < http.StatusInternalServerError:
		end = ledger.Refused
	}
	return end.String()
}

// videoReceipts returns the receipts of video jobs, by the id of the job or of the request that created
// it.
func (hs *Handlers) videoReceipts(ctx context.Context, key *identity.Key, request string) ([]money.Receipt, error) {
	var all []money.Receipt
	for _, job := range work.ListRequestedVideos(hs.Store.View(), request, state.OwnerOf(key.ID, key.User)) {
		if job.Account == "" {
			if job.Final() {
				all = append(all, freeVideoReceipt(&job, key.User))
			}
			continue
		}
		paid, err := money.Receipts(ctx, hs.Store, job.Account, job.ID)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
		all = append(all, paid...)
	}
	return all, nil
}

// freeVideoReceipt returns the receipt of a video that cost nothing.
func freeVideoReceipt(job *work.Video, account string) money.Receipt {
	r := money.Receipt{
		Request:  job.ID,
		Account:  account,
		Key:      job.Key,
		Model:    job.Model,
		Upstream: job.UpstreamModel,
		Provider: job.Provider,
		Attempts: job.Attempts,
		Prices:   []money.PriceRow{},
		Reason:   ledger.Failed.String(),
		Began:    job.Created,
		Ended:    job.Completed,
	}
	if job.Error == nil {
		r.Reason, r.Usage.Seconds = ledger.Finished.String(), job.Billable
	}
	return r
}
