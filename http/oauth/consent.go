package oauth

import (
	"net/http"

	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

func (s *Service) consentView(sealed string, req *request, v *browser.Visitor) *pages.Consent {
	return &pages.Consent{Form: s.form(pathConsent, purposeConsent, sealed, v), App: appView(req), Username: v.Session.User.Username}
}

// consentPage shows the page of a request whose user has just signed in.
func (s *Service) consentPage(w http.ResponseWriter, r *http.Request) {
	t, ok := s.open(w, r)
	switch {
	case !ok:
	case !t.visitor.SignedIn():
		s.fail(w, r, http.StatusBadRequest, failureStale)
	default:
		s.write(w, r, http.StatusOK, s.consentView(t.sealed, t.request, &t.visitor))
	}
}

// consent takes the consent form.
func (s *Service) consent(w http.ResponseWriter, r *http.Request) {
	t, form, ok := s.submit(w, r, purposeConsent)
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
		s.fail(w, r, http.StatusBadRequest, failureBroken)
	}
}

func (s *Service) allow(w http.ResponseWriter, r *http.Request, t step) {
	if !t.visitor.SignedIn() {
		s.fail(w, r, http.StatusForbidden, failureForeign)
		return
	}
	code, err := s.approve(r.Context(), t.request, &t.visitor, true)
	s.conclude(w, r, http.StatusSeeOther, t.request, code, err)
}

// switchAccount signs out and asks for other credentials.
func (s *Service) switchAccount(w http.ResponseWriter, r *http.Request, t step) {
	v, err := s.options.Browser.SignOut(w, r)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	s.goOn(w, r, t.request, &v, pathSignIn)
}
