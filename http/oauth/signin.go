package oauth

import (
	"errors"
	"net/http"
	"net/url"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// Purposes of form tokens; each goes with what the form is about.
const (
	purposeSignIn  = "sign-in "
	purposeConsent = "consent "
	purposeTopUp   = "topup "
)

var (
	failureStale = &pages.Failure{Title: "Please start again",
		Message: "This page was used already, or was open for too long. Go back to the app and start again."}
	failureForeign = &pages.Failure{Title: "Please start again",
		Message: "This form does not belong to this browser's session. Go back to the app and start again."}
	failureChanged = &pages.Failure{Title: "The app has changed",
		Message: "The app was switched off or has moved since you came here. Go back to it and start again."}
	failureBroken = &pages.Failure{Title: "The form is broken", Message: "What your browser sent cannot be read. Go back and try again."}
	failureBusy   = &pages.Failure{Title: "Not available", Message: "The service cannot do this at the moment. Try again in a minute."}
)

func (s *Service) signInView(sealed string, req *request, v *browser.Visitor) *pages.SignIn {
	app := appView(req)
	return &pages.SignIn{Form: s.form(pathSignIn, purposeSignIn, sealed, v), App: &app, Consents: req.auto == AutoLogin}
}

func (s *Service) form(action, purpose, id string, v *browser.Visitor) pages.Form {
	return pages.Form{Action: action, ID: id, Token: s.options.Browser.FormToken(v, purpose+id)}
}

func appView(req *request) pages.App {
	host, loopback := hostOf(req.app.RedirectURI)
	return pages.App{Name: req.app.Name, Description: req.app.Description, Host: host, Loopback: loopback, Scopes: req.scopes}
}

// step is a request that a browser has come back with.
type step struct {
	sealed  string
	visitor browser.Visitor
	*request
}

// open reads the request a page is asked for.
func (s *Service) open(w http.ResponseWriter, r *http.Request) (step, bool) {
	query, err := parseQuery(r)
	if err != nil || query.repeated() {
		s.fail(w, r, http.StatusBadRequest, failureBroken)
		return step{}, false
	}
	return s.resume(w, r, query.get("request"))
}

// resume reads a sealed request of the browser that r comes from.
func (s *Service) resume(w http.ResponseWriter, r *http.Request, sealed string) (step, bool) {
	v, err := s.options.Browser.Visitor(r)
	if err != nil {
		s.busy(w, r, err)
		return step{}, false
	}
	req, status, failure := s.unseal(sealed, &v)
	if failure != nil {
		s.fail(w, r, status, failure)
		return step{}, false
	}
	return step{sealed, v, req}, true
}

// submit reads a form that continues a request.
func (s *Service) submit(w http.ResponseWriter, r *http.Request, purpose string) (step, params, bool) {
	form, err := readForm(w, r)
	if err != nil || form.repeated() {
		status := http.StatusBadRequest
		if err != nil {
			status = refusalOf(err).status
		}
		s.fail(w, r, status, failureBroken)
		return step{}, form, false
	}
	t, ok := s.resume(w, r, form.get("id"))
	if !ok {
		return t, form, false
	}
	if s.options.Browser.CheckForm(r, &t.visitor, purpose+t.sealed, form.get("token")) != nil {
		s.fail(w, r, http.StatusForbidden, failureForeign)
		return t, form, false
	}
	return t, form, true
}

// signInPage shows the page of a request whose user wants another account.
func (s *Service) signInPage(w http.ResponseWriter, r *http.Request) {
	t, ok := s.open(w, r)
	switch {
	case !ok:
	case t.visitor.SignedIn():
		s.fail(w, r, http.StatusBadRequest, failureStale)
	default:
		s.write(w, r, http.StatusOK, s.signInView(t.sealed, t.request, &t.visitor))
	}
}

// signIn takes the sign-in form.
func (s *Service) signIn(w http.ResponseWriter, r *http.Request) {
	t, form, ok := s.submit(w, r, purposeSignIn)
	if !ok {
		return
	}
	if form.get("decision") == "deny" {
		s.deny(w, t)
		return
	}
	login := tokens.Login{Username: form.get("username"), Password: form.get("password"), From: auth.Remote(r)}
	v, err := s.options.Browser.SignIn(w, r, login)
	if err != nil {
		s.signInAgain(w, r, t, login.Username, err)
		return
	}
	s.signedIn(w, r, t.request, &v)
}

// signInAgain shows the form once more, with what was wrong.
func (s *Service) signInAgain(w http.ResponseWriter, r *http.Request, t step, username string, err error) {
	view := s.signInView(t.sealed, t.request, &t.visitor)
	view.Username = username
	status := http.StatusForbidden
	switch {
	case errors.Is(err, tokens.ErrLogin):
		view.Problem = "Wrong username or password."
	case errors.Is(err, tokens.ErrUserDisabled):
		view.Problem = "This account is disabled."
	case errors.Is(err, tokens.ErrLimited):
		view.Problem = "Too many attempts. Wait a little and try again."
		if limited := (*tokens.Limited)(nil); errors.As(err, &limited) && limited.Busy != nil {
			view.Problem = "Too many passwords are being checked. Wait a little and try again."
		}
		f := refusalOf(err)
		status = f.status
		setRetry(w.Header(), f.retry)
	default:
		s.options.Logger.Error("sign in", "cause", err)
		view.Problem = failureBusy.Message
		status = http.StatusServiceUnavailable
		setRetry(w.Header(), retryUnavailable)
	}
	s.write(w, r, status, view)
}

// signedIn goes on with a request whose user has just typed the password.
func (s *Service) signedIn(w http.ResponseWriter, r *http.Request, req *request, v *browser.Visitor) {
	if req.auto != AutoNever {
		code, err := s.approve(r.Context(), req, v, req.auto == AutoLogin)
		if !errors.Is(err, tokens.ErrConsentRequired) {
			s.conclude(w, r, http.StatusSeeOther, req, code, err)
			return
		}
	}
	s.goOn(w, r, req, v, pathConsent)
}

// goOn sends a browser that has just changed its session to the next page, with the
// request sealed for that session.
func (s *Service) goOn(w http.ResponseWriter, r *http.Request, req *request, v *browser.Visitor, path string) {
	sealed, err := s.seal(req, v)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	pages.NoStore(w.Header())
	w.Header().Set("Location", path+"?"+url.Values{"request": {sealed}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// deny tells the app that the user said no. It changes nothing here, so a form that is
// sent twice does no harm.
func (s *Service) deny(w http.ResponseWriter, t step) {
	s.send(w, http.StatusSeeOther, t.request, "error", errDenied.word, "error_description", errDenied.text)
}

// fail shows a page that says what is wrong.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, status int, f *pages.Failure) {
	s.write(w, r, status, f)
}

// busy is fail for what is nobody's mistake.
func (s *Service) busy(w http.ResponseWriter, r *http.Request, cause error) {
	s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", cause)
	setRetry(w.Header(), retryUnavailable)
	s.write(w, r, http.StatusServiceUnavailable, failureBusy)
}

func (s *Service) write(w http.ResponseWriter, r *http.Request, status int, v pages.View) {
	if err := pages.Write(w, status, v); err != nil && r.Context().Err() == nil {
		s.options.Logger.Error("draw a page", "path", r.URL.Path, "cause", err)
	}
}
