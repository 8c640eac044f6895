package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/money"
)

// Purposes for which data is sealed. Data sealed for one purpose cannot be used for another.
const (
	purposeLink    = "top-up link"
	purposeAccount = "top-up account"
)

// link is the sealed content of a top-up link. The link works once. It is bound to no browser, because an app
// requests it and passes it to its user. ID is remembered when the link is used, until Expires.
type link struct {
	Grant   string    `json:"g"`
	ID      string    `json:"i"`
	Expires time.Time `json:"e"`
}

// topUp handles GET /api/oauth2/topup and returns the address of the top-up page to an app. The page shows
// the balance, so the access token needs that scope. The address is the operator's own (TopUpURL), or else
// contains a link that works once instead of the access token, because addresses are logged. The steps after
// the link are those of a browser: topUpPage uses it up and puts the account into a cookie.
func (s *Service) topUp(w http.ResponseWriter, r *http.Request) {
	a, err := s.access(r)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if !a.Allows(tokens.ScopeBalance) {
		s.writeError(w, r, &protocolError{status: http.StatusForbidden, code: "insufficient_scope",
			description: "the access token lacks the scope balance",
			challenge:   `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeBalance + `"`})
		return
	}
	address := s.options.TopUpURL()
	if address == "" {
		if address, err = s.newLink(a.Grant); err != nil {
			s.writeError(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, struct {
		URL string `json:"topup_url"`
	}{address})
}

// newLink returns the address of the top-up page with a fresh link for a grant.
func (s *Service) newLink(grant string) (string, error) {
	id, err := s.options.Browser.NewID()
	if err != nil {
		return "", err
	}
	sealed, err := s.options.Browser.Seal(purposeLink, nil, linkLife,
		link{Grant: grant, ID: id, Expires: s.options.Now().Add(linkLife)})
	if err != nil {
		return "", err
	}
	return s.options.Issuer + pathTopUpPage + "?" + url.Values{"ticket": {sealed}}.Encode(), nil
}

// topUpAccount names the account that a browser may top up. The browser carries it in a sealed
// cookie, which does not sign the browser in. Notice is shown on the page once.
type topUpAccount struct {
	User   int64  `json:"u"`
	Notice string `json:"n,omitempty"`
}

const topUpCookie = "topup"

var failureLink = &pages.Failure{Title: "This link has expired",
	Message: "A top-up link works once and for ten minutes. Ask the app for a new one."}

// topUpPage handles GET /topup: it accepts a link, starts a top-up of the user's own account, or
// shows the page of the account chosen before.
func (s *Service) topUpPage(w http.ResponseWriter, r *http.Request) {
	pages.NoStore(w.Header())
	query, err := parseQuery(r)
	if err != nil || query.repeated() != "" {
		s.writePage(w, r, http.StatusBadRequest, failureMalformed)
		return
	}
	if sealed := query.get("ticket"); sealed != "" {
		s.useTopUpLink(w, r, sealed)
		return
	}
	if query.get("account") == "own" {
		s.openOwnAccount(w, r)
		return
	}
	if t, ok := s.readTopUpRequest(w, r); ok {
		s.writePage(w, r, http.StatusOK, s.topUpView(t))
	}
}

// useTopUpLink uses up a link and redirects to the page of its account. A prefetch or a HEAD
// request does not use the link up, because the user has not opened it yet.
func (s *Service) useTopUpLink(w http.ResponseWriter, r *http.Request, sealed string) {
	if prefetching(r) || r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var l link
	if s.options.Browser.Unseal(purposeLink, nil, sealed, &l) != nil {
		s.writePage(w, r, http.StatusBadRequest, failureLink)
		return
	}
	v, err := s.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	u, err := s.options.Registry.UseTopUpLink(r.Context(), l.Grant, tokens.Once{ID: l.ID, Expires: l.Expires})
	switch {
	case errors.Is(err, tokens.ErrUsed), errors.Is(err, tokens.ErrNotFound):
		s.writePage(w, r, http.StatusBadRequest, failureLink)
	case err != nil:
		s.writeUnavailable(w, r, err)
	default:
		s.redirectToTopUp(w, r, &v, topUpAccount{User: u.ID})
	}
}

// openOwnAccount starts a top-up of the signed-in user's own account, after sign-in if needed.
func (s *Service) openOwnAccount(w http.ResponseWriter, r *http.Request) {
	v, err := s.options.Browser.Visitor(r)
	switch {
	case err != nil:
		s.writeUnavailable(w, r, err)
	case !v.SignedIn():
		pages.NoStore(w.Header())
		w.Header().Set("Location", "/signin?"+url.Values{"next": {pages.OwnTopUp}}.Encode())
		w.WriteHeader(http.StatusSeeOther)
	default:
		s.redirectToTopUp(w, r, &v, topUpAccount{User: v.Session.User.ID})
	}
}

// redirectToTopUp stores the account in the browser's cookie and redirects to the top-up page.
func (s *Service) redirectToTopUp(w http.ResponseWriter, r *http.Request, v *browser.Visitor, a topUpAccount) {
	sealed, err := s.options.Browser.Seal(purposeAccount, v, topUpLife, a)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	http.SetCookie(w, s.options.Browser.Cookie(topUpCookie, sealed, topUpLife))
	pages.NoStore(w.Header())
	w.Header().Set("Location", pathTopUpPage)
	w.WriteHeader(http.StatusSeeOther)
}

// topUpRequest is a request from a browser that may top up account.
type topUpRequest struct {
	visitor browser.Visitor
	account tokens.User
	notice  string
}

// readTopUpRequest returns the account that the browser of r may top up. If there is none, it
// writes a page and returns false.
func (s *Service) readTopUpRequest(w http.ResponseWriter, r *http.Request) (*topUpRequest, bool) {
	v, err := s.options.Browser.Visitor(r)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return nil, false
	}
	if c, err := r.Cookie(s.options.Browser.CookieName(topUpCookie)); err == nil {
		var a topUpAccount
		if s.options.Browser.Unseal(purposeAccount, &v, c.Value, &a) == nil {
			if u, err := s.options.Registry.User(a.User); err == nil && u.Active() {
				return &topUpRequest{v, u, a.Notice}, true
			}
		}
	}
	s.writePage(w, r, http.StatusForbidden, &pages.Failure{Title: "No account to top up",
		Message: "This page opens from your account, or with a top-up link that an app can ask for. Yours was used, " +
			"or is too old."})
	return nil, false
}

// forAnotherAccount reports whether the signed-in user is not the one whose account is credited.
func (t *topUpRequest) forAnotherAccount() bool {
	return t.visitor.SignedIn() && t.visitor.Session.User.ID != t.account.ID
}

// formPurpose binds the form to the account that the page has named. If a link for another account
// was opened in another tab meanwhile, the form is refused.
func (t *topUpRequest) formPurpose() string {
	return purposeTopUp + strconv.FormatInt(t.account.ID, 10)
}

// topUpView returns the page. It always names the credited account, even where the app may not see
// the name, because the user must know whose balance a code is added to.
func (s *Service) topUpView(t *topUpRequest) *pages.TopUp {
	remaining, spent := s.balance(t.account.Username)
	view := &pages.TopUp{Form: pages.Form{Action: pathTopUpPage, Token: s.options.Browser.FormToken(&t.visitor,
		t.formPurpose())},
		Username: t.account.Username, Figures: pages.Figures{Remaining: remaining, Spent: spent}, Notice: t.notice}
	if t.visitor.SignedIn() {
		view.Viewer = new(pages.NewViewer(s.options.Browser, &t.visitor, s.options.TopUpURL(), s.options.Mistakes()))
	}
	if t.forAnotherAccount() {
		view.SignedInAs = t.visitor.Session.User.Username
	}
	return view
}

// redeem handles the form with a redeem code.
func (s *Service) redeem(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(w, r)
	if err != nil || form.repeated() != "" {
		s.writePage(w, r, http.StatusBadRequest, failureMalformed)
		return
	}
	t, ok := s.readTopUpRequest(w, r)
	if !ok {
		return
	}
	if s.options.Browser.CheckForm(r, &t.visitor, t.formPurpose(), form.get("token")) != nil {
		s.writePage(w, r, http.StatusForbidden, failureForeign)
		return
	}
	if t.visitor.SignedIn() { // the audit log names the user who redeems, and not the one whose account is credited
		r = auth.AsUser(r, t.visitor.Session.User.Username)
	}
	code := strings.TrimSpace(form.get("code"))
	if t.forAnotherAccount() && form.get("confirm") != t.account.Username {
		s.writeTopUpProblem(w, r, t, http.StatusUnprocessableEntity, code,
			"Confirm that the code is for the account of "+t.account.Username+".")
		return
	}
	amount, err := s.options.Redeemer.Redeem(r.Context(), t.account.Username, code)
	switch {
	case err == nil:
		s.redirectToTopUp(w, r, &t.visitor, topUpAccount{User: t.account.ID,
			Notice: "$" + pages.Dollars(amount) + " was added to the balance of " + t.account.Username + "."})
	case errors.Is(err, money.ErrRedeemed):
		s.writeTopUpProblem(w, r, t, http.StatusUnprocessableEntity, code, "This code was used already.")
	case errors.Is(err, state.ErrNotFound):
		s.writeTopUpProblem(w, r, t, http.StatusUnprocessableEntity, code, "There is no such code, or it has expired.")
	case errors.Is(err, money.ErrInsufficient), errors.Is(err, state.ErrInvalid):
		s.writeTopUpProblem(w, r, t, http.StatusUnprocessableEntity, code, "This code cannot be added to the balance.")
	default:
		s.options.Logger.Error("redeem a code", "cause", err)
		envelope.SetRetryAfter(w.Header(), retryUnavailable)
		s.writeTopUpProblem(w, r, t, http.StatusServiceUnavailable, code, failureUnavailable.Message)
	}
}

// writeTopUpProblem shows the form again with the reason why the code was not accepted.
func (s *Service) writeTopUpProblem(w http.ResponseWriter, r *http.Request, t *topUpRequest, status int, code,
	problem string) {
	view := s.topUpView(t)
	view.Notice, view.Code, view.Problem = "", code, problem
	s.writePage(w, r, status, view)
}
