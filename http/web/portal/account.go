package portal

import (
	"net/http"

	"stagedoor/http/web/pages"
)

// defaultDays is the number of days of the usage that pages about a user show.
const defaultDays = 30

// account shows what there is and what was used.
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
	rc.show(http.StatusOK, &pages.Account{Desk: rc.desk(), Available: balance.Available(), Held: balance.Held,
		Spent: balance.Spent, Usage: usage})
}
