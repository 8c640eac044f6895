package portal

import (
	"strconv"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

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
