package portal

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/alerts"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// The pages of spending. Users see their own usage, and administrators that of all, of a user or of a group.
const (
	pathSpend = "/admin/spend"
	pathUsage = pathAccount + "/usage"
)

const (
	day = 24 * time.Hour
	// longestByDay is the longest time that is shown by day. A longer one is shown by week.
	longestByDay = 35 * day
	// rateDays is the number of days before today from which forecasts take the spending of a day. Two whole weeks have
	// each day of the week twice, so that a forecast does not depend on whether the last days were a weekend.
	rateDays = 14
	// maxSpenders bounds the names of a report in memory. What further ones used counts for one name together.
	maxSpenders = 10_000
)

// spendScope says whose spending a report is of: of all if it is zero.
//
//	all of the gateway    the zero value with the path of the page
//	one user, or oneself  account
//	one group             group
//	a lead's group        group and since
type spendScope struct {
	path    string
	own     bool // the page is the user's own
	account string
	group   *identity.Group
	// since is set for the lead of the group: the members, and the day from which on their spending is the lead's to
	// see. Nil: all is seen.
	since map[string]time.Time
	by    *pages.Dimension // nil: as the address asks
}

// spendScopeOf returns the scope that the address of the page of all asks for.
func (rc *requestContext) spendScopeOf() (spendScope, bool) {
	s := spendScope{path: pathSpend}
	if id, err := strconv.ParseInt(rc.query("group"), 10, 64); err == nil {
		g, ok := identity.FindGroup(rc.options.State.View(), id)
		s.group = &g
		return s, ok
	}
	s.account = rc.query("user")
	return s, true
}

// sees reports whether what an account used from a time on is in the scope. A lead must not learn from a
// total what a member spent elsewhere, so rows are left out before anything is summed.
func (s *spendScope) sees(account string, at time.Time) bool {
	if s.since == nil {
		return true
	}
	since, member := s.since[account]
	return member && !at.Before(since)
}

// withScope returns a handler of the page of all, or of its file, that calls show with the scope that the query names.
func withScope(show func(*requestContext, spendScope)) func(*requestContext) {
	return func(rc *requestContext) {
		if s, ok := rc.spendScopeOf(); ok {
			show(rc, s)
		} else {
			rc.missing()
		}
	}
}

// ownScope returns the scope of the person's own spending.
func (rc *requestContext) ownScope() spendScope {
	return spendScope{path: pathUsage, own: true, account: rc.user.Username}
}

// ownUsage shows what the user has used, and exportOwnUsage sends the same as CSV.

func (rc *requestContext) ownUsage()       { rc.showSpend(rc.ownScope()) }
func (rc *requestContext) exportOwnUsage() { rc.exportSpending(rc.ownScope()) }

// dimensions returns what a report of the scope can be divided by. A dimension that has only one row in the
// scope is left out.
func (s *spendScope) dimensions() []pages.Dimension {
	all := []pages.Dimension{pages.ByGroup, pages.ByUser, pages.ByKey, pages.ByModel, pages.ByProvider, pages.ByApp}
	switch {
	case s.account != "":
		return all[2:]
	case s.group != nil:
		return all[1:]
	}
	return all
}

// spendTime is the time of a report and the time before that it is compared with. All times are in UTC, as
// the days of the ledger are.
type spendTime struct {
	from, to         time.Time // to is excluded, as in the next
	before, beforeTo time.Time
	step             time.Duration
	month            bool // the time is one calendar month
	elapsed          int  // the number of steps that have begun
}

// timeOf reads the first and the last day that the address asks for. Without them, or if they make no sense, it is
// this month, of which the rest is shown, too.
func (rc *requestContext) timeOf() spendTime {
	now := rc.options.Now().UTC()
	from, fromErr := time.Parse(time.DateOnly, rc.query("from"))
	last, lastErr := time.Parse(time.DateOnly, rc.query("to"))
	// An address with impossible days shows a page nevertheless, because people edit addresses and keep old ones.
	if fromErr != nil || lastErr != nil || last.Before(from) || last.Sub(from) >= money.MaxUsageDays*day {
		from, last = monthOf(now)
	}
	t := spendTime{from: from, to: last.Add(day), step: day}
	first, end := monthOf(from)
	if t.month = from.Equal(first) && last.Equal(end); t.month {
		// A month is compared with the month before, although months differ in length, because bills are made by
		// month.
		t.before, t.beforeTo = from.AddDate(0, -1, 0), from
	} else {
		t.before, t.beforeTo = from.Add(-t.to.Sub(from)), from
	}
	switch length := t.to.Sub(t.from); {
	case length == day:
		// The ledger has no hours, so a report of one day needs the log of requests.
		t.step = time.Hour
	case length > longestByDay:
		t.step = 7 * day
	}
	// The step that has begun is elapsed, because its spending is in the report. No step of a time in the future is,
	// and all steps of one in the past are.
	t.elapsed = min(max(int(now.Sub(t.from)/t.step)+1, 0), t.steps())
	return t
}

// monthOf returns the first and the last day of the month of a time.
func monthOf(t time.Time) (first, last time.Time) {
	first = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	return first, first.AddDate(0, 1, -1)
}

// steps returns the number of steps, of which the last one may be shorter.
func (t *spendTime) steps() int { return int((t.to.Sub(t.from) + t.step - 1) / t.step) }

// showSpend shows a report with its budgets. Users see their own ones and their receipts, leads the one of
// their group, and administrators where alerts are sent. It serves /admin/spend, /account/usage and the
// spending of a lead's group, which differ in the scope.
func (rc *requestContext) showSpend(scope spendScope) {
	t := rc.timeOf()
	r, err := rc.report(&scope, &t)
	if err == nil {
		rc.name(r)
		err = rc.forecast(r, &scope, &t)
	}
	view := &pages.Spend{Viewer: rc.viewer(), Name: pageName(&scope), Own: scope.own, Report: r}
	if scope.own && err == nil {
		err = rc.receipts(view, &t)
	}
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	// Users see their own budgets. The addresses of alerts and the spending of others are for administrators.
	if view.Whose = scope.account; scope.own {
		view.Whose, view.Budgets = "", rc.ownBudgets(r)
	} else if scope.group != nil {
		view.Whose = scope.group.Name
	}
	if scope.since != nil {
		if line := rc.groupBudget(scope.group, perDayOf(r)); line != nil {
			view.Budgets = []pages.BudgetLine{*line}
		}
	} else if !scope.own {
		view.Alerts = &pages.Alerts{To: rc.options.AlertsTo()}
	}
	rc.spendTimes(view, &t)
	rc.show(http.StatusOK, view)
}

// spendTimes sets the links to the time before, to the time after unless it lies in the future, and to the usual
// ranges.
func (rc *requestContext) spendTimes(view *pages.Spend, t *spendTime) {
	today := rc.options.Now().UTC().Truncate(day)
	last := t.to.Add(-day)
	view.Previous = view.Report.During(t.before, t.beforeTo.Add(-day))
	if !t.to.After(today) {
		next := last.Add(t.to.Sub(t.from))
		if t.month {
			_, next = monthOf(t.to)
		}
		view.Next = view.Report.During(t.to, next)
	}
	month, end := monthOf(today)
	for _, o := range []struct {
		name       string
		from, last time.Time
	}{{"Today", today, today}, {"7 days", today.AddDate(0, 0, -6), today}, {"This month", month, end},
		{"90 days", today.AddDate(0, 0, -89), today}} {
		view.Ranges = append(view.Ranges, pages.Link{Name: o.name, Path: view.Report.During(o.from, o.last),
			Current: o.from.Equal(t.from) && o.last.Equal(last)})
	}
}

// receipts adds a page of the user's receipts in the time of the report, the newest first. The parameter receipts is
// the place from which older ones are shown.
func (rc *requestContext) receipts(view *pages.Spend, t *spendTime) error {
	before, _ := strconv.ParseUint(rc.query("receipts"), 10, 64)
	found, next, err := money.ListReceipts(rc.r.Context(), rc.options.State, money.ReceiptQuery{
		Account: rc.user.Username, From: t.from, To: t.to, Before: before, Limit: receiptsPerPage})
	if errors.Is(err, state.ErrInvalid) {
		// Places are numbers in the ledger of all accounts, and people pass addresses on. A place of another account
		// shows nothing and is no failure.
		return nil // the address has no place of this account
	}
	if view.Receipts = found; next != 0 {
		view.OlderReceipts = view.Report.Older(next)
	}
	return err
}

// usageOf returns the report of a user's last days by model, for the pages that show it beside other things. path is
// that of the page with more of it.
func (rc *requestContext) usageOf(account, path string) (*pages.Report, error) {
	today := rc.options.Now().UTC().Truncate(day)
	t := spendTime{from: today.AddDate(0, 0, 1-defaultDays), to: today.Add(day), step: day, elapsed: defaultDays}
	t.before, t.beforeTo = t.from.AddDate(0, 0, -defaultDays), t.from
	scope := spendScope{path: path, own: path == pathUsage, account: account, by: &pages.ByModel}
	r, err := rc.report(&scope, &t)
	if err == nil {
		rc.name(r)
	}
	return r, err
}

// testAlerts sends an alert that says that alerts arrive.
func (rc *requestContext) testAlerts() {
	if rc.options.AlertsTo() == "" {
		rc.missing()
		return
	}
	err := alerts.SendTest(rc.r.Context(), rc.options.State)
	rc.concluded(err, pathSpend, "alert_sent")
}
