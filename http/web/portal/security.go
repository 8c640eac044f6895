package portal

import (
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/pages"
)

const pathSecurity = "/account/security"

func (v *visit) security() { v.show(http.StatusOK, v.securityView()) }

func (v *visit) securityView() *pages.Security {
	view := &pages.Security{Desk: v.desk()}
	all := v.options.Registry.Sessions(v.user.ID)
	for i := len(all) - 1; i >= 0; i-- {
		s := &all[i]
		view.Sessions = append(view.Sessions, pages.Session{ID: s.ID, Created: s.Created, Seen: s.Seen, Expires: s.Expires, Current: s.ID == v.visitor.Session.ID})
	}
	return view
}

// changePassword ends all sessions and begins one for this browser.
func (v *visit) changePassword() {
	fresh := v.form.Get("new")
	if fresh != v.form.Get("again") {
		v.securityAgain(http.StatusUnprocessableEntity, "The two new passwords differ.")
		return
	}
	login := tokens.Login{Username: v.user.Username, Password: v.form.Get("old"), From: auth.Remote(v.r),
		Device: "session " + v.visitor.Session.ID} // so that strangers cannot keep the user from changing it
	err := v.options.Registry.ChangePassword(v.r.Context(), login, fresh)
	if errors.Is(err, tokens.ErrLogin) {
		v.securityAgain(http.StatusForbidden, "The current password is wrong.")
		return
	}
	if err != nil {
		v.securityAgain(v.problem(err))
		return
	}
	login.Password = fresh
	if _, err := v.options.Browser.SignIn(v.w, v.r, login); err != nil {
		// It is changed; whoever cannot be signed in at once can sign in.
		v.done(pathSignIn, "password_changed")
		return
	}
	v.done(pathSecurity, "password_changed")
}

func (v *visit) securityAgain(status int, problem string) {
	view := v.securityView()
	view.Problem = problem
	v.show(status, view)
}

func (v *visit) endSession() {
	v.concluded(v.options.Registry.EndSession(v.r.Context(), v.user.ID, v.r.PathValue("id")), pathSecurity, "session_ended")
}

// endSessions signs out everywhere, here too.
func (v *visit) endSessions() {
	if err := v.options.Registry.EndSessions(v.r.Context(), v.user.ID); err != nil {
		v.concluded(err, "", "")
		return
	}
	v.signOut()
}
