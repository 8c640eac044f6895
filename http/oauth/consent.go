package oauth

import (
	"net/http"

	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// consentView returns the page that asks a signed-in user to let the app in.
func (s *Service) consentView(sealed string, req *authRequest, v *browser.Visitor) *pages.Consent {
	owner, _ := s.options.Registry.User(req.app.Owner) // users are never removed
	return &pages.Consent{Form: s.form(pathConsent, purposeConsent, sealed, v), App: appView(req),
		Username: v.Session.User.Username, Owner: owner.Username, Registered: req.app.Created,
		Users: s.options.Registry.AppUse(req.app.ID).Users}
}

// consentPage handles GET /api/oauth2/consent, to which the browser comes after signing in.
func (s *Service) consentPage(w http.ResponseWriter, r *http.Request) {
	t, ok := s.readStep(w, r)
	switch {
	case !ok:
	case !t.visitor.SignedIn():
		s.writePage(w, r, http.StatusBadRequest, failureStale)
	default:
		s.writePage(w, r, http.StatusOK, s.consentView(t.sealed, t.authRequest, &t.visitor))
	}
}

// consent handles the form of the consent page: allow, deny, or switch to another account.
func (s *Service) consent(w http.ResponseWriter, r *http.Request) {
	t, form, ok := s.readStepForm(w, r, purposeConsent)
	if !ok {
		return
	}
	switch form.get("decision") {
	case "allow":
		s.allow(w, r, t)
	case "deny":
		s.deny(w, t)
	case "switch":
		s.switchAccount(w, r, t)
	default:
		s.writePage(w, r, http.StatusBadRequest, failureMalformed)
	}
}

// allow records the consent and redirects to the app with a code.
func (s *Service) allow(w http.ResponseWriter, r *http.Request, t step) {
	if !t.visitor.SignedIn() {
		s.writePage(w, r, http.StatusForbidden, failureForeign)
		return
	}
	code, err := s.approve(r.Context(), t.authRequest, &t.visitor, true)
	s.finishRequest(w, r, http.StatusSeeOther, t.authRequest, code, err)
}

// switchAccount signs the user out and shows the sign-in page for the same request.
func (s *Service) switchAccount(w http.ResponseWriter, r *http.Request, t step) {
	v, err := s.options.Browser.SignOut(w, r)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	s.redirectToStep(w, r, t.authRequest, &v, pathSignIn)
}
