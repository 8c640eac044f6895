package portal

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/state/identity"
)

const pathInvitations = "/admin/invitations"

// maxInvited is the number of people whom one form can invite.
const maxInvited = 50

// groupChoices lists the groups for a form in which current is chosen.
func (rc *requestContext) groupChoices(current int64) []pages.GroupChoice {
	var all []pages.GroupChoice
	for _, g := range identity.ListGroups(rc.options.State.View()) {
		all = append(all, pages.GroupChoice{ID: g.ID, Name: g.Name, Chosen: g.ID == current})
	}
	return all
}

// chosenGroup reads the id of a group of groupChoices. 0 stands for no group.
func (f *fields) chosenGroup() int64 { return f.whole("group", "Group") }

// invite makes the invitations of an administrator.
func (rc *requestContext) invite() {
	f := fields{form: rc.form}
	rc.sendInvitations(&f, tokens.Invitation{Group: f.chosenGroup()}, rc.inviteAgain)
}

// sendInvitations makes a link like i for each person that a form names, and mails or shows the links, once. The form
// counts as sent before the links are made. Two of them that arrive at the same time therefore invite once, and one
// that fails may be sent again.
func (rc *requestContext) sendInvitations(f *fields, i tokens.Invitation, again func(status int, problem string)) {
	people, id := f.list("people"), rc.form.Get("id")
	if len(people) == 0 || len(people) > maxInvited {
		f.fail("People", "must be 1 to 50 e-mail addresses or names")
	}
	switch {
	case f.err != nil:
		again(rc.problem(f.err))
		return
	case !rc.sent.markSent(rc.user.ID, id):
		again(http.StatusConflict, problemSent)
		return
	}
	i.By = rc.user.Username
	made, ok := rc.makeInvitations(people, i, again)
	if !ok {
		rc.sent.allowAgain(rc.user.ID, id)
		return
	}
	rc.options.Logger.Info("users invited", "count", len(made), "group", i.Group, "by", rc.user.ID)
	rc.show(http.StatusOK, pages.SecretInvitations(rc.viewer(), i.Lead != 0, rc.deliver(made)))
}

// makeInvitations makes an invitation like i for each of the people, or none of them: the first error withdraws those
// that were made, calls again with the person and the problem, and returns false. The name of a person with an e-mail
// address is the part before the @, as long as it is free. A lead does not learn whether it is.
func (rc *requestContext) makeInvitations(people []string, i tokens.Invitation,
	again func(status int, problem string)) (made []letter, ok bool) {
	for _, person := range people {
		i.Username, i.Email = person, ""
		if name, _, ok := strings.Cut(person, "@"); ok {
			i.Email, i.Username = person, name
			// The person chooses another name where this one is taken. A lead does not hear of it.
			if _, err := rc.options.Registry.UserByName(name); err == nil && i.Lead == 0 {
				i.Username = ""
			}
		}
		secret, l, err := rc.options.Registry.Invite(rc.r.Context(), i)
		if err != nil {
			for _, m := range made { // all or none
				_, _ = rc.options.Registry.WithdrawInvitation(rc.r.Context(), m.link.ID)
			}
			status, text := rc.problem(err)
			again(status, person+": "+text)
			return nil, false
		}
		link := rc.options.Browser.Link(secret)
		one := letter{link: pages.Labelled{ID: l.ID, Label: person, Secret: link}}
		if i.Email != "" {
			one.mail = rc.invitationMail(i.Email, link, l.Expires)
		}
		made = append(made, one)
	}
	return made, true
}

// inviteAgain shows the form as it was sent, with what is wrong.
func (rc *requestContext) inviteAgain(status int, problem string) {
	view := rc.usersView()
	group, _ := strconv.ParseInt(rc.form.Get("group"), 10, 64)
	view.Invite.People, view.Invite.Groups, view.Invite.Open = rc.form.Get("people"), rc.groupChoices(group), true
	view.Problem = problem
	rc.show(status, view)
}

// withdrawInvitation ends an invitation, whose link does not work any more.
func (rc *requestContext) withdrawInvitation() {
	l, err := rc.options.Registry.WithdrawInvitation(rc.r.Context(), rc.r.PathValue("id"))
	rc.changed(err, pathUsers, "invitation_withdrawn", "invitation withdrawn by an administrator", "invitation", l.ID)
}

// userChanged logs a change of a user, and goes back to the user's page.
func (rc *requestContext) userChanged(u tokens.User, err error, word string) {
	rc.changed(err, pathUser(u.ID), word, "user changed by an administrator", "user", u.ID, "kind", word)
}

// moveUser changes the group of a user.
func (rc *requestContext) moveUser(u tokens.User) {
	f := fields{form: rc.form}
	group, err := f.chosenGroup(), f.err
	if err == nil {
		_, err = rc.options.Registry.MoveUser(rc.r.Context(), u.ID, group)
	}
	rc.userChanged(u, err, "user_moved")
}

// endUserSession ends one session of a user.
func (rc *requestContext) endUserSession(u tokens.User) {
	err := rc.options.Registry.EndSession(rc.r.Context(), u.ID, rc.r.PathValue("session"))
	rc.userChanged(u, err, "session_ended")
}

// endUserSessions ends all sessions of a user.
func (rc *requestContext) endUserSessions(u tokens.User) {
	rc.userChanged(u, rc.options.Registry.EndSessions(rc.r.Context(), u.ID), "sessions_ended")
}

// makeResetLink mails or shows a link with which another user chooses a new password, once. The link is worth as much
// as the user's password, so that a stolen session must not suffice for it.
func (rc *requestContext) makeResetLink(u tokens.User) {
	if !rc.confirmed(u) {
		return
	}
	secret, l, err := rc.options.Registry.ResetLink(rc.r.Context(), u.ID, rc.user.Username)
	switch {
	case errors.Is(err, tokens.ErrUserDisabled):
		rc.userAgain(u, http.StatusUnprocessableEntity, "The user is disabled.")
		return
	case err != nil:
		rc.concluded(err, "", "")
		return
	}
	rc.options.Logger.Info("link made by an administrator", "user", u.ID, "by", rc.user.ID)
	link := rc.options.Browser.Link(secret)
	made := letter{link: pages.Labelled{Label: u.Username, Secret: link}}
	if u.Email != "" {
		made.mail = rc.resetMail(u.Email, u.Username, link, l.Expires)
	}
	rc.show(http.StatusOK, pages.SecretLink(rc.viewer(), u.Username, pathUser(u.ID), rc.deliver([]letter{made})))
}

// userAgain shows the page of a user once more with a problem.
func (rc *requestContext) userAgain(u tokens.User, status int, problem string) {
	rc.showUser(u, status, func(view *pages.OneUser) { view.Problem = problem })
}

// confirmed reports whether the form has the password of the administrator who sent it, and a code if the administrator
// has a second factor. It shows the page of u again if not. Changes for which a stolen session must not suffice use it.
func (rc *requestContext) confirmed(u tokens.User) bool {
	err := rc.confirm()
	switch {
	case err == nil:
		return true
	case errors.Is(err, tokens.ErrLogin):
		rc.userAgain(u, http.StatusForbidden, "Your own password is wrong. Nothing was changed.")
	default:
		status, text := rc.problem(err)
		rc.userAgain(u, status, text)
	}
	return false
}

// ofAnother returns a handler as ofUser does, which refuses administrators who act on themselves. It is for changes by
// which the last administrator could lock everyone out.
func ofAnother(what string, serve func(*requestContext, tokens.User)) func(*requestContext) {
	return ofUser(func(rc *requestContext, u tokens.User) {
		if u.ID == rc.user.ID {
			rc.userAgain(u, http.StatusUnprocessableEntity, "You cannot "+what+" yourself.")
			return
		}
		serve(rc, u)
	})
}

// changeRole makes a user an administrator, or takes that away. It needs the password of the administrator who sent the
// form, because a stolen session must not make further administrators.
func (rc *requestContext) changeRole(u tokens.User) {
	if !rc.confirmed(u) {
		return
	}
	_, err := rc.options.Registry.SetAdmin(rc.r.Context(), u.ID, rc.form.Get("role") == "admin")
	rc.changed(err, pathUser(u.ID), "role_changed", "role changed by an administrator", "user", u.ID)
}

// eraseUser erases a user for good. The form must have the user's name, so that it is not sent by mistake, and the
// password of the administrator. If requests or jobs of the user are still at work, the page says that the user must be
// erased once more.
func (rc *requestContext) eraseUser(u tokens.User) {
	if rc.form.Get("username") != u.Username {
		rc.userAgain(u, http.StatusUnprocessableEntity, "Type the username of the user whom you want to erase.")
		return
	}
	if !rc.confirmed(u) {
		return
	}
	left, err := rc.options.Erase(rc.r.Context(), u.ID)
	word := "user_erased"
	if left > 0 {
		word = "user_erased_partly"
	}
	rc.changed(err, pathUser(u.ID), word, "user erased by an administrator", "user", u.ID)
}
