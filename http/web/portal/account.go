package portal

import (
	"context"
	"net/http"
	"slices"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// defaultDays is the number of days of the usage that pages about a user show.
const defaultDays = 30

// account shows the page of the user's own account: the balance, the usage of the last defaultDays, how long budgets
// last, and the latest requests.
func (rc *requestContext) account() {
	balance, err := rc.options.Ledger.Balance(rc.r.Context(), rc.user.Username)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	usage, err := rc.usageOf(rc.user.Username, pathUsage)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	days := make([]pages.Use, defaultDays)
	for _, row := range slices.Concat(usage.Rows, usage.More) {
		for i := range row.Uses {
			days[i].Add(row.Uses[i])
		}
	}
	view := &pages.Account{Viewer: rc.viewer(), Available: balance.Available(), Held: balance.Held,
		Spent: balance.Spent,
		Usage: usage, Today: days[defaultDays-1], Budgets: rc.ownBudgets(usage), Recent: rc.recentRequests(5),
		Clients: rc.clients("")}
	view.PerDay = perDay(days[defaultDays-1-rateDays : defaultDays-1])
	if view.PerDay == 0 { // nothing was used before today
		view.PerDay = view.Today.Amount
	}
	rc.show(http.StatusOK, view)
}

// recentRequests returns the latest requests of the user, none if there is no log. A log that fails or takes long has
// none here; its own page says what is wrong.
func (rc *requestContext) recentRequests(most int) (rows []pages.RequestRow) {
	log, err := rc.openLog()
	if err != nil || log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(rc.r.Context(), lookupTime)
	defer cancel()
	now := rc.options.Now()
	q := requestlog.Query{Owner: string(state.OwnerOf("", rc.user.Username)), Limit: most,
		From: now.Add(-7 * day), To: now.Add(time.Minute)}
	_ = log.Find(ctx, &q, func(r *requestlog.Record) bool {
		rows = append(rows, pages.RequestRow{Record: *r})
		return true
	})
	return rows
}
