package portal

import (
	"cmp"
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// purposeLink is that of the token of the form at browser.PathLink.
const purposeLink = "portal one-time link "

var (
	failureLink = &pages.Failure{Title: "This link does not work any more",
		Message: "It was used already, was withdrawn, or is too old. Ask for a new one. " +
			"The gateway prints one for the first administrator when it starts."}
	failureElsewhere = &pages.Failure{Title: "Open this link on the gateway's own computer",
		Message: "The link of the first administrator works there only. " +
			"From elsewhere, use the command: stagedoor users create NAME --admin"}
)

// linkOf returns the form of the one-time link with this secret. It returns nil if the link cannot be used, and has
// answered the request with an error page then.
func (p *Portal) linkOf(w http.ResponseWriter, r *http.Request, secret string) *pages.ChoosePassword {
	link, u, err := p.options.Registry.CheckLink(secret)
	switch {
	case err != nil:
		p.write(w, r, http.StatusForbidden, failureLink)
		return nil
	case link.First && !auth.FromThisMachine(r):
		p.write(w, r, http.StatusForbidden, failureElsewhere)
		return nil
	}
	view := &pages.ChoosePassword{Form: pages.Form{Action: browser.PathLink, ID: secret}, First: link.First,
		Invited: link.Invites(), Username: cmp.Or(u.Username, link.Username)}
	if link.First {
		view.Username = "admin"
	}
	return view
}

// linkPage shows the form of a one-time link. It changes nothing, because programs that look at links before people do
// must not use them up.
func (p *Portal) linkPage(w http.ResponseWriter, r *http.Request) {
	link := r.URL.Query().Get("link")
	view := p.linkOf(w, r, link)
	if view == nil {
		return
	}
	v, err := p.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	// The purpose contains the secret, so that a form for one link cannot be sent with another one.
	view.Token = p.options.Browser.FormToken(&v, purposeLink+link)
	p.write(w, r, http.StatusOK, view)
}

// useLink handles the form of a one-time link. It makes the user if the link is an invitation or that of the first
// administrator, sets the password and signs in. The registry uses up the link.
func (p *Portal) useLink(w http.ResponseWriter, r *http.Request) {
	form, v, ok := p.readVisitorForm(w, r)
	if !ok {
		return
	}
	secret := form.Get("id")
	view := p.linkOf(w, r, secret)
	if view == nil {
		return
	}
	if p.options.Browser.CheckForm(r, &v, purposeLink+secret, form.Get("token")) != nil {
		p.write(w, r, http.StatusForbidden, failureForeign)
		return
	}
	view.Token = p.options.Browser.FormToken(&v, purposeLink+secret)
	if view.First || view.Invited {
		view.Username = form.Get("username")
	}
	login := tokens.Login{Username: view.Username, Password: form.Get("new"), From: auth.Remote(r)}
	if login.Password != form.Get("again") {
		view.Problem = "The two passwords differ."
		p.write(w, r, http.StatusUnprocessableEntity, view)
		return
	}
	u, err := p.options.Registry.UseLink(r.Context(), secret, login.Username, login.Password)
	switch {
	case errors.Is(err, tokens.ErrUsed):
		p.write(w, r, http.StatusForbidden, failureLink)
		return
	case errors.Is(err, tokens.ErrExists):
		view.Problem = "The username is taken."
		p.write(w, r, http.StatusUnprocessableEntity, view)
		return
	case err != nil:
		var status int
		status, view.Problem = (&requestContext{Portal: p, w: w, r: r}).problem(err)
		p.write(w, r, status, view)
		return
	}
	if v.Session.ID != "" {
		// The link has ended the session of this browser. What follows must not be bound to it.
		if v, err = p.options.Browser.SignOut(w, r); err != nil {
			p.busy(w, r, err)
			return
		}
	}
	next := pathAccount
	if u.Admin {
		next = pathAdmin
	}
	_, err = p.options.Browser.SignIn(w, r, &v, login)
	if code := (*browser.CodeRequired)(nil); errors.As(err, &code) {
		p.writeSignInProblem(w, r, &v, next, u.Username, "", err)
		return
	}
	if err != nil {
		next = pathSignIn // the password is set, so the user can sign in later
	}
	seeOther(w, next)
}
