package portal

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

const pathSecurity = "/account/security"

// security shows how the user signs in, and the user's sessions.
func (rc *requestContext) security() { rc.show(http.StatusOK, rc.securityView()) }

// securityView returns the page of sessions, passkeys and the second factor.
func (rc *requestContext) securityView() *pages.Security {
	return &pages.Security{Viewer: rc.viewer(), Sessions: rc.sessionLines(rc.user.ID),
		SecondFactor: rc.user.SecondFactor,
		Identities:   rc.identityLines(rc.user.ID), Providers: rc.providerChoices(), NewPasskey: rc.newPasskey(),
		Demanded: rc.options.Demands(&rc.user), Recovery: rc.options.Registry.RecoveryLeft(rc.user.ID)}
}

// sessionLines lists the sessions of a user, the newest first.
func (rc *requestContext) sessionLines(user int64) []pages.Session {
	var lines []pages.Session
	for _, s := range slices.Backward(rc.options.Registry.Sessions(user)) {
		line := pages.Session{ID: s.ID, Browser: s.Browser, Address: s.Address, Created: s.Created,
			Seen: s.Seen, Expires: s.Expires, Current: s.ID == rc.visitor.Session.ID}
		if at, err := netip.ParseAddr(s.Address); err == nil && rc.options.Place != nil {
			line.Known = rc.options.Place(at)
		}
		lines = append(lines, line)
	}
	return lines
}

// changePassword ends all sessions and begins one for this browser.
func (rc *requestContext) changePassword() {
	fresh := rc.form.Get("new")
	if fresh != rc.form.Get("again") {
		rc.securityAgain(http.StatusUnprocessableEntity, "The two new passwords differ.")
		return
	}
	login := rc.ownLogin(rc.form.Get("old"))
	err := rc.options.Registry.ChangePassword(rc.r.Context(), login, fresh)
	if errors.Is(err, tokens.ErrLogin) {
		rc.securityAgain(http.StatusForbidden, "The current password is wrong.")
		return
	}
	if err != nil {
		rc.securityAgain(rc.problem(err))
		return
	}
	login.Password = fresh
	if _, err := rc.options.Browser.SignIn(rc.w, rc.r, &rc.visitor, login); err != nil {
		// The password is changed. A user who cannot be signed in at once, or needs a code for it, can sign in.
		rc.done(pathSignIn, "password_changed")
		return
	}
	rc.done(pathSecurity, "password_changed")
}

// confirmedSelf reports whether the form shows that the user sent it, and shows the page Security again if not. Changes
// for which a stolen session must not suffice use it.
func (rc *requestContext) confirmedSelf() bool {
	err := rc.confirm()
	switch {
	case err == nil:
		return true
	case errors.Is(err, tokens.ErrLogin):
		rc.securityAgain(http.StatusForbidden, "The password is wrong. Nothing was changed.")
	default:
		rc.securityAgain(rc.problem(err))
	}
	return false
}

// confirm checks the password in the form, or that a user without one has signed in just now, and the code in it if the
// user has a second factor. It returns ErrLogin, ErrStale, ErrCode and *Limited.
func (rc *requestContext) confirm() error {
	if err := rc.confirmFirst(); err != nil {
		return err
	}
	return rc.options.Registry.ConfirmCode(rc.r.Context(), rc.user.ID, rc.form.Get("code"))
}

// confirmFirst checks what confirm checks, except for the code.
func (rc *requestContext) confirmFirst() error {
	if !rc.user.HasPassword {
		return rc.options.Registry.ConfirmSession(&rc.visitor.Session)
	}
	return rc.options.Registry.Confirm(rc.r.Context(), rc.ownLogin(rc.form.Get("password")))
}

// providerChoices lists the providers at which the user may link a person.
func (rc *requestContext) providerChoices() []pages.Labelled {
	var all []pages.Labelled
	for _, p := range rc.options.Providers.Providers() {
		all = append(all, pages.Labelled{ID: p.Name, Label: p.Label})
	}
	return all
}

// securityAgain shows the page once more with a problem.
func (rc *requestContext) securityAgain(status int, problem string) {
	view := rc.securityView()
	view.Problem = problem
	rc.show(status, view)
}

// endSession ends one session of the person.
func (rc *requestContext) endSession() {
	rc.concluded(rc.options.Registry.EndSession(rc.r.Context(), rc.user.ID, rc.r.PathValue("id")), pathSecurity,
		"session_ended")
}

// endSessions signs out everywhere, here too.
func (rc *requestContext) endSessions() {
	if err := rc.options.Registry.EndSessions(rc.r.Context(), rc.user.ID); err != nil {
		rc.concluded(err, "", "")
		return
	}
	rc.signOut()
}

// deleteAccount erases the user who is signed in, as an administrator could. An administrator must lose that role
// first, so that the last one does not leave a gateway behind that no person administers.
func (rc *requestContext) deleteAccount() {
	switch {
	case rc.user.Admin:
		rc.securityAgain(http.StatusUnprocessableEntity, "An administrator cannot delete the own account. "+
			"Another one can take away your role first, or erase you.")
		return
	case rc.form.Get("username") != rc.user.Username:
		rc.securityAgain(http.StatusUnprocessableEntity, "Type your username to delete your account.")
		return
	}
	if !rc.confirmedSelf() {
		return
	}
	left, err := rc.options.Erase(rc.r.Context(), rc.user.ID)
	if err != nil {
		rc.securityAgain(rc.problem(err))
		return
	}
	message := "What was stored of you is erased, and your keys do not work any more."
	if left > 0 {
		rc.options.Logger.Warn("a user who deleted the own account has requests at work: erase the user again later",
			"user", rc.user.ID, "remaining", left)
		message += " Requests of yours that are still at work end first. An administrator erases what they leave."
	}
	if _, err := rc.options.Browser.SignOut(rc.w, rc.r); err != nil {
		rc.options.Logger.Warn("sign out after a deletion", "cause", err) // the session has ended with the account
	}
	rc.show(http.StatusOK, &pages.Failure{Title: "Your account is deleted", Message: message})
}
