package portal

import (
	"net/http"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state"
)

// ranges are the numbers of days a plot is offered for; defaultDays is what it
// shows if nobody asks.
var ranges = []int{7, 30, 90}

const defaultDays = 30

// account shows what there is and what was used.
func (v *visit) account() {
	balance, err := v.options.Ledger.Balance(v.r.Context(), v.user.Username)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	usage, err := v.usage(pathAccount, state.UsageQuery{Account: v.user.Username}, false)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	v.show(http.StatusOK, &pages.Account{Desk: v.desk(), Available: balance.Available(), Held: balance.Held, Spent: balance.Spent, Usage: usage})
}

// usage draws what q is about, over the days that the address asks for.
func (v *visit) usage(path string, q state.UsageQuery, form bool) (pages.Usage, error) {
	q.From, q.To = v.days()
	q.Per = state.PerDay | state.PerModel
	rows, err := v.options.State.Usage(v.r.Context(), q)
	if err != nil {
		return pages.Usage{}, err
	}
	return pages.NewUsage(rows, pages.UsageOptions{From: q.From, To: q.To, Measure: v.query("show"), Path: path, Ranges: ranges,
		Today: v.options.Now(), Form: form}), nil
}

// days reads the days asked for. What makes no sense is the default.
func (v *visit) days() (from, to time.Time) {
	today := v.options.Now().UTC().Truncate(24 * time.Hour)
	from, fromErr := time.Parse(time.DateOnly, v.query("from"))
	to, toErr := time.Parse(time.DateOnly, v.query("to"))
	if fromErr != nil || toErr != nil || to.Before(from) || to.Sub(from) >= state.MaxUsageDays*24*time.Hour {
		return today.AddDate(0, 0, 1-defaultDays), today
	}
	return from, to
}
