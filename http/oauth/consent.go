package oauth

import (
	"net/http"

	"stagedoor/http/browser"
	"stagedoor/http/pages"
)

func (s *Service) consentView(id string, req *request, v *browser.Visitor) *pages.Consent {
	return &pages.Consent{Form: s.form(pathConsent, purposeConsent, id, v), App: appView(req), Username: v.Session.User.Username}
}

// consentPage shows the page of a transaction that has just got its user.
func (s *Service) consentPage(w http.ResponseWriter, r *http.Request) {
	t, ok := s.open(w, r)
	switch {
	case !ok:
	case !t.visitor.SignedIn():
		s.fail(w, r, http.StatusBadRequest, failureStale)
	default:
		s.write(w, r, http.StatusOK, s.consentView(t.id, t.request, &t.visitor))
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
		s.deny(w, r, t)
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
	if _, ok := s.transactions.take(t.id); !ok {
		s.fail(w, r, http.StatusBadRequest, failureStale) // sent twice
		return
	}
	code, err := s.approve(r.Context(), t.request, &t.visitor, true)
	s.conclude(w, r, http.StatusSeeOther, t.request, code, err)
}

// switchAccount signs out and asks for other credentials.
func (s *Service) switchAccount(w http.ResponseWriter, r *http.Request, t step) {
	if _, ok := s.transactions.take(t.id); !ok {
		s.fail(w, r, http.StatusBadRequest, failureStale)
		return
	}
	v, err := s.options.Browser.SignOut(w, r)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	s.goOn(w, r, t.request, &v, pathSignIn)
}
