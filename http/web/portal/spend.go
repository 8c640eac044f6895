package portal

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/alerts"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
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

// spending sums what was used while a report is made.
//
// It is filled row by row and keeps no row, so a report takes memory for its names and steps and not for the
// requests. Time before the report is added to Before of each name, and step by step to before, from which
// the page draws the earlier line.
type spending struct {
	scope   *spendScope
	by      pages.Dimension
	steps   int
	elapsed int
	groups  map[string]*identity.Group // by user
	rows    map[string]*pages.Spender
	before  []pages.Use
	grown   map[[2]string]int64 // by name and key, how much more was charged than before
	keyUser map[string]string
	// counted has the users that a row of a group has counted, each of whom has at most one group.
	counted map[string]bool
}

// newSpending returns sums that are empty yet.
func newSpending(scope *spendScope, by pages.Dimension, steps, elapsed int,
	groups map[string]*identity.Group) *spending {
	return &spending{scope: scope, by: by, steps: steps, elapsed: elapsed, groups: groups,
		rows: map[string]*pages.Spender{}, before: make([]pages.Use, steps), grown: map[[2]string]int64{},
		keyUser: map[string]string{}, counted: map[string]bool{}}
}

// othersID is the id of the row for those behind the first maxSpenders. No user, key or model has it.
const othersID = "\x00"

// origin says whose use it is. provider and app are known only from the log of requests, and are "" for the ledger's.
type origin struct{ account, key, model, provider, app string }

// add counts what was used in a step, or in one of the time before. A month before that is longer than this one has
// further steps, which no line shows, but a whole month is compared with all of it.
func (s *spending) add(o origin, step int, before bool, use pages.Use) {
	// The scope is checked here whatever the query has selected, because no query can select a group.
	if step < 0 || step >= s.steps && !before || s.scope.account != "" && o.account != s.scope.account {
		return
	}
	group := s.groups[o.account]
	if s.scope.group != nil && (group == nil || group.ID != s.scope.group.ID) {
		return
	}
	id := map[pages.Dimension]string{pages.ByUser: o.account, pages.ByKey: o.key, pages.ByModel: o.model,
		pages.ByProvider: o.provider, pages.ByApp: o.app}[s.by]
	if s.by == pages.ByGroup && group != nil {
		id = strconv.FormatInt(group.ID, 10)
	}
	if before {
		if step < s.steps {
			s.before[step].Add(use)
		}
		// Time that has not come yet in this report must not be compared with a whole time before.
		if step >= s.elapsed && s.elapsed < s.steps {
			return
		}
	}
	row := s.rows[id]
	if row == nil {
		// Clients choose names of models and apps, so their number has no bound of its own.
		if len(s.rows) >= maxSpenders {
			id = othersID
			row = s.rows[id]
		}
		if row == nil {
			row = &pages.Spender{ID: id, Uses: make([]pages.Use, s.steps)}
			s.rows[id] = row
		}
	}
	if before {
		row.Before.Add(use)
		// What was charged before counts against the growth of the same cause.
		use.Amount = -use.Amount
	} else {
		row.Uses[step].Add(use)
		row.Total.Add(use)
		if s.by == pages.ByGroup && o.account != "" && !s.counted[o.account] {
			s.counted[o.account] = true
			row.Users++
		}
	}
	cause := [2]string{id, o.key}
	if _, known := s.grown[cause]; known || len(s.grown) < 2*maxSpenders {
		s.grown[cause] += use.Amount
		s.keyUser[o.key] = o.account
	}
}

// report makes the report of a scope for what the address asks for: by names the dimension of the rows and show the
// measure. The figures are the ledger's where it has them. Those by hour, provider or app are the log's, which may be
// kept for a shorter time and misses requests that were not logged, so such a report shows the ledger's total beside
// it. The rows have no names yet.
func (rc *requestContext) report(scope *spendScope, t *spendTime) (*pages.Report, error) {
	dimensions := scope.dimensions()
	r := &pages.Report{By: dimensions[0], Dimensions: dimensions, Measure: rc.query("show"), From: t.from, To: t.to,
		Step: t.step, Elapsed: t.elapsed, Path: scope.path, Keep: url.Values{}, Compared: comparedWith(t)}
	for _, d := range dimensions {
		if d.Name == rc.query("by") {
			r.By = d
		}
	}
	scope.narrow(r)
	sums := newSpending(scope, r.By, t.steps(), t.elapsed, rc.groupsOfUsers())
	log, err := rc.openLog()
	if err != nil {
		return nil, err
	}
	r.Linked = log != nil
	// The ledger's usage has no provider, no app and no time of day.
	r.Logged = log != nil && (t.step < day || r.By == pages.ByProvider || r.By == pages.ByApp)
	if r.Logged {
		r.Kept = pages.Days(rc.options.RequestLog.Limits().Keep)
		err = rc.sumLog(log, sums, t)
	}
	if err == nil {
		err = rc.sumLedger(sums, r, t)
	}
	if err != nil {
		return nil, err
	}
	for _, row := range sums.rows {
		r.Rows = append(r.Rows, row)
	}
	r.Before = sums.before
	r.Finish()
	rc.explainIncrease(r, sums)
	return r, nil
}

// narrow sets what a report of the scope shows, and what its addresses must keep so that they show the same.
func (s *spendScope) narrow(r *pages.Report) {
	if s.by != nil {
		r.By, r.Measure = *s.by, ""
	}
	if !s.own && s.account != "" {
		r.Keep.Set("user", s.account)
		r.Scope = pages.Condition("user", s.account)
	}
	if r.Led = s.since != nil; r.Led {
		r.Scope = "" // the address of the log says whose requests it shows
	} else if s.group != nil {
		r.Keep.Set("group", strconv.FormatInt(s.group.ID, 10))
		r.Scope = pages.Condition("group", s.group.Name)
	}
}

// explainIncrease names the key that grew most under the row that grew most, and its user. A report by key
// names none, because the row is the key. Of two keys that grew by the same amount, the first one by its id
// is named, so that a page that is drawn again says the same.
func (rc *requestContext) explainIncrease(r *pages.Report, sums *spending) {
	if r.Increase == nil || r.By == pages.ByKey {
		return
	}
	most := int64(0)
	for cause, grown := range sums.grown {
		if cause[0] == r.Increase.ID && (grown > most || grown == most && cause[1] < r.Cause) {
			most, r.Cause = grown, cause[1]
		}
	}
	if r.Cause != "" {
		r.CauseUser = sums.keyUser[r.Cause]
		r.Cause, _ = rc.keyTitle(r.Cause)
	}
}

// comparedWith names the part of the time before that is compared.
func comparedWith(t *spendTime) string {
	last := t.beforeTo.Add(-time.Second).UTC()
	switch whole := t.elapsed == t.steps(); {
	case t.month && t.elapsed <= 1:
		return "1 " + last.Format("January")
	case t.month && !whole:
		return "1–" + strconv.Itoa(min(t.elapsed, last.Day())) + " " + last.Format("January")
	case t.month:
		return last.Format("January")
	case t.step < day && !whole:
		return t.before.Format("2 January") + " to the same hour"
	case t.step < day:
		return t.before.Format("2 January")
	}
	return t.before.Format("2 Jan") + " – " + last.Format("2 Jan")
}

// openLog returns the log of requests, or nil if none is kept.
func (rc *requestContext) openLog() (requestlog.Reader, error) {
	if rc.options.RequestLog == nil {
		return nil, nil
	}
	log, err := rc.searchedLog()
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	return log, err
}

// groupsOfUsers returns the group of each user that has one.
func (rc *requestContext) groupsOfUsers() map[string]*identity.Group {
	view := rc.options.State.View()
	all := map[string]*identity.Group{}
	for _, g := range identity.ListGroups(view) {
		for _, u := range identity.ListMembers(view, g.ID) {
			all[u.Username] = &g
		}
	}
	return all
}

// sumLog adds what the log of requests has about the time of the report and the time before. It gives up after
// searchTime.
func (rc *requestContext) sumLog(log requestlog.Reader, s *spending, t *spendTime) error {
	ctx, cancel := context.WithTimeout(rc.r.Context(), searchTime)
	defer cancel()
	owner := ""
	if s.scope.account != "" {
		owner = string(state.OwnerOf("", s.scope.account))
	}
	for _, before := range []bool{true, false} {
		q := requestlog.SpentQuery{Owner: owner, From: t.from, To: t.to, Step: t.step}
		if before {
			q.From, q.To = t.before, t.beforeTo
		}
		err := log.Spent(ctx, &q, func(u *requestlog.Spent) error {
			account := state.Owner(u.Owner).Account()
			if !s.scope.sees(account, q.From.Add(time.Duration(u.Step)*q.Step)) {
				return nil
			}
			s.add(origin{account, u.Key, u.Model, u.Provider, u.App}, u.Step, before,
				pages.Use{Requests: u.Requests, Input: u.Input, Output: u.Output, Amount: u.MicroUSD})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sumLedger adds what the ledger has, or only its total if the figures are those of the log. The ledger has
// days, so what it has about a day counts in the step in which the day begins.
func (rc *requestContext) sumLedger(s *spending, r *pages.Report, t *spendTime) error {
	from := t.before
	if r.Logged {
		from = t.from
	}
	q := money.UsageQuery{Account: s.scope.account}
	for _, part := range [][2]time.Time{{from, t.from}, {t.from, t.to}} {
		if q.From, q.To = part[0], part[1].Add(-time.Second); q.To.Before(q.From) {
			continue
		}
		before := part[0].Before(t.from)
		err := money.EachUsage(rc.r.Context(), rc.options.State, q, func(u *money.UsageRow) error {
			at, err := time.Parse(time.DateOnly, u.Day)
			if err != nil || !s.scope.sees(u.Account, at) {
				return err
			}
			if r.Logged {
				if g := s.groups[u.Account]; s.scope.group == nil || g != nil && g.ID == s.scope.group.ID {
					r.Ledger += u.Amount
				}
				return nil
			}
			s.add(origin{account: u.Account, key: u.Key, model: u.Model}, int(at.Sub(part[0])/t.step), before,
				pages.Use{Requests: u.Requests, Input: u.InputTokens, Output: u.OutputTokens, Amount: u.Amount})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// name sets the names of the rows of a report, and the search terms that select their requests.
func (rc *requestContext) name(r *pages.Report) {
	view := rc.options.State.View()
	for _, s := range r.Rows {
		rc.nameRow(view, r.By, s)
	}
	if r.Increase != nil {
		rc.nameRow(view, r.By, r.Increase)
	}
	r.Link()
}

// nameRow names a row and links it to the page of its user or group, if the person may see that. The term
// selects the row's requests in the log. A name that the ledger has and the state has no longer, such as that
// of a removed key, is shown as its id.
func (rc *requestContext) nameRow(view state.View, by pages.Dimension, s *pages.Spender) {
	if s.Name = s.ID; s.ID == othersID {
		s.Name = "others"
		return
	}
	if s.ID != "" {
		s.Term = pages.Condition(by.Name, s.ID)
	}
	switch by {
	case pages.ByGroup:
		if s.Name = "No group"; s.ID == "" {
			return
		}
		id, _ := strconv.ParseInt(s.ID, 10, 64)
		if g, ok := identity.FindGroup(view, id); ok {
			s.Name, s.Path, s.Term = g.Name, pathSpend+"?group="+s.ID, pages.Condition("group", g.Name)
		}
	case pages.ByUser:
		if u, err := rc.options.Registry.UserByName(s.ID); err == nil && rc.user.Admin {
			s.Path = pathUser(u.ID)
		} else if state.IsKeyAccount(s.ID) {
			s.Name, s.Note = "key without a user", s.ID
		}
	case pages.ByKey:
		s.Name, s.Note = rc.keyTitle(s.ID)
	case pages.ByProvider, pages.ByApp:
		if s.ID == "" {
			s.Name = "unknown"
		}
	}
}

// keyTitle returns the name of a key, and the beginning of its secret.
func (rc *requestContext) keyTitle(id string) (name, note string) {
	if page := pageOfKey(id); page != "" {
		return "page " + page, ""
	}
	if k, err := identity.FindKey(rc.options.State.View(), id); err == nil {
		return k.Name, identity.SecretPrefix + k.Prefix + "…"
	}
	return cmp.Or(rc.options.KeyName(id), id), "" // keys of the configuration file are not in the state
}

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

// forecast adds the budgets of the rows, and the forecasts of them and of the month, from the spending of the last
// rateDays whole days. Days before the first spending do not count, because a new user would otherwise seem to spend
// slowly. Only a report of the current month has a forecast of its total.
func (rc *requestContext) forecast(r *pages.Report, scope *spendScope, t *spendTime) error {
	now := rc.options.Now().UTC()
	today := now.Truncate(day)
	current := t.month && !today.Before(t.from) && today.Before(t.to)
	shown := map[string]*pages.Spender{}
	for _, s := range r.Rows {
		shown[s.ID] = s
	}
	recent := newSpending(scope, r.By, rateDays, rateDays, rc.groupsOfUsers())
	first := today.AddDate(0, 0, -rateDays)
	q := money.UsageQuery{Account: scope.account, From: first, To: today.Add(-time.Second)}
	err := money.EachUsage(rc.r.Context(), rc.options.State, q, func(u *money.UsageRow) error {
		at, err := time.Parse(time.DateOnly, u.Day)
		if !scope.sees(u.Account, at) {
			return err
		}
		recent.add(origin{account: u.Account, key: u.Key, model: u.Model}, int(at.Sub(first)/day), false,
			pages.Use{Amount: u.Amount})
		return err
	})
	if err != nil {
		return err
	}
	var all []pages.Use
	for _, row := range recent.rows {
		if all == nil {
			all = make([]pages.Use, rateDays)
		}
		for i := range row.Uses {
			all[i].Add(row.Uses[i])
		}
	}
	if current {
		// Today is counted as it is, because its rest cannot be known. Only the days after it are forecast.
		left := int64(t.to.Sub(today.Add(day)) / day)
		rate := perDay(all)
		if rate == 0 { // nothing was used before today
			rate = r.Total.Amount
		}
		r.Forecast = r.Total.Amount + rate*left
	}
	for id, s := range shown {
		var uses []pages.Use
		if row := recent.rows[id]; row != nil {
			uses = row.Uses
		}
		s.Budget = rc.budgetLine(budgetScope(r.By, s.ID), perDay(uses))
	}
	if r.By == pages.ByGroup && current {
		for _, g := range identity.ListGroups(rc.options.State.View()) {
			if b := g.Ceiling.Limit(); b.Window == budget.WindowMonth {
				r.Budgets += b.Amount
			}
		}
	}
	return nil
}

// perDay returns the mean of days of spending since the first one with any. The result is in micro-dollars.
func perDay(days []pages.Use) int64 {
	var sum int64
	n := len(days)
	for i := range days {
		if sum += days[i].Amount; sum == 0 {
			n--
		}
	}
	return sum / int64(max(n, 1))
}

// budgetScope returns the scope of a row. The zero scope has no budget.
func budgetScope(by pages.Dimension, id string) budget.Scope {
	switch by {
	case pages.ByGroup:
		return budget.Scope{Kind: budget.GroupScope, ID: id}
	case pages.ByUser:
		return budget.Scope{Kind: budget.UserScope, ID: id}
	case pages.ByKey:
		return budget.Scope{Kind: budget.KeyScope, ID: id}
	}
	return budget.Scope{}
}

// budgetLine returns the budget of a scope, or nil if it has none. perDay is in micro-dollars.
func (rc *requestContext) budgetLine(scope budget.Scope, perDay int64) *pages.BudgetLine {
	if scope.ID == "" {
		return nil
	}
	b := identity.AccessOf(rc.options.State).BudgetOf(scope)
	if b.Amount <= 0 {
		return nil
	}
	now := rc.options.Now()
	spent := money.SpentBy(rc.options.State.View(), scope)
	line := &pages.BudgetLine{Budget: b.Amount, InWindow: spent.In(b.Window, now), Window: b.Window}
	line.Forecast = pages.RunsOut(b, line.InWindow, perDay, now)
	return line
}

// perDayOf returns the mean spending of a day of a report.
func perDayOf(r *pages.Report) int64 {
	if r.Elapsed == 0 || r.Step > 7*day {
		return 0
	}
	return r.Total.Amount / max(int64(time.Duration(r.Elapsed)*r.Step/day), 1)
}

// ownBudgets returns the budgets of the user and of the user's group. How fast the group spends is not the user's to
// know.
func (rc *requestContext) ownBudgets(r *pages.Report) (lines []pages.BudgetLine) {
	u, _ := identity.FindUser(rc.options.State.View(), rc.user.ID)
	if own := rc.budgetLine(budget.Scope{Kind: budget.UserScope, ID: u.Username}, perDayOf(r)); own != nil {
		own.Name = "Your budget"
		lines = append(lines, *own)
	}
	if u.Group != 0 {
		group := rc.budgetLine(budget.Scope{Kind: budget.GroupScope, ID: strconv.FormatInt(u.Group, 10)}, 0)
		if group != nil {
			group.Name = "Budget of your group"
			lines = append(lines, *group)
		}
	}
	return lines
}

// receiptsPerPage is the number of receipts on a page.
const receiptsPerPage = 20

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

// exportSpending sends what the page shows as CSV, with all names and a line for each step in which they used
// something. Unlike the page, the file has all rows. Times are in RFC 3339, costs in dollars, and steps
// without use have no line.
func (rc *requestContext) exportSpending(scope spendScope) {
	t := rc.timeOf()
	r, err := rc.report(&scope, &t)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rows := slices.Concat(r.Rows, r.More)
	view := rc.options.State.View()
	rc.beginFile(mediaCSV, strings.ToLower(pageName(&scope))+".csv")
	out := newSpreadsheet(rc.w, "from", "to", r.By.Name, "name", "requests", "input_tokens", "output_tokens",
		"cost_usd")
	for _, s := range rows {
		rc.nameRow(view, r.By, s)
		for i, u := range s.Uses {
			if u == (pages.Use{}) {
				continue
			}
			from := r.From.Add(time.Duration(i) * r.Step)
			to := from.Add(r.Step)
			if to.After(r.To) {
				to = r.To // the last week is cut off
			}
			// The row of all further names has no id in the file, because its id is known to this program only.
			out.row(from.Format(time.RFC3339), to.Format(time.RFC3339), strings.Trim(s.ID, othersID), s.Name,
				number(u.Requests), number(u.Input), number(u.Output), pages.Dollars(u.Amount))
		}
	}
	_ = out.end() // the client has left
}

// mediaCSV is the media type of CSV. With the charset, spreadsheets do not guess that of their own system.
const mediaCSV = "text/csv; charset=utf-8"

// beginFile sets the headers of a reply that browsers store as a file of this name. Clients have chosen a part of the
// content, so that it is never shown as a page of the gateway.
func (rc *requestContext) beginFile(media, name string) {
	pages.Protect(rc.w.Header(), "'none'", false)
	rc.w.Header().Set("Content-Type", media)
	rc.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// pageName returns the title of the page.
func pageName(scope *spendScope) string {
	if scope.own {
		return "Usage"
	}
	return "Spend"
}

// number formats a number for a spreadsheet.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// spreadsheet writes CSV for spreadsheets, which run texts that begin as formulas do. A quote before such a
// text makes spreadsheets show it as text.
type spreadsheet struct{ out *csv.Writer }

// newSpreadsheet begins a file with the names of its columns, if there are any.
func newSpreadsheet(w io.Writer, columns ...string) spreadsheet {
	s := spreadsheet{csv.NewWriter(w)}
	if len(columns) > 0 {
		s.row(columns...)
	}
	return s
}

// row writes one line. Clients choose many of the texts, such as ids and names of models.
func (s spreadsheet) row(cells ...string) {
	for i, cell := range cells {
		if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
			cells[i] = "'" + cell
		}
	}
	_ = s.out.Write(cells) // end returns the error
}

// end writes what is in memory and returns the first error.
func (s spreadsheet) end() error {
	s.out.Flush()
	return s.out.Error()
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
