package portal

import (
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/state/identity"
)

// purposeSignIn is that of the sign-in form's token.
const purposeSignIn = "portal sign-in"

// signInPage asks who is there, or goes on if that is known.
func (p *Portal) signInPage(w http.ResponseWriter, r *http.Request) {
	v, err := p.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	query := r.URL.Query()
	next := browser.LocalPath(query.Get("next"), pathAccount)
	switch {
	case v.SignedIn():
		seeOther(w, next)
		return
	case v.MustEnrol():
		seeOther(w, browser.PathSecondFactor)
		return
	}
	view := p.signInView(&v, next)
	if query.Get("done") == "signed_out" {
		view.Notice = "You are signed out."
	}
	p.write(w, r, http.StatusOK, view)
}

// signInView returns the sign-in page. A gateway without any account says how the first one is made.
func (p *Portal) signInView(v *browser.Visitor, next string) *pages.SignIn {
	view := &pages.SignIn{
		Form: pages.Form{Action: pathSignIn, Token: p.options.Browser.FormToken(v, purposeSignIn)},
		Next: next, Host: hostOf(p.options.Address),
		Offers: p.Offers(v, next), Passkey: p.Passkey(v, next),
	}
	if len(identity.ListUsers(p.options.State.View(), 0, 1)) == 0 {
		view.Notice = "There is no account yet. The one-time link that the gateway printed when it started makes one, " +
			"and so does the command stagedoor users create NAME --admin."
	}
	return view
}

// signIn handles the form of the sign-in page: a username and a password, or the code of a second factor after them.
func (p *Portal) signIn(w http.ResponseWriter, r *http.Request) {
	form, v, next, ok := p.readSignIn(w, r)
	if !ok {
		return
	}
	username, halfway := form.Get("username"), form.Get("halfway")
	var err error
	if halfway != "" {
		_, err = p.options.Browser.FinishSignIn(w, r, &v, halfway, form.Get("code"))
	} else {
		login := tokens.Login{Username: username, Password: form.Get("password")}
		_, err = p.options.Browser.SignIn(w, r, &v, login)
	}
	if err != nil {
		p.writeSignInProblem(w, r, &v, next, username, halfway, err)
		return
	}
	seeOther(w, next)
}

// writeSignInProblem asks for a code, for which err may be the reason, or shows the form again with what is wrong.
func (p *Portal) writeSignInProblem(w http.ResponseWriter, r *http.Request, v *browser.Visitor,
	next, username, halfway string, err error) {
	view := p.signInView(v, next)
	view.Username = username
	if code := (*browser.CodeRequired)(nil); errors.As(err, &code) {
		view.Halfway = code.Sealed
		p.write(w, r, http.StatusOK, view)
		return
	}
	status, text := p.refusedLogin(w, r, err)
	if errors.Is(err, tokens.ErrCode) || errors.Is(err, tokens.ErrLimited) {
		view.Halfway = halfway
	}
	view.Problem = text
	p.write(w, r, status, view)
}

// signInAnew shows a fresh form to a browser whose form was of another visit: it
// had been open for too long, or the browser keeps no cookies.
func (p *Portal) signInAnew(w http.ResponseWriter, r *http.Request, next string) {
	v, err := p.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	if v.SignedIn() {
		p.write(w, r, http.StatusForbidden, failureForeign)
		return
	}
	view := p.signInView(&v, next)
	view.Problem = "The form was open for too long, or your browser accepts no cookies. Please try again."
	p.write(w, r, http.StatusForbidden, view)
}

// refusedLogin puts the refusal of a login into words.
func (p *Portal) refusedLogin(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	switch {
	case errors.Is(err, tokens.ErrLogin):
		return http.StatusForbidden, "Wrong username or password."
	case errors.Is(err, tokens.ErrUserDisabled):
		return http.StatusForbidden, "This account is disabled."
	case errors.Is(err, browser.ErrExpired), errors.Is(err, browser.ErrForged):
		return http.StatusForbidden, "Typing the code took too long. Please sign in again."
	}
	return (&requestContext{Portal: p, w: w, r: r}).problem(err)
}

// signOutPage shows the form with which the user signs out. It is for a person who typed the address, because signing
// out takes a form.
func (rc *requestContext) signOutPage() { rc.show(http.StatusOK, &pages.SignOut{Viewer: rc.viewer()}) }

// signOut ends the session of this browser. A user who signed in at a provider may sign out there, too. That is not
// done unasked, because the session at the provider may serve other sites.
func (rc *requestContext) signOut() {
	if _, err := rc.options.Browser.SignOut(rc.w, rc.r); err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	if issuer := rc.visitor.Session.Issuer; issuer != "" {
		address, label, ok := rc.options.Providers.SignOut(rc.r.Context(), auth.Remote(rc.r).String(), issuer,
			pathSignIn+"?done=signed_out")
		if ok {
			rc.show(http.StatusOK, &pages.Leave{Label: label, Address: address, SignedOut: true})
			return
		}
	}
	rc.done(pathSignIn, "signed_out")
}
