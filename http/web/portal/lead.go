package portal

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// The pages of a lead. Their addresses name no group, because a lead leads the group that the lead is in. For all
// other users they do not exist.
const (
	pathLed            = pages.PathLed
	pathLedKeys        = pathLed + "/keys"
	pathLedSpend       = pathLed + "/spend"
	pathLedInvitations = pathLed + "/invitations"
)

// leadRoutes adds the pages and forms of a lead. All of the forms are limited.
func (p *Portal) leadRoutes(handle routeFunc) {
	page := func(path string, serve func(*requestContext, *identity.Group)) {
		handle("GET "+path, p.member(leading(serve)))
	}
	form := func(path string, serve func(*requestContext, *identity.Group)) {
		handle("POST "+path, p.memberForm(limited(leading(serve))))
	}
	page(pathLed, (*requestContext).led)
	page(pathLedKeys, (*requestContext).ledKeys)
	page(pathLedSpend, func(rc *requestContext, g *identity.Group) { rc.showSpend(rc.ledScope(g)) })
	page(pathLedSpend+".csv", func(rc *requestContext, g *identity.Group) { rc.exportSpending(rc.ledScope(g)) })
	form(pathLedInvitations, (*requestContext).inviteMembers)
	form(pathLedInvitations+"/{id}/withdraw", (*requestContext).withdrawMember)
	form(pathLed+"/members/{user}/remove", (*requestContext).removeLedMember)
	form(pathLedKeys, (*requestContext).createMemberKey)
	form(pathLedKeys+"/{id}/{action}", (*requestContext).changeMemberKey)
}

// leading serves a page or a form to the lead of a group. The commands that a form leads to check it again.
func leading(serve func(*requestContext, *identity.Group)) func(*requestContext) {
	return func(rc *requestContext) {
		g, ok := identity.LedBy(rc.options.State.View(), rc.user.ID)
		if !ok {
			rc.missing()
			return
		}
		serve(rc, &g)
	}
}

// visibleFrom returns the first day whose spending of a member is for the leads of the group. The day on
// which a user came into the group may have spending in another group, unless the account was made in this
// one. The ledger counts by day and not by group, so a day in two groups is left out as a whole. The zero
// time means that all is seen.
func visibleFrom(u *identity.User) time.Time {
	if u.Joined.IsZero() {
		return u.Joined
	}
	since := u.Joined.UTC().Truncate(day)
	if !u.Joined.Equal(u.Created) {
		since = since.Add(day)
	}
	return since
}

// ledScope returns the scope of the spending of the group that the user leads. Spending of users who have
// left the group is not in it.
func (rc *requestContext) ledScope(g *identity.Group) spendScope {
	s := spendScope{path: pathLedSpend, group: g, since: map[string]time.Time{}}
	for _, u := range identity.ListMembers(rc.options.State.View(), g.ID) {
		s.since[u.Username] = visibleFrom(&u)
	}
	return s
}

// groupBudget returns the budget of a group, or nil if it has none. perDay is what its members spend a day, from which
// the line works out how long the budget lasts.
func (rc *requestContext) groupBudget(g *identity.Group, perDay int64) *pages.BudgetLine {
	line := rc.budgetLine(g.Scope(), perDay)
	if line != nil {
		line.Name = "Budget of the group"
	}
	return line
}

// keyUse has the recent spending of a key.
type keyUse struct {
	month int64     // micro-dollars in this month
	last  time.Time // the last day of use
}

// recentUse returns what a user has spent in the last days and in this month, from a day on. It adds what
// each key has spent to keys unless that is nil. What cannot be read is missing. The ledger's usage is by
// day, so last is a day. Amounts are in micro-dollars.
func (rc *requestContext) recentUse(username string, since time.Time, keys map[string]keyUse) pages.RecentUse {
	now := rc.options.Now().UTC()
	month, _ := monthOf(now)
	first := now.Truncate(day).AddDate(0, 0, 1-pages.RecentDays)
	use := pages.RecentUse{Days: make([]int64, pages.RecentDays)}
	q := money.UsageQuery{Account: username, From: month, To: now}
	if first.Before(month) {
		q.From = first
	}
	if q.From = later(q.From, since); q.From.After(now) {
		return use
	}
	err := money.EachUsage(rc.r.Context(), rc.options.State, q, func(u *money.UsageRow) error {
		at, err := time.Parse(time.DateOnly, u.Day)
		if err != nil {
			return err
		}
		k := keys[u.Key]
		k.last = later(k.last, at)
		if n := int(at.Sub(first) / day); !at.Before(first) && n < pages.RecentDays {
			use.Days[n] += u.Amount
		}
		if !at.Before(month) {
			use.Month += u.Amount
			k.month += u.Amount
		}
		if keys != nil {
			keys[u.Key] = k
		}
		return nil
	})
	if err != nil && rc.r.Context().Err() == nil {
		rc.options.Logger.Warn("read the spending of a user", "cause", err)
	}
	return use
}

// liveKeys counts the keys of a user that were neither revoked nor are expired.
func (rc *requestContext) liveKeys(username string) (n int64) {
	now := rc.options.Now()
	for _, k := range identity.AccessOf(rc.options.State).KeysOf(username) {
		if s := k.State(now); s == "active" || s == "disabled" {
			n++
		}
	}
	return n
}

// requestsPath returns the address of the requests of the last 30 days that a condition selects, of the group or of all
// that the user sees. It is "" without a log.
func (rc *requestContext) requestsPath(condition, of string) string {
	if log, err := rc.openLog(); err != nil || log == nil {
		return ""
	}
	return pages.Address(pathRequestLog, map[string]string{"q": condition, "of": of, "range": "30d"})
}

// led shows the group to its lead.
func (rc *requestContext) led(g *identity.Group) { rc.show(http.StatusOK, rc.ledView(g)) }

// ledView shows a group to its lead.
func (rc *requestContext) ledView(g *identity.Group) *pages.Led {
	view := rc.options.State.View()
	page := &pages.Led{Viewer: rc.viewer(), Group: groupLine(view, g)}
	page.Invite.Mails = rc.canMail()
	page.Invite.Form = pages.Form{Action: pathLedInvitations, ID: newFormID(), Token: page.Token}
	for _, l := range slices.Backward(rc.options.Registry.GroupInvitations(g.ID)) {
		page.Invitations = append(page.Invitations, pages.Invitation{Path: pathLedInvitations + "/" + l.ID,
			For: cmp.Or(l.Email, l.Username), By: l.By, Created: l.Created, Expires: l.Expires})
	}
	var all int64
	members := identity.ListMembers(view, g.ID)
	shown, pager := part(rc, pathLed, members)
	page.Pager = pager
	for i := range shown {
		u := &shown[i]
		line := pages.LedMember{ID: u.ID, Username: u.Username, Active: u.Active(), Lead: u.Leads != 0,
			Mine: rc.options.Registry.MayLead(rc.user.ID, u.ID), Keys: rc.liveKeys(u.Username),
			Use: rc.recentUse(u.Username, visibleFrom(u), nil)}
		line.Use.Requests = rc.requestsPath(pages.Condition("user", u.Username), "group")
		all += line.Use.Month
		page.Members = append(page.Members, line)
	}
	perDay := int64(0)
	if len(shown) == len(members) { // the rate of a part of the members would say nothing
		perDay = all / int64(rc.options.Now().UTC().Day())
	}
	page.Budget = rc.groupBudget(g, perDay)
	return page
}

// inviteMembers makes the invitations of a lead into the group.
func (rc *requestContext) inviteMembers(g *identity.Group) {
	f := fields{form: rc.form}
	rc.sendInvitations(&f, tokens.Invitation{Group: g.ID, Lead: rc.user.ID}, func(status int, problem string) {
		view := rc.ledView(g)
		view.Invite.People, view.Invite.Open, view.Problem = rc.form.Get("people"), true, problem
		rc.show(status, view)
	})
}

// withdrawMember ends an invitation into the group. The registry finds out whether it is one of this lead's group.
func (rc *requestContext) withdrawMember(*identity.Group) {
	_, err := rc.options.Registry.WithdrawGroupInvitation(rc.r.Context(), rc.user.ID, rc.r.PathValue("id"))
	rc.concluded(err, pathLed, "invitation_withdrawn")
}

// removeLedMember removes a member from the group.
func (rc *requestContext) removeLedMember(g *identity.Group) {
	id, _ := strconv.ParseInt(rc.r.PathValue("user"), 10, 64)
	err := rc.options.Registry.RemoveLedMember(rc.r.Context(), rc.user.ID, id)
	rc.changed(err, pathLed, "user_left", "user removed from a group by a lead", "group", g.ID, "user", id)
}

// ledKeys shows the keys of the members.
func (rc *requestContext) ledKeys(g *identity.Group) { rc.show(http.StatusOK, rc.ledKeysView(g)) }

// ledKey is a key of a member before it is drawn.
type ledKey struct {
	key   identity.Key
	owner *identity.User
}

// ledKeysView lists the keys of the members, by member and the newest first, without those that were revoked.
// Secrets and their beginnings are not shown: a lead sees that a key exists, and what it costs, and cannot
// use it. The spending of a member is read once, however many keys of the member are on the page.
func (rc *requestContext) ledKeysView(g *identity.Group) *pages.LedKeys {
	view := rc.options.State.View()
	page := &pages.LedKeys{Viewer: rc.viewer(), Group: g.Name, Forbidden: g.Ceiling.NoKeys}
	page.Entry = keyEntry(identity.ScopesOf(view, &identity.User{Group: g.ID}, registry.Scopes()),
		pages.Form{Action: pathLedKeys, ID: newFormID(), Token: page.Token})
	members := identity.ListMembers(view, g.ID)
	var all []ledKey
	for i := range members {
		u := &members[i]
		if rc.options.Registry.MayLead(rc.user.ID, u.ID) && u.Active() {
			page.Entry.Members = append(page.Entry.Members, pages.GroupChoice{ID: u.ID, Name: u.Username})
		}
		for _, k := range slices.Backward(identity.AccessOf(rc.options.State).KeysOf(u.Username)) {
			if k.Revoked.IsZero() {
				all = append(all, ledKey{k, u})
			}
		}
	}
	page.Entry.Open = rc.query("new") != ""
	shown, pager := part(rc, pathLedKeys, all)
	page.Pager = pager
	uses, read := map[string]keyUse{}, map[int64]bool{}
	line := func(k *ledKey) pages.LedKey {
		if !read[k.owner.ID] {
			read[k.owner.ID] = true
			rc.recentUse(k.owner.Username, visibleFrom(k.owner), uses)
		}
		l := pages.LedKey{Key: rc.keyLines([]identity.Key{k.key})[0], Month: uses[k.key.ID].month,
			LastDay: uses[k.key.ID].last, Mine: rc.options.Registry.MayLead(rc.user.ID, k.owner.ID),
			MayEnable: k.key.MayEnable(identity.PartyLead)}
		l.User, l.Prefix = k.owner.Username, ""
		l.Key.Use.Path = rc.requestsPath(pages.Condition("key", k.key.ID), "group")
		return l
	}
	for i := range shown {
		page.Keys = append(page.Keys, line(&shown[i]))
	}
	if edit := rc.query("edit"); edit != "" && !page.Forbidden {
		if at := slices.IndexFunc(all, func(k ledKey) bool { return k.key.ID == edit }); at >= 0 {
			if l := line(&all[at]); l.Mine {
				page.Edit = &l
			}
		}
	}
	return page
}

// ledKeysAgain returns a function that shows the page of the keys with what was typed into the form for a new one and
// what is wrong with it.
func (rc *requestContext) ledKeysAgain(g *identity.Group) func(status int, problem string) {
	return func(status int, problem string) {
		view := rc.ledKeysView(g)
		fillKey(&view.Entry, rc.form)
		for i := range view.Entry.Members {
			m := &view.Entry.Members[i]
			m.Chosen = strconv.FormatInt(m.ID, 10) == rc.form.Get("member")
		}
		view.Problem = problem
		rc.show(status, view)
	}
}

// createMemberKey makes a key of a member. Its secret is drawn by the member and not shown here.
func (rc *requestContext) createMemberKey(g *identity.Group) {
	member, _ := strconv.ParseInt(rc.form.Get("member"), 10, 64)
	// The registry checks it again in the command that makes the key. Here it decides that a member of another group is
	// answered like one who does not exist.
	if !rc.options.Registry.MayLead(rc.user.ID, member) {
		rc.missing()
		return
	}
	n := tokens.NewKey{User: member, Lead: rc.user.ID}
	if _, _, ok := rc.makeKey(n, rc.ledKeysAgain(g)); ok {
		rc.options.Logger.Info("key created by a lead", "user", member, "group", g.ID, "by", rc.user.ID)
		rc.done(pathLedKeys, "key_made")
	}
}

// changeMemberKey enables, disables or bounds a key of a member, as the last segment of the path says: enable, disable
// or budget. The registry checks in the same command that the user leads the owner of the key.
func (rc *requestContext) changeMemberKey(g *identity.Group) {
	id, ctx, users := rc.r.PathValue("id"), rc.r.Context(), rc.options.Registry
	var word string
	var err error
	switch action := rc.r.PathValue("action"); action {
	case "enable", "disable":
		word, err = "key_"+action+"d", users.EnableMemberKey(ctx, rc.user.ID, id, action == "enable")
	case "budget":
		f := fields{form: rc.form}
		amount, window := f.dollars("budget", "Budget"), budget.Window(f.text("window"))
		word, err = "key_changed", f.err
		if err == nil {
			err = users.SetMemberKeyBudget(ctx, rc.user.ID, id, tokens.BudgetChange{Amount: &amount, Window: &window})
		}
	default:
		rc.missing()
		return
	}
	rc.changed(err, pathLedKeys, word, "key changed by a lead", "key", id, "group", g.ID, "kind", word)
}
