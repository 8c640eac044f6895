package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/browser"
	"stagedoor/http/pages"
	"stagedoor/state"
)

// topUp hands out the address of the top-up page (imagegen-and-oauth.md 4.7). It
// has a ticket in it that works once: an access token has no business in an
// address.
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
		ticket, err := s.tickets.put(&ticket{user: a.User, profile: a.Allows(tokens.ScopeProfile), balance: a.Allows(tokens.ScopeBalance)})
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		address = s.options.Issuer + pathTopUpPage + "?" + url.Values{"ticket": {ticket}}.Encode()
	}
	answer(w, http.StatusOK, struct {
		URL string `json:"topup_url"`
	}{address})
}

// ticket lets whoever has it put money on one account. The app could use it
// itself: it shows of the user what the app may see, and no more.
type ticket struct {
	user             tokens.User
	profile, balance bool
}

// visit is a browser that came with a ticket. It is not signed in by that.
type visit struct {
	*ticket
	binding string
	notice  string
}

const visitCookie = "topup"

// topUpPage admits a ticket, or shows the page to who was admitted.
func (s *Service) topUpPage(w http.ResponseWriter, r *http.Request) {
	pages.NoStore(w.Header())
	query, err := parseQuery(r)
	if err != nil || query.repeated() {
		s.fail(w, r, http.StatusBadRequest, failureBroken)
		return
	}
	if ticket := query.get("ticket"); ticket != "" {
		s.admit(w, r, ticket)
		return
	}
	if query.get("account") == "own" {
		s.enterOwn(w, r)
		return
	}
	id, v, visitor, ok := s.visit(w, r)
	if !ok {
		return
	}
	s.write(w, r, http.StatusOK, s.topUpView(id, v, &visitor))
}

// admit spends a ticket. Whoever only looks whether the link works spends
// nothing.
func (s *Service) admit(w http.ResponseWriter, r *http.Request, id string) {
	if prefetching(r) || r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	admitted, ok := s.tickets.take(id)
	if !ok {
		s.fail(w, r, http.StatusBadRequest, &pages.Failure{Title: "This link has expired",
			Message: "A top-up link works once and for ten minutes. Ask the app for a new one."})
		return
	}
	visitor, err := s.options.Browser.Welcome(w, r)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	s.enter(w, r, &visit{ticket: admitted, binding: visitor.Binding()})
}

// enterOwn begins the visit of somebody who is signed in, to the own account.
func (s *Service) enterOwn(w http.ResponseWriter, r *http.Request) {
	visitor, err := s.options.Browser.Visitor(r)
	switch {
	case err != nil:
		s.busy(w, r, err)
	case !visitor.SignedIn():
		pages.NoStore(w.Header())
		w.Header().Set("Location", "/signin?"+url.Values{"next": {pages.OwnTopUp}}.Encode())
		w.WriteHeader(http.StatusSeeOther)
	default:
		s.enter(w, r, &visit{ticket: &ticket{user: visitor.Session.User, profile: true, balance: true}, binding: visitor.Binding()})
	}
}

// enter begins a visit, or goes on with it under a new id.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, v *visit) {
	id, err := s.visits.put(v)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	http.SetCookie(w, s.options.Browser.Cookie(visitCookie, id, visitLife))
	pages.NoStore(w.Header())
	w.Header().Set("Location", pathTopUpPage)
	w.WriteHeader(http.StatusSeeOther)
}

// visit finds the visit of a request's browser.
func (s *Service) visit(w http.ResponseWriter, r *http.Request) (string, *visit, browser.Visitor, bool) {
	visitor, err := s.options.Browser.Visitor(r)
	if err != nil {
		s.busy(w, r, err)
		return "", nil, visitor, false
	}
	if c, err := r.Cookie(s.options.Browser.CookieName(visitCookie)); err == nil {
		if v, ok := s.visits.get(c.Value); ok && v.binding != "" && v.binding == visitor.Binding() {
			return c.Value, v, visitor, true
		}
	}
	s.fail(w, r, http.StatusForbidden, &pages.Failure{Title: "No account to top up",
		Message: "This page opens from your account, or with a top-up link that an app can ask for. Yours was used, or is too old."})
	return "", nil, visitor, false
}

func (s *Service) topUpView(id string, v *visit, visitor *browser.Visitor) *pages.TopUp {
	view := &pages.TopUp{Form: s.form(pathTopUpPage, purposeTopUp, id, visitor), Notice: v.notice}
	if visitor.SignedIn() {
		desk := pages.NewDesk(s.options.Browser, visitor, s.options.TopUpURL())
		view.Desk = &desk
	}
	own := visitor.Session.User.ID == v.user.ID
	if own || v.profile {
		view.Username = v.user.Username
	}
	if own || v.balance {
		remaining, spent := s.balance(v.user.Username)
		view.Figures = &pages.Figures{Remaining: remaining, Spent: spent}
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
	id, v, visitor, ok := s.visit(w, r)
	if !ok {
		return
	}
	if s.options.Browser.CheckForm(r, &visitor, purposeTopUp+id, form.get("token")) != nil {
		s.fail(w, r, http.StatusForbidden, failureForeign)
		return
	}
	code := strings.TrimSpace(form.get("code"))
	amount, err := s.options.Redeemer.Redeem(r.Context(), v.user.Username, code)
	if err == nil {
		s.visits.take(id)
		s.enter(w, r, &visit{ticket: v.ticket, binding: v.binding, notice: "$" + pages.Dollars(amount) + " was added to your balance."})
		return
	}
	view := s.topUpView(id, v, &visitor)
	view.Notice, view.Code = "", code
	status := http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, state.ErrRedeemed):
		view.Problem = "This code was used already."
	case errors.Is(err, state.ErrNotFound):
		view.Problem = "There is no such code, or it has expired."
	case errors.Is(err, state.ErrInsufficient), errors.Is(err, state.ErrInvalid):
		view.Problem = "This code cannot be added to your balance."
	default:
		s.options.Logger.Error("redeem a code", "cause", err)
		view.Problem, status = failureBusy.Message, http.StatusServiceUnavailable
		setRetry(w.Header(), retryUnavailable)
	}
	s.write(w, r, status, view)
}
