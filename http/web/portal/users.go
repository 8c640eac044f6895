package portal

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/state"
)

const pathUsers = "/admin/users"

func (v *visit) users() { v.show(http.StatusOK, v.usersView()) }

// usersView lists accounts, the newest first.
func (v *visit) usersView() *pages.Users {
	search := v.query("q")
	var found []tokens.User
	for _, u := range slices.Backward(v.options.Registry.Users(0, 0)) {
		if matches(search, u.Username, u.Email) {
			found = append(found, u)
		}
	}
	shown, pager := part(v, pathUsers, found)
	view := &pages.Users{Desk: v.desk(), Query: search, Pager: pager}
	view.Entry.Form = pages.Form{Action: pathUsers, ID: newFormID(), Token: view.Token}
	for _, u := range shown {
		a := v.options.State.Account(u.Username)
		view.Users = append(view.Users, userLine(u, a.Available(), a.Held, a.Spent))
	}
	return view
}

// createUser makes an account and shows its password, once. It is never one of an
// administrator: a stolen session must not make a second one.
func (v *visit) createUser() {
	id := v.form.Get("id")
	if !v.sent.first(v.user.ID, id) {
		v.usersAgain(http.StatusConflict, problemSent)
		return
	}
	f := fields{form: v.form}
	password, err := tokens.NewPassword(v.options.Random)
	var u tokens.User
	if err == nil {
		u, err = v.options.Registry.CreateUser(v.r.Context(), tokens.NewUser{Username: f.text("username"), Email: f.text("email"), Password: password})
	}
	switch {
	case errors.Is(err, tokens.ErrExists):
		v.sent.again(v.user.ID, id)
		v.usersAgain(http.StatusConflict, "There is a user of this name.")
	case err != nil:
		v.sent.again(v.user.ID, id)
		v.usersAgain(v.problem(err))
	default:
		v.options.Logger.Info("user created by an administrator", "user", u.ID, "by", v.user.ID)
		v.show(http.StatusOK, pages.SecretPassword(v.desk(), u.Username, pathUser(u.ID), password))
	}
}

// usersAgain shows the form as it was sent, with what is wrong.
func (v *visit) usersAgain(status int, problem string) {
	view := v.usersView()
	view.Entry.Username, view.Entry.Email, view.Entry.Open = v.form.Get("username"), v.form.Get("email"), true
	view.Problem = problem
	v.show(status, view)
}

func userLine(u tokens.User, available, held, spent int64) pages.User {
	return pages.User{ID: u.ID, Username: u.Username, Email: u.Email, Admin: u.Admin, Active: u.Active(), Created: u.Created,
		Available: available, Held: held, Spent: spent}
}

// subject is the user that the path names.
func (v *visit) subject() (tokens.User, bool) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err == nil {
		var u tokens.User
		if u, err = v.options.Registry.User(id); err == nil {
			return u, true
		}
	}
	v.missing()
	return tokens.User{}, false
}

func pathUser(id int64) string { return pathUsers + "/" + strconv.FormatInt(id, 10) }

// oneUser shows an account with all that is its.
func (v *visit) oneUser() {
	if u, ok := v.subject(); ok {
		v.showUser(u, http.StatusOK, func(*pages.OneUser) {})
	}
}

// showPayment shows one account with a payment as it was typed, and what is wrong.
func (v *visit) showPayment(u tokens.User, status int, problem string) {
	v.showUser(u, status, func(view *pages.OneUser) {
		view.Problem, view.Amount, view.Reason = problem, v.form.Get("amount"), v.form.Get("reason")
	})
}

// createUserKey makes a key of a user and shows its secret, once.
func (v *visit) createUserKey() {
	u, ok := v.subject()
	if !ok {
		return
	}
	again := func(status int, problem string) {
		v.showUser(u, status, func(view *pages.OneUser) {
			view.Problem = problem
			v.retype(&view.Entry)
		})
	}
	if !u.Active() {
		again(http.StatusUnprocessableEntity, "The user is disabled.")
		return
	}
	if name, secret, ok := v.makeKey(tokens.NewKey{User: u.ID, Operator: true}, again); ok {
		v.options.Logger.Info("key created by an administrator", "user", u.ID, "by", v.user.ID)
		v.show(http.StatusOK, pages.SecretUserKey(v.desk(), u.Username, pathUser(u.ID), name, secret, v.example(secret)))
	}
}

// showUser shows one account as fill completes it.
func (v *visit) showUser(u tokens.User, status int, fill func(*pages.OneUser)) {
	b, err := v.options.Ledger.Balance(v.r.Context(), u.Username)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	usage, err := v.usage(pathUser(u.ID), state.UsageQuery{Account: u.Username}, false)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	view := &pages.OneUser{Desk: v.desk(), User: userLine(u, b.Available(), b.Held, b.Spent), FormID: newFormID(),
		Keys: v.keyLines(v.options.Registry.UserKeys(u.ID)), Usage: usage}
	view.Entry = keyEntry(v.scopesOf(u.ID), pages.Form{Action: pathUser(u.ID) + "/keys", ID: newFormID(), Token: view.Token})
	kept, _ := v.options.State.View().User(u.ID)
	view.Ceiling = ceilingEntry(&kept.Ceiling, pathUser(u.ID)+"/ceiling", view.Token, "all keys of the user")
	if g, ok := v.options.State.View().Group(kept.Group); ok {
		view.Group, view.GroupPath = g.Name, pathGroup(g.ID)
	}
	fill(view)
	v.show(status, view)
}

// maxReason bounds what is written into the ledger.
const maxReason = 200

// moveMoney credits an account, or takes back what is not spent.
func (v *visit) moveMoney() {
	u, ok := v.subject()
	if !ok {
		return
	}
	f := fields{form: v.form}
	amount, reason := f.dollars("amount", "Dollars"), f.text("reason")
	switch {
	case f.err != nil:
	case amount <= 0:
		f.fail("Dollars", "must be more than nothing")
	case reason == "" || len(reason) > maxReason:
		f.fail("Reason", "must have 1 to 200 bytes")
	}
	if f.err != nil {
		status, text := v.problem(f.err)
		v.showPayment(u, status, text)
		return
	}
	id := v.form.Get("id")
	if !isFormID(id) {
		v.show(http.StatusBadRequest, failureBroken)
		return
	}
	word := "credited"
	if v.form.Get("kind") == "adjust" {
		amount, word = -amount, "adjusted"
	}
	// Who did it belongs to why. The ledger keeps the form's id, so a form that is sent twice pays once.
	payment := ledger.Payment{Account: u.Username, Amount: amount, Reason: fmt.Sprintf("%s (by %s)", reason, v.user.Username), Once: id}
	again, err := v.options.Ledger.Pay(v.r.Context(), payment)
	switch {
	case again, errors.Is(err, state.ErrReused):
		v.showPayment(u, http.StatusConflict, problemSent)
	case err != nil:
		status, text := v.problem(err)
		v.showPayment(u, status, text)
	default:
		v.options.Logger.Info("balance changed by an administrator", "user", u.ID, "by", v.user.ID, "kind", word)
		v.done(pathUser(u.ID), word)
	}
}

// setStatus enables or disables an account.
func (v *visit) setStatus() {
	u, ok := v.subject()
	if !ok {
		return
	}
	status, err := strconv.Atoi(v.form.Get("status"))
	if err != nil {
		v.show(http.StatusBadRequest, failureBroken)
		return
	}
	if u.ID == v.user.ID {
		v.showPayment(u, http.StatusUnprocessableEntity, "You cannot disable yourself.")
		return
	}
	_, err = v.options.Registry.SetUserStatus(v.r.Context(), u.ID, status)
	word := "user_enabled"
	if status == tokens.StatusDisabled {
		word = "user_disabled"
	}
	if err == nil {
		v.options.Logger.Info("user changed by an administrator", "user", u.ID, "by", v.user.ID, "kind", word)
	}
	v.concluded(err, pathUser(u.ID), word)
}
