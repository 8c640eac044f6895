package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/money"
)

// Purposes of sealed texts.
const (
	purposeLink    = "top-up link"
	purposeAccount = "top-up account"
)

// link is what a top-up link carries, sealed. It is bound to no browser, because an app
// asks for it and hands it to its user. It works once.
type link struct {
	Grant   string    `json:"g"`
	ID      string    `json:"i"`
	Expires time.Time `json:"e"`
}

// topUp hands out the address of the top-up page (imagegen-and-oauth.md 4.7). The page
// shows the balance, so the access token needs that scope. The address carries a link
// that works once, because an access token must not be in an address.
func (s *Service) topUp(w http.ResponseWriter, r *http.Request) {
	a, err := s.access(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if !a.Allows(tokens.ScopeBalance) {
		s.refuse(w, r, &refusal{status: http.StatusForbidden, word: "insufficient_scope", text: "the access token lacks the scope balance",
			challenge: `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeBalance + `"`})
		return
	}
	address := s.options.TopUpURL()
	if address == "" {
		if address, err = s.newLink(a.Grant); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	answer(w, http.StatusOK, struct {
		URL string `json:"topup_url"`
	}{address})
}

func (s *Service) newLink(grant string) (string, error) {
	id, err := s.options.Browser.NewID()
	if err != nil {
		return "", err
	}
	sealed, err := s.options.Browser.Seal(purposeLink, nil, linkLife, link{Grant: grant, ID: id, Expires: s.options.Now().Add(linkLife)})
	if err != nil {
		return "", err
	}
	return s.options.Issuer + pathTopUpPage + "?" + url.Values{"ticket": {sealed}}.Encode(), nil
}

// topUpAccount is the account that a browser may top up. It travels sealed in a cookie
// and is bound to the browser, which is not signed in by it.
type topUpAccount struct {
	User   int64  `json:"u"`
	Notice string `json:"n,omitempty"`
}

const topUpCookie = "topup"

var failureLink = &pages.Failure{Title: "This link has expired",
	Message: "A top-up link works once and for ten minutes. Ask the app for a new one."}

// topUpPage opens a link, or shows the page of the account that a link has opened.
func (s *Service) topUpPage(w http.ResponseWriter, r *http.Request) {
	pages.NoStore(w.Header())
	query, err := parseQuery(r)
	if err != nil || query.repeated() {
		s.fail(w, r, http.StatusBadRequest, failureBroken)
		return
	}
	if sealed := query.get("ticket"); sealed != "" {
		s.openLink(w, r, sealed)
		return
	}
	if query.get("account") == "own" {
		s.openOwn(w, r)
		return
	}
	if t, ok := s.topUpStep(w, r); ok {
		s.write(w, r, http.StatusOK, s.topUpView(t))
	}
}

// openLink uses up a link. A request that only looks whether the link works uses
// nothing up.
func (s *Service) openLink(w http.ResponseWriter, r *http.Request, sealed string) {
	if prefetching(r) || r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var l link
	if s.options.Browser.Unseal(purposeLink, nil, sealed, &l) != nil {
		s.fail(w, r, http.StatusBadRequest, failureLink)
		return
	}
	v, err := s.options.Browser.Welcome(w, r)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	u, err := s.options.Registry.UseTopUpLink(r.Context(), l.Grant, tokens.Once{ID: l.ID, Expires: l.Expires})
	switch {
	case errors.Is(err, tokens.ErrUsed), errors.Is(err, tokens.ErrNotFound):
		s.fail(w, r, http.StatusBadRequest, failureLink)
	case err != nil:
		s.busy(w, r, err)
	default:
		s.enter(w, r, &v, topUpAccount{User: u.ID})
	}
}

// openOwn leads a user who is signed in to the page of their own account.
func (s *Service) openOwn(w http.ResponseWriter, r *http.Request) {
	v, err := s.options.Browser.Visitor(r)
	switch {
	case err != nil:
		s.busy(w, r, err)
	case !v.SignedIn():
		pages.NoStore(w.Header())
		w.Header().Set("Location", "/signin?"+url.Values{"next": {pages.OwnTopUp}}.Encode())
		w.WriteHeader(http.StatusSeeOther)
	default:
		s.enter(w, r, &v, topUpAccount{User: v.Session.User.ID})
	}
}

// enter gives the browser the account to top up and sends it to the page.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, v *browser.Visitor, a topUpAccount) {
	sealed, err := s.options.Browser.Seal(purposeAccount, v, topUpLife, a)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	http.SetCookie(w, s.options.Browser.Cookie(topUpCookie, sealed, topUpLife))
	pages.NoStore(w.Header())
	w.Header().Set("Location", pathTopUpPage)
	w.WriteHeader(http.StatusSeeOther)
}

// topUpRequest is a request of a browser that has opened a link or its own account.
type topUpRequest struct {
	visitor browser.Visitor
	account tokens.User
	notice  string
}

// topUpStep finds the account that the browser of r may top up.
func (s *Service) topUpStep(w http.ResponseWriter, r *http.Request) (*topUpRequest, bool) {
	v, err := s.options.Browser.Visitor(r)
	if err != nil {
		s.busy(w, r, err)
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
	s.fail(w, r, http.StatusForbidden, &pages.Failure{Title: "No account to top up",
		Message: "This page opens from your account, or with a top-up link that an app can ask for. Yours was used, or is too old."})
	return nil, false
}

// foreign says whether somebody is signed in whose account is not the one that is
// credited.
func (t *topUpRequest) foreign() bool {
	return t.visitor.SignedIn() && t.visitor.Session.User.ID != t.account.ID
}

// formPurpose binds a form to the account that its page has named: if another link was
// opened in another tab meanwhile, the form is refused.
func (t *topUpRequest) formPurpose() string {
	return purposeTopUp + strconv.FormatInt(t.account.ID, 10)
}

// topUpView always names the account that is credited, also where the app may not see
// the name: whoever enters a code has to know where it goes.
func (s *Service) topUpView(t *topUpRequest) *pages.TopUp {
	remaining, spent := s.balance(t.account.Username)
	view := &pages.TopUp{Form: pages.Form{Action: pathTopUpPage, Token: s.options.Browser.FormToken(&t.visitor, t.formPurpose())},
		Username: t.account.Username, Figures: pages.Figures{Remaining: remaining, Spent: spent}, Notice: t.notice}
	if t.visitor.SignedIn() {
		desk := pages.NewDesk(s.options.Browser, &t.visitor, s.options.TopUpURL())
		view.Desk = &desk
	}
	if t.foreign() {
		view.SignedInAs = t.visitor.Session.User.Username
	}
	return view
}

// redeem takes a redeem code.
func (s *Service) redeem(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(w, r)
	if err != nil || form.repeated() {
		s.fail(w, r, http.StatusBadRequest, failureBroken)
		return
	}
	t, ok := s.topUpStep(w, r)
	if !ok {
		return
	}
	if s.options.Browser.CheckForm(r, &t.visitor, t.formPurpose(), form.get("token")) != nil {
		s.fail(w, r, http.StatusForbidden, failureForeign)
		return
	}
	code := strings.TrimSpace(form.get("code"))
	if t.foreign() && form.get("confirm") != t.account.Username {
		s.topUpAgain(w, r, t, http.StatusUnprocessableEntity, code, "Confirm that the code is for the account of "+t.account.Username+".")
		return
	}
	amount, err := s.options.Redeemer.Redeem(r.Context(), t.account.Username, code)
	switch {
	case err == nil:
		s.enter(w, r, &t.visitor, topUpAccount{User: t.account.ID, Notice: "$" + pages.Dollars(amount) + " was added to the balance of " + t.account.Username + "."})
	case errors.Is(err, money.ErrRedeemed):
		s.topUpAgain(w, r, t, http.StatusUnprocessableEntity, code, "This code was used already.")
	case errors.Is(err, state.ErrNotFound):
		s.topUpAgain(w, r, t, http.StatusUnprocessableEntity, code, "There is no such code, or it has expired.")
	case errors.Is(err, money.ErrInsufficient), errors.Is(err, state.ErrInvalid):
		s.topUpAgain(w, r, t, http.StatusUnprocessableEntity, code, "This code cannot be added to the balance.")
	default:
		s.options.Logger.Error("redeem a code", "cause", err)
		setRetry(w.Header(), retryUnavailable)
		s.topUpAgain(w, r, t, http.StatusServiceUnavailable, code, failureBusy.Message)
	}
}

// topUpAgain shows the form once more, with what was wrong.
func (s *Service) topUpAgain(w http.ResponseWriter, r *http.Request, t *topUpRequest, status int, code, problem string) {
	view := s.topUpView(t)
	view.Notice, view.Code, view.Problem = "", code, problem
	s.write(w, r, status, view)
}
