package portal

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

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
