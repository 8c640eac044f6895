package portal

import (
	"net/http"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state/money"
)

// ranges lists the numbers of days that a plot is offered for; defaultDays is shown
// unless the request names another.
var ranges = []int{7, 30, 90}

const defaultDays = 30

// account shows what there is and what was used.
func (rc *requestContext) account() {
	balance, err := rc.options.Ledger.Balance(rc.r.Context(), rc.user.Username)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	usage, err := rc.usage(pathAccount, money.UsageQuery{Account: rc.user.Username}, false)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.show(
		http.StatusOK,
		&pages.Account{
			Desk:      rc.desk(),
			Available: balance.Available(),
			Held:      balance.Held,
			Spent:     balance.Spent,
			Usage:     usage,
		},
	)
}

// usage draws what q is about, over the days that the address asks for.
func (rc *requestContext) usage(path string, q money.UsageQuery, form bool) (pages.Usage, error) {
	q.From, q.To = rc.days()
	q.Per = money.PerDay | money.PerModel
	rows, err := money.QueryUsage(rc.r.Context(), rc.options.State, q)
	if err != nil {
		return pages.Usage{}, err
	}
	return pages.NewUsage(
		rows,
		pages.UsageOptions{From: q.From, To: q.To, Measure: rc.query("show"), Path: path, Ranges: ranges,
			Today: rc.options.Now(), Form: form},
	), nil
}

// days reads the days asked for. What makes no sense is the default.
func (rc *requestContext) days() (from, to time.Time) {
	today := rc.options.Now().UTC().Truncate(24 * time.Hour)
	from, fromErr := time.Parse(time.DateOnly, rc.query("from"))
	to, toErr := time.Parse(time.DateOnly, rc.query("to"))
	if fromErr != nil || toErr != nil || to.Before(from) || to.Sub(from) >= money.MaxUsageDays*24*time.Hour {
		return today.AddDate(0, 0, 1-defaultDays), today
	}
	return from, to
}
