package portal

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// purposeSecondFactor is that of the sealed secret of a second factor that is being set up, and setUpLife its life.
const (
	purposeSecondFactor = "second factor"
	setUpLife           = 15 * time.Minute
)

// newSecondFactor shows a new secret. It travels in the form until a code shows that the user's device has it.
func (rc *requestContext) newSecondFactor() {
	if rc.user.SecondFactor {
		seeOther(rc.w, pathSecurity)
		return
	}
	secret, err := rc.options.Registry.NewSecret()
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.showSecondFactor(http.StatusOK, secret, "")
}

// showSecondFactor shows the page that sets up a second factor. The secret travels in a sealed field of the form, so
// that nothing is stored before the first code was right.
func (rc *requestContext) showSecondFactor(status int, secret []byte, problem string) {
	host := "Stagedoor"
	if u, err := url.Parse(rc.options.Address); err == nil {
		host = u.Hostname()
	}
	view, err := pages.NewSecondFactor(host, rc.user.Username, secret)
	if err == nil {
		view.Form = pages.Form{Action: browser.PathSecondFactor, Token: rc.viewer().Token}
		view.Required, view.Problem, view.HasPassword = rc.visitor.MustEnrol(), problem, rc.user.HasPassword
		view.ID, err = rc.options.Browser.Seal(purposeSecondFactor, &rc.visitor, setUpLife, secret)
	}
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.show(status, view)
}

// enableSecondFactor turns the second factor on and shows the recovery codes, once.
func (rc *requestContext) enableSecondFactor() {
	var secret []byte
	if rc.options.Browser.Unseal(purposeSecondFactor, &rc.visitor, rc.form.Get("id"), &secret) != nil {
		seeOther(rc.w, browser.PathSecondFactor) // with a fresh secret
		return
	}
	err := rc.confirmFirst()
	if errors.Is(err, tokens.ErrLogin) {
		rc.showSecondFactor(http.StatusForbidden, secret, "The password is wrong.")
		return
	}
	var codes []string
	if err == nil {
		codes, err = rc.options.Registry.EnableSecondFactor(rc.r.Context(), rc.user.ID, rc.visitor.Session.ID, secret,
			rc.form.Get("code"))
	}
	switch {
	case errors.Is(err, tokens.ErrExists):
		seeOther(rc.w, pathSecurity)
	case err != nil:
		status, text := rc.problem(err)
		rc.showSecondFactor(status, secret, text)
	default:
		rc.options.Logger.Info("second factor turned on", "user", rc.user.ID)
		rc.show(http.StatusOK, pages.SecretRecovery(rc.viewer(), codes))
	}
}

// ownLogin returns the login with which the signed-in user confirms a change. Its failures are counted for this
// session, so that wrong passwords that others type elsewhere do not keep the user from it.
func (rc *requestContext) ownLogin(password string) tokens.Login {
	return tokens.Login{Username: rc.user.Username, Password: password, From: auth.Remote(rc.r),
		Device: "session " + rc.visitor.Session.ID}
}

// renewRecovery shows new recovery codes, once.
func (rc *requestContext) renewRecovery() {
	codes, err := rc.options.Registry.RenewRecovery(rc.r.Context(), rc.user.ID, rc.form.Get("code"))
	if err != nil {
		rc.securityAgain(rc.problem(err))
		return
	}
	rc.show(http.StatusOK, pages.SecretRecovery(rc.viewer(), codes))
}

// disableSecondFactor turns the second factor off for a user who types a code of it. It refuses that to a user whose
// role needs one.
func (rc *requestContext) disableSecondFactor() {
	// A user whose role needs a second factor would be asked to set it up again at once, and could sign in without it
	// until then.
	if rc.options.Demands(&rc.user) {
		rc.securityAgain(http.StatusForbidden, "Your role needs a second factor.")
		return
	}
	if err := rc.options.Registry.DisableSecondFactor(rc.r.Context(), rc.user.ID, rc.form.Get("code")); err != nil {
		rc.securityAgain(rc.problem(err))
		return
	}
	rc.options.Logger.Info("second factor turned off", "user", rc.user.ID)
	rc.done(pathSecurity, "second_factor_off")
}

// resetSecondFactor lets a user who has lost the device sign in with the password alone.
func (rc *requestContext) resetSecondFactor(u tokens.User) {
	if !rc.confirmed(u) {
		return
	}
	_, err := rc.options.Registry.UpdateUser(rc.r.Context(), u.ID, tokens.UserChange{ResetSecondFactor: true})
	rc.changed(err, pathUser(u.ID), "second_factor_reset", "second factor reset by an administrator", "user", u.ID)
}
