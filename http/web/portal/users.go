package portal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

const pathUsers = "/admin/users"

// users shows the users, see usersView.
func (rc *requestContext) users() { rc.show(http.StatusOK, rc.usersView()) }

// usersView lists accounts, the newest first unless the address asks for another order. Filters that make no
// sense are left out. All accounts are read and filtered in memory, where the state has them anyway. Only
// those on the page get figures of money.
func (rc *requestContext) usersView() *pages.Users {
	view := &pages.Users{Viewer: rc.viewer(), Query: rc.query("q"), Cards: rc.groupCards()}
	group, _ := strconv.ParseInt(rc.query("group"), 10, 64)
	if state := rc.query("state"); state == "active" || state == "disabled" || state == "admin" {
		view.State = state
	}
	view.Groups = rc.groupChoices(group)
	if !slices.ContainsFunc(view.Groups, func(g pages.GroupChoice) bool { return g.Chosen }) {
		group = 0
	}
	var found []tokens.User
	all := rc.options.Registry.Users(0, 0)
	view.All = len(all)
	for _, u := range slices.Backward(all) {
		if matches(view.Query, u.Username, u.Email) && inState(&u, view.State) &&
			(group == 0 || rc.groupOf(u.ID) == group) {
			found = append(found, u)
		}
	}
	view.Sort = rc.sortUsers(found, rc.query("sort"))
	shown, pager := part(rc, pathUsers, found)
	view.Pager = pager
	view.Entry.Form = pages.Form{Action: pathUsers, ID: newFormID(), Token: view.Token}
	view.Invite = pages.InviteEntry{Mails: rc.canMail(), Groups: rc.groupChoices(0),
		Form: pages.Form{Action: pathInvitations, ID: newFormID(), Token: view.Token}}
	for _, l := range slices.Backward(rc.options.Registry.Invitations()) {
		g, _ := identity.FindGroup(rc.options.State.View(), l.Group)
		view.Invitations = append(view.Invitations, pages.Invitation{Path: pathInvitations + "/" + l.ID,
			For: cmp.Or(l.Email, l.Username), Group: g.Name, Admin: l.Admin, By: cmp.Or(l.By, "the operator"),
			Created: l.Created, Expires: l.Expires})
	}
	for _, u := range shown {
		a := money.FindAccount(rc.options.State.View(), u.Username)
		line := userLine(u, a.Available(), a.Held, a.Spent)
		kept, _ := identity.FindUser(rc.options.State.View(), u.ID)
		g, _ := identity.FindGroup(rc.options.State.View(), kept.Group)
		line.Group, line.Lead, line.Keys = g.Name, u.Leads, rc.liveKeys(u.Username)
		line.Use = rc.recentUse(u.Username, time.Time{}, nil)
		line.Use.Month = rc.monthOf(u.Username)
		line.Use.Requests = rc.requestsPath(pages.Condition("user", u.Username), "")
		view.Users = append(view.Users, line)
	}
	return view
}

// maxGroupCards bounds the groups above the list of users. The page of groups has all of them.
const maxGroupCards = 8

// groupCards returns the groups with the largest part of their budgets spent, then those that spent most this month.
func (rc *requestContext) groupCards() (cards []pages.GroupCard) {
	view := rc.options.State.View()
	for _, g := range identity.ListGroups(view) {
		spent := money.SpentBy(view, g.Scope())
		cards = append(cards, pages.NewGroupCard(g.Name, pathGroup(g.ID), int64(len(identity.ListMembers(view, g.ID))),
			spent.In(budget.WindowMonth, view.Now()), rc.budgetLine(g.Scope(), 0)))
	}
	slices.SortStableFunc(cards, func(a, b pages.GroupCard) int {
		return cmp.Or(cmp.Compare(b.Percent(), a.Percent()), cmp.Compare(b.Spent, a.Spent))
	})
	return cards[:min(len(cards), maxGroupCards)]
}

// inState reports whether a user is of a state of the filter.
func inState(u *tokens.User, state string) bool {
	switch state {
	case "active":
		return u.Active()
	case "disabled":
		return !u.Active()
	case "admin":
		return u.Admin
	}
	return true
}

// groupOf returns the group of a user, or 0.
func (rc *requestContext) groupOf(user int64) int64 {
	u, _ := identity.FindUser(rc.options.State.View(), user)
	return u.Group
}

// monthOf returns what a user has spent in this month.
func (rc *requestContext) monthOf(username string) int64 {
	view := rc.options.State.View()
	spent := money.SpentBy(view, budget.Scope{Kind: budget.UserScope, ID: username})
	return spent.In(budget.WindowMonth, view.Now())
}

// sortUsers sorts users in an order of the address and returns its name, or "" if it is unknown and the order stays.
func (rc *requestContext) sortUsers(users []tokens.User, order string) string {
	switch order {
	case "name":
		slices.SortStableFunc(users, func(a, b tokens.User) int {
			return strings.Compare(strings.ToLower(a.Username), strings.ToLower(b.Username))
		})
	case "seen":
		slices.SortStableFunc(users, func(a, b tokens.User) int { return b.Seen.Compare(a.Seen) })
	case "month":
		spent := make(map[int64]int64, len(users)) // each sum reads all keys of the user
		for i := range users {
			spent[users[i].ID] = rc.monthOf(users[i].Username)
		}
		slices.SortStableFunc(users, func(a, b tokens.User) int { return cmp.Compare(spent[b.ID], spent[a.ID]) })
	default:
		return ""
	}
	return order
}

// createUser makes an account and shows its password, once. It is never one of an
// administrator: a stolen session must not make a second one.
func (rc *requestContext) createUser() {
	f := fields{form: rc.form}
	var password string
	var u tokens.User
	if rc.once(rc.usersAgain, func() (err error) {
		if password, err = tokens.NewPassword(rc.options.Random); err == nil {
			u, err = rc.options.Registry.CreateUser(rc.r.Context(),
				tokens.NewUser{Username: f.text("username"), Email: f.text("email"), Password: password})
		}
		return err
	}) {
		rc.options.Logger.Info("user created by an administrator", "user", u.ID, "by", rc.user.ID)
		rc.show(http.StatusOK, pages.SecretPassword(rc.viewer(), u.Username, pathUser(u.ID), password))
	}
}

// usersAgain shows the form as it was sent, with what is wrong.
func (rc *requestContext) usersAgain(status int, problem string) {
	view := rc.usersView()
	view.Entry.Username, view.Entry.Email, view.Entry.Open = rc.form.Get("username"), rc.form.Get("email"), true
	view.Problem = problem
	rc.show(status, view)
}

// userLine returns a user as lists show it.
func userLine(u tokens.User, available, held, spent int64) pages.User {
	return pages.User{ID: u.ID, Username: u.Username, Email: u.Email, Admin: u.Admin, Active: u.Active(),
		Erased: !u.Erased.IsZero(), Seen: u.Seen, SecondFactor: u.SecondFactor, Created: u.Created,
		Available: available, Held: held, Spent: spent}
}

// ofUser returns a handler that serve handles with the user whom the path names.
func ofUser(serve func(*requestContext, tokens.User)) func(*requestContext) {
	return named(func(rc *requestContext, id int64) (tokens.User, bool) {
		u, err := rc.options.Registry.User(id)
		return u, err == nil
	}, serve)
}

// pathUser returns the path of a user's page.
func pathUser(id int64) string { return pathUsers + "/" + strconv.FormatInt(id, 10) }

// oneUser shows an account with all that is its.
func (rc *requestContext) oneUser(u tokens.User) {
	rc.showUser(u, http.StatusOK, func(*pages.OneUser) {})
}

// showPayment shows one account with a payment as it was typed, and what is wrong.
func (rc *requestContext) showPayment(u tokens.User, status int, problem string) {
	rc.showUser(u, status, func(view *pages.OneUser) {
		view.Problem, view.Amount, view.Reason = problem, rc.form.Get("amount"), rc.form.Get("reason")
	})
}

// createUserKey makes a key of a user and shows its secret, once.
func (rc *requestContext) createUserKey(u tokens.User) {
	again := func(status int, problem string) {
		rc.showUser(u, status, func(view *pages.OneUser) {
			view.Problem = problem
			fillKey(&view.Entry, rc.form)
		})
	}
	// The registry makes no keys of disabled users either. The page says it in words that name the user, whatever is
	// wrong with the rest of the form.
	if !u.Active() {
		again(http.StatusUnprocessableEntity, "The user is disabled.")
		return
	}
	if name, secret, ok := rc.makeKey(tokens.NewKey{User: u.ID, Operator: true}, again); ok {
		rc.options.Logger.Info("key created by an administrator", "user", u.ID, "by", rc.user.ID)
		rc.show(http.StatusOK,
			pages.SecretUserKey(rc.viewer(), u.Username, pathUser(u.ID), name, secret, rc.clients(secret)))
	}
}

// showUser shows one account as fill completes it. fill is called last, and may replace what was typed and
// add a problem.
func (rc *requestContext) showUser(u tokens.User, status int, fill func(*pages.OneUser)) {
	b, err := rc.options.Ledger.Balance(rc.r.Context(), u.Username)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	usage, err := rc.usageOf(u.Username, pathSpend)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	view := &pages.OneUser{Viewer: rc.viewer(), User: userLine(u, b.Available(), b.Held, b.Spent), FormID: newFormID(),
		Keys: rc.keyLines(rc.options.Registry.UserKeys(u.ID)), Recordings: rc.recordingKept(),
		Usage: usage}
	view.Entry = keyEntry(rc.scopesOf(u.ID),
		pages.Form{Action: pathUser(u.ID) + "/keys", ID: newFormID(), Token: view.Token})
	kept, _ := identity.FindUser(rc.options.State.View(), u.ID)
	view.Ceiling = ceilingEntry(&kept.Ceiling, pathUser(u.ID)+"/ceiling", view.Token, "all keys of the user")
	if g, ok := identity.FindGroup(rc.options.State.View(), kept.Group); ok {
		view.Group, view.GroupPath = g.Name, pathGroup(g.ID)
	}
	view.Groups, view.Self, view.WantsCode = rc.groupChoices(kept.Group), u.ID == rc.user.ID, rc.user.SecondFactor
	if rc.canMail() {
		view.MailTo = u.Email
	}
	view.Sessions, view.Identities = rc.sessionLines(u.ID), rc.identityLines(u.ID)
	fill(view)
	rc.show(status, view)
}

// maxReason bounds what is written into the ledger.
const maxReason = 200

// moveMoney credits an account, or takes back what is not spent.
//
// An amount is entered as dollars above zero, and kind says in which direction it goes. A payment cannot be
// undone by the page; taking back is limited to what the account has left.
func (rc *requestContext) moveMoney(u tokens.User) {
	f := fields{form: rc.form}
	amount, reason := f.dollars("amount", "Dollars"), f.text("reason")
	switch {
	case f.err != nil:
	case amount <= 0:
		f.fail("Dollars", "must be more than nothing")
	case reason == "" || len(reason) > maxReason:
		f.fail("Reason", "must have 1 to 200 bytes")
	}
	if f.err != nil {
		status, text := rc.problem(f.err)
		rc.showPayment(u, status, text)
		return
	}
	id := rc.form.Get("id")
	// The ledger recognises a payment that is sent twice by this id, so a form without one is refused and not booked
	// with an id that every such form would share.
	if !isFormID(id) {
		rc.show(http.StatusBadRequest, failureBroken)
		return
	}
	word := "credited"
	if rc.form.Get("kind") == "adjust" {
		amount, word = -amount, "adjusted"
	}
	// The reason in the ledger names the administrator, because the ledger is kept longer than the audit log. The
	// ledger also keeps the form's id, so a form that is sent twice pays once.
	again, err := rc.options.Ledger.Pay(rc.r.Context(), ledger.Payment{Account: u.Username, Amount: amount,
		Reason: fmt.Sprintf("%s (by %s)", reason, rc.user.Username), Once: id})
	switch {
	case again, errors.Is(err, money.ErrReused):
		rc.showPayment(u, http.StatusConflict, problemSent)
	case err != nil:
		status, text := rc.problem(err)
		rc.showPayment(u, status, text)
	default:
		rc.options.Logger.Info("balance changed by an administrator", "user", u.ID, "by", rc.user.ID, "kind", word)
		rc.done(pathUser(u.ID), word)
	}
}

// setStatus enables or disables an account. Administrators cannot disable their own.
func (rc *requestContext) setStatus(u tokens.User) {
	status, err := strconv.Atoi(rc.form.Get("status"))
	if err != nil {
		rc.show(http.StatusBadRequest, failureBroken)
		return
	}
	// Only another administrator could enable the account again, and there may be none.
	if u.ID == rc.user.ID {
		rc.showPayment(u, http.StatusUnprocessableEntity, "You cannot disable yourself.")
		return
	}
	_, err = rc.options.Registry.SetUserStatus(rc.r.Context(), u.ID, status)
	word := "user_enabled"
	if status == tokens.StatusDisabled {
		word = "user_disabled"
	}
	rc.changed(err, pathUser(u.ID), word, "user changed by an administrator", "user", u.ID, "kind", word)
}
