package oauth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// maxState bounds what is kept and given back for an app.
const maxState = 4 << 10

// request is an authorization request that was found right, but for who asks.
type request struct {
	app       tokens.App
	scopes    []string
	state     string
	challenge string
	auto      Auto // what auto_authorize is worth; AutoNever if it was not sent
	once      tokens.Once
}

// sealedRequest is a request as it travels between its pages. The app is looked up
// again at every step.
type sealedRequest struct {
	ClientID    string    `json:"c"`
	RedirectURI string    `json:"r"`
	Scopes      []string  `json:"s"`
	State       []byte    `json:"t"` // any bytes
	Challenge   string    `json:"p,omitempty"`
	Auto        Auto      `json:"a"`
	ID          string    `json:"i"`
	Expires     time.Time `json:"e"`
}

const purposeRequest = "authorization request"

// seal returns the request for the next page of a browser.
func (s *Service) seal(req *request, v *browser.Visitor) (string, error) {
	return s.options.Browser.Seal(purposeRequest, v, stepLife, sealedRequest{ClientID: req.app.ClientID, RedirectURI: req.app.RedirectURI,
		Scopes: req.scopes, State: []byte(req.state), Challenge: req.challenge, Auto: req.auto, ID: req.once.ID, Expires: req.once.Expires})
}

// unseal reads the request that a browser has come back with. The page is what is
// wrong with it, if anything.
func (s *Service) unseal(text string, v *browser.Visitor) (*request, int, *pages.Failure) {
	var in sealedRequest
	switch err := s.options.Browser.Unseal(purposeRequest, v, text, &in); {
	case errors.Is(err, browser.ErrExpired), err == nil && !s.options.Now().Before(in.Expires):
		return nil, http.StatusBadRequest, failureStale
	case err != nil:
		return nil, http.StatusForbidden, failureForeign
	}
	app, err := s.options.Registry.AppByClientID(in.ClientID)
	if err != nil || !app.Disabled.IsZero() || app.RedirectURI != in.RedirectURI {
		return nil, http.StatusBadRequest, failureChanged
	}
	return &request{app: app, scopes: in.Scopes, state: string(in.State), challenge: in.Challenge, auto: in.Auto,
		once: tokens.Once{ID: in.ID, Expires: in.Expires}}, 0, nil
}

// authorize begins (imagegen-and-oauth.md 4.4).
func (s *Service) authorize(w http.ResponseWriter, r *http.Request) {
	pages.NoStore(w.Header())
	if prefetching(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	query, err := parseQuery(r)
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, &pages.Failure{Title: "This link is broken", Message: "The address that the app sent you to cannot be read."})
		return
	}
	app, failure := s.identify(query)
	if failure != nil {
		s.fail(w, r, http.StatusBadRequest, failure)
		return
	}
	req := &request{app: app, auto: AutoNever}
	if query.count("state") <= 1 && len(query.get("state")) <= maxState {
		req.state = query.get("state")
	}
	v, err := s.options.Browser.Welcome(w, r)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	if err := req.read(query); err != nil {
		s.refuseRequest(w, r, req, &v, err)
		return
	}
	if query.get("auto_authorize") == "true" {
		req.auto = s.options.Auto()
	}
	s.begin(w, r, req, &v)
}

// refuseRequest tells the app of a mistake in its request: by a redirect if the user has
// signed in, else by a page from which the user may go back to the app.
func (s *Service) refuseRequest(w http.ResponseWriter, r *http.Request, req *request, v *browser.Visitor, err error) {
	if v.SignedIn() {
		s.redirect(w, r, http.StatusFound, req, err)
		return
	}
	f := refusalOf(err)
	host, _ := hostOf(req.app.RedirectURI)
	s.fail(w, r, http.StatusBadRequest, &pages.Failure{Title: "The app sent a wrong request",
		Message: "The app that sent you here made a mistake, so you cannot sign in for it. You can go back to it and tell its maker.",
		Detail:  f.word + ": " + f.text,
		Back:    &pages.Link{Name: "Go back to " + host, Path: s.appAddress(req, "error", f.word, "error_description", f.text)}})
}

// identify finds the app. As long as it and its address are not certain, nobody
// is sent anywhere (RFC 6749 4.1.2.1): the answer is a page.
func (s *Service) identify(query params) (tokens.App, *pages.Failure) {
	unknown := &pages.Failure{Title: "Unknown app", Message: "The app that sent you here is not registered, or was switched off."}
	if query.count("client_id") != 1 {
		return tokens.App{}, unknown
	}
	app, err := s.options.Registry.AppByClientID(query.get("client_id"))
	if err != nil || !app.Disabled.IsZero() {
		return tokens.App{}, unknown
	}
	if query.count("redirect_uri") != 1 || query.get("redirect_uri") != app.RedirectURI {
		return tokens.App{}, &pages.Failure{Title: "Wrong address",
			Message: "The app asked to send you to an address that it has not registered. You were not sent there, and the app got nothing.",
			Detail:  shortened(query.get("redirect_uri"))}
	}
	return app, nil
}

// maxShown is how much of a refused value a page shows.
const maxShown = 300

func shortened(text string) string {
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// read checks what is left, in the protocol's order. Its error goes to the app.
func (q *request) read(query params) error {
	if query.repeated() {
		return invalidRequest("a parameter is repeated")
	}
	switch query.get("response_type") {
	case "code":
	case "":
		return invalidRequest("response_type is missing")
	default:
		return &refusal{word: "unsupported_response_type", text: "response_type must be code"}
	}
	switch state := query.get("state"); {
	case state == "":
		return invalidRequest("state is missing")
	case len(state) > maxState:
		return invalidRequest("state is longer than 4096 bytes")
	}
	scopes, err := tokens.ParseScopes(query.get("scope"))
	if err != nil {
		return err
	}
	if q.scopes = scopes; scopes == nil {
		q.scopes = []string{tokens.ScopeProfile}
	}
	q.challenge = query.get("code_challenge")
	method := query.get("code_challenge_method")
	switch {
	case q.challenge == "" && method == "":
	case method != "S256": // absent means plain (RFC 7636 4.3)
		return invalidRequest("code_challenge_method must be S256")
	case !tokens.ValidChallenge(q.challenge):
		return invalidRequest("code_challenge must be a SHA-256 hash in base64url")
	}
	return nil
}

// begin shows the first page of a request, or answers it at once if nothing has to be
// asked.
func (s *Service) begin(w http.ResponseWriter, r *http.Request, req *request, v *browser.Visitor) {
	if v.SignedIn() && req.auto != AutoNever && deliberate(r) {
		code, err := s.approve(r.Context(), req, v, false)
		if !errors.Is(err, tokens.ErrConsentRequired) {
			s.conclude(w, r, http.StatusFound, req, code, err)
			return
		}
	}
	var err error
	if req.once.ID, err = s.options.Browser.NewID(); err != nil {
		s.busy(w, r, err)
		return
	}
	req.once.Expires = s.options.Now().Add(requestLife)
	sealed, err := s.seal(req, v)
	if err != nil {
		s.busy(w, r, err)
		return
	}
	if v.SignedIn() {
		s.write(w, r, http.StatusOK, s.consentView(sealed, req, v))
		return
	}
	s.write(w, r, http.StatusOK, s.signInView(sealed, req, v))
}

// prefetching tells whether nobody has asked for the page yet.
func prefetching(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") || strings.EqualFold(r.Header.Get("Purpose"), "prefetch")
}

// deliberate tells whether the browser goes to the page, as far as it says: a
// frame, an image or a script must not get a code for a user who sees nothing.
func deliberate(r *http.Request) bool {
	allows := func(name, want string) bool {
		got := r.Header.Get(name)
		return got == "" || got == want
	}
	return r.Method == http.MethodGet && allows("Sec-Fetch-Mode", "navigate") && allows("Sec-Fetch-Dest", "document")
}

// approve gets the code for a request.
func (s *Service) approve(ctx context.Context, req *request, v *browser.Visitor, consented bool) (string, error) {
	return s.options.Registry.Approve(ctx, tokens.Approval{User: v.Session.User.ID, AuthTime: v.Session.Created, ClientID: req.app.ClientID,
		RedirectURI: req.app.RedirectURI, Scopes: req.scopes, Challenge: req.challenge, Request: req.once, Consented: consented})
}

// conclude sends the browser back with a code, or with why there is none.
func (s *Service) conclude(w http.ResponseWriter, r *http.Request, status int, req *request, code string, err error) {
	switch {
	case errors.Is(err, tokens.ErrInvalidClient), errors.Is(err, tokens.ErrInvalidRequest):
		// The app changed under the user's hands; where it was is no longer known
		// to be its place.
		s.fail(w, r, http.StatusBadRequest, failureChanged)
	case errors.Is(err, tokens.ErrUsed):
		s.fail(w, r, http.StatusBadRequest, failureStale)
	case errors.Is(err, tokens.ErrNotFound):
		s.redirect(w, r, status, req, errDenied)
	case err != nil:
		s.redirect(w, r, status, req, err)
	default:
		s.send(w, status, req, "code", code)
	}
}
