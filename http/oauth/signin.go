package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/envelope"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// Purposes of form tokens. Each is joined with the sealed request or account of the form, so a
// token of one form is useless in another.
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
	failureNoLogo    = &pages.Failure{Title: "No logo", Message: "There is no app with a logo here."}
	failureMalformed = &pages.Failure{Title: "The form is broken",
		Message: "What your browser sent cannot be read. Go back and try again."}
	failureUnavailable = &pages.Failure{Title: "Not available",
		Message: "The service cannot do this at the moment. Try again in a minute."}
)

// signInView returns the sign-in page for a request.
func (s *Service) signInView(sealed string, req *authRequest, v *browser.Visitor) *pages.SignIn {
	return &pages.SignIn{Form: s.form(pathSignIn, purposeSignIn, sealed, v), App: new(appView(req)),
		Consents: req.auto == AutoLogin, Offers: s.options.Offers(v, req.address()),
		Passkey: s.options.Passkey(v, req.address())}
}

// address returns the path with which the app began the request. A user who signs in at a provider comes back there and
// is asked for the consent, because a provider may sign people in without asking them anything. The path has the
// redirect address of the request, which need not be the first one of the app.
func (q *authRequest) address() string {
	query := url.Values{"client_id": {q.app.ClientID}, "redirect_uri": {q.redirect}, "response_type": {"code"},
		"scope": {strings.Join(q.scopes, " ")}, "state": {q.state}}
	if q.challenge != "" {
		query.Set("code_challenge", q.challenge)
		query.Set("code_challenge_method", "S256")
	}
	if q.auto != AutoNever {
		query.Set("auto_authorize", "true")
	}
	return pathAuthorize + "?" + query.Encode()
}

// form returns the hidden fields of a form for the browser of v.
func (s *Service) form(action, purpose, id string, v *browser.Visitor) pages.Form {
	return pages.Form{Action: action, ID: id, Token: s.options.Browser.FormToken(v, purpose+id)}
}

// appView returns what pages show about the app of a request.
func appView(req *authRequest) pages.App {
	host, loopback := redirectHost(req.redirect)
	return pages.App{Name: req.app.Name, Description: req.app.Description, Host: host, Loopback: loopback,
		Scopes: req.scopes, Logo: pages.LogoPath(&req.app)}
}

// step is an authorization request that a browser has brought back to one of its pages.
type step struct {
	sealed  string
	visitor browser.Visitor
	*authRequest
}

// readStep reads the step from the address of a GET request. If that fails, it writes a page and
// returns false.
func (s *Service) readStep(w http.ResponseWriter, r *http.Request) (step, bool) {
	query, err := parseQuery(r)
	if err != nil || query.repeated() != "" {
		s.writePage(w, r, http.StatusBadRequest, failureMalformed)
		return step{}, false
	}
	return s.resumeStep(w, r, query.get("request"))
}

// resumeStep unseals a step for the browser of r. If that fails, it writes a page and returns
// false.
func (s *Service) resumeStep(w http.ResponseWriter, r *http.Request, sealed string) (step, bool) {
	v, err := s.options.Browser.Visitor(r)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return step{}, false
	}
	req, status, failure := s.unseal(sealed, &v)
	if failure != nil {
		s.writePage(w, r, status, failure)
		return step{}, false
	}
	return step{sealed, v, req}, true
}

// readStepForm reads the step and the fields of a submitted form and checks that the form belongs
// to this browser. If that fails, it writes a page and returns false.
func (s *Service) readStepForm(w http.ResponseWriter, r *http.Request, purpose string) (step, params, bool) {
	form, err := readForm(w, r)
	if err != nil || form.repeated() != "" {
		status := http.StatusBadRequest
		if err != nil {
			status = protocolErrorOf(err).status
		}
		s.writePage(w, r, status, failureMalformed)
		return step{}, form, false
	}
	t, ok := s.resumeStep(w, r, form.get("id"))
	if !ok {
		return t, form, false
	}
	if s.options.Browser.CheckForm(r, &t.visitor, purpose+t.sealed, form.get("token")) != nil {
		s.writePage(w, r, http.StatusForbidden, failureForeign)
		return t, form, false
	}
	return t, form, true
}

// signInPage handles GET /api/oauth2/sign-in, to which the browser comes after switching accounts.
func (s *Service) signInPage(w http.ResponseWriter, r *http.Request) {
	t, ok := s.readStep(w, r)
	switch {
	case !ok:
	case t.visitor.SignedIn():
		s.writePage(w, r, http.StatusBadRequest, failureStale)
	default:
		s.writePage(w, r, http.StatusOK, s.signInView(t.sealed, t.authRequest, &t.visitor))
	}
}

// signIn handles the sign-in form.
func (s *Service) signIn(w http.ResponseWriter, r *http.Request) {
	t, form, ok := s.readStepForm(w, r, purposeSignIn)
	if !ok {
		return
	}
	if form.get("decision") == "deny" {
		s.deny(w, t)
		return
	}
	var v browser.Visitor
	var err error
	username, halfway := form.get("username"), form.get("halfway")
	if halfway != "" {
		v, err = s.options.Browser.FinishSignIn(w, r, &t.visitor, halfway, form.get("code"))
	} else {
		login := tokens.Login{Username: username, Password: form.get("password")}
		v, err = s.options.Browser.SignIn(w, r, &t.visitor, login)
	}
	switch {
	case err != nil:
		s.writeSignInProblem(w, r, t, username, halfway, err)
		return
	case v.MustEnrol(): // the user goes back to the app afterwards and starts again
		pages.NoStore(w.Header())
		w.Header().Set("Location", browser.PathSecondFactor)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	s.continueSignedIn(w, r, t.authRequest, &v)
}

// writeSignInProblem shows the form again with the reason why sign-in failed.
func (s *Service) writeSignInProblem(w http.ResponseWriter, r *http.Request, t step, username, halfway string,
	err error) {
	view := s.signInView(t.sealed, t.authRequest, &t.visitor)
	view.Username = username
	status := http.StatusForbidden
	if errors.Is(err, tokens.ErrCode) || errors.Is(err, tokens.ErrLimited) {
		view.Halfway = halfway
	}
	code := (*browser.CodeRequired)(nil)
	switch {
	case errors.As(err, &code):
		view.Halfway, status = code.Sealed, http.StatusOK
	case errors.Is(err, tokens.ErrCode):
		view.Problem = "The code is wrong or was used already."
	case errors.Is(err, browser.ErrExpired), errors.Is(err, browser.ErrForged):
		view.Problem = "Typing the code took too long. Please sign in again."
	case errors.Is(err, tokens.ErrLogin):
		view.Problem = "Wrong username or password."
	case errors.Is(err, tokens.ErrUserDisabled):
		view.Problem = "This account is disabled."
	case errors.Is(err, tokens.ErrLimited):
		view.Problem = "Too many attempts. Wait a little and try again."
		if limited := (*tokens.Limited)(nil); errors.As(err, &limited) && limited.Busy != nil {
			view.Problem = "Too many passwords are being checked. Wait a little and try again."
		}
		f := protocolErrorOf(err)
		status = f.status
		envelope.SetRetryAfter(w.Header(), f.retryAfter)
	default:
		s.options.Logger.Error("sign in", "cause", err)
		view.Problem = failureUnavailable.Message
		status = http.StatusServiceUnavailable
		envelope.SetRetryAfter(w.Header(), retryUnavailable)
	}
	s.writePage(w, r, status, view)
}

// continueSignedIn continues a request after its user has typed the password. Depending on
// auto_authorize, it redirects to the app at once or to the consent page.
func (s *Service) continueSignedIn(w http.ResponseWriter, r *http.Request, req *authRequest, v *browser.Visitor) {
	if req.auto != AutoNever {
		code, err := s.approve(r.Context(), req, v, req.auto == AutoLogin)
		if !errors.Is(err, tokens.ErrConsentRequired) {
			s.finishRequest(w, r, http.StatusSeeOther, req, code, err)
			return
		}
	}
	s.redirectToStep(w, r, req, v, pathConsent)
}

// redirectToStep redirects a browser whose session has just changed to path, with the request
// sealed again for the new session.
func (s *Service) redirectToStep(w http.ResponseWriter, r *http.Request, req *authRequest, v *browser.Visitor,
	path string) {
	sealed, err := s.seal(req, v)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	pages.NoStore(w.Header())
	w.Header().Set("Location", path+"?"+url.Values{"request": {sealed}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// deny reports to the app that the user refused. It changes no state, so a form that is sent twice
// does no harm.
func (s *Service) deny(w http.ResponseWriter, t step) {
	s.redirectToApp(w, http.StatusSeeOther, t.authRequest, "error", errDenied.code, "error_description",
		errDenied.description)
}

// writeUnavailable shows a 503 page for a failure that the user did not cause, and logs the cause.
func (s *Service) writeUnavailable(w http.ResponseWriter, r *http.Request, cause error) {
	s.options.Logger.Error("authorization service", "path", r.URL.Path, "cause", cause)
	envelope.SetRetryAfter(w.Header(), retryUnavailable)
	s.writePage(w, r, http.StatusServiceUnavailable, failureUnavailable)
}

// writePage renders a page. A failure to render is logged.
func (s *Service) writePage(w http.ResponseWriter, r *http.Request, status int, v pages.View) {
	if err := pages.Write(w, r, status, v); err != nil && r.Context().Err() == nil {
		s.options.Logger.Error("draw a page", "path", r.URL.Path, "cause", err)
	}
}
