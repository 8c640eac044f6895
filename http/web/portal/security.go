package portal

import (
	"errors"
	"net/http"
	"slices"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

const pathSecurity = "/account/security"

func (rc *requestContext) security() { rc.show(http.StatusOK, rc.securityView()) }

func (rc *requestContext) securityView() *pages.Security {
	return &pages.Security{Desk: rc.desk(), Sessions: rc.sessionLines(rc.user.ID), SecondFactor: rc.user.SecondFactor,
		Demanded: rc.options.Demands(&rc.user), Recovery: rc.options.Registry.RecoveryLeft(rc.user.ID)}
}

// sessionLines lists the sessions of a user, the newest first.
func (rc *requestContext) sessionLines(user int64) []pages.Session {
	var lines []pages.Session
	for _, s := range slices.Backward(rc.options.Registry.Sessions(user)) {
		lines = append(lines, pages.Session{ID: s.ID, Browser: s.Browser, Address: s.Address, Created: s.Created,
			Seen: s.Seen, Expires: s.Expires, Current: s.ID == rc.visitor.Session.ID})
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

func (rc *requestContext) securityAgain(status int, problem string) {
	view := rc.securityView()
	view.Problem = problem
	rc.show(status, view)
}

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
