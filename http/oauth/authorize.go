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

// maxState is the longest state parameter, in bytes, that the service carries for an app.
const maxState = 4 << 10

// authRequest is an authorization request whose app and parameters were checked. It says nothing
// about the user yet.
type authRequest struct {
	app       tokens.App
	redirect  string // one of the app's addresses, to which the browser goes afterwards
	scopes    []string
	state     string
	challenge string
	auto      Auto // meaning of auto_authorize for this request; AutoNever if it was not sent
	once      tokens.Once
}

// sealedRequest is an authRequest as the browser carries it between two pages. It names the app by
// its id, so that every step looks the app up again and notices a change.
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

// seal returns req encrypted for the browser of v. It can be read until stepLife has passed.
func (s *Service) seal(req *authRequest, v *browser.Visitor) (string, error) {
	return s.options.Browser.Seal(purposeRequest, v, stepLife, sealedRequest{ClientID: req.app.ClientID,
		RedirectURI: req.redirect, Scopes: req.scopes, State: []byte(req.state), Challenge: req.challenge,
		Auto: req.auto, ID: req.once.ID, Expires: req.once.Expires})
}

// unseal returns the request that seal has sealed for the browser of v. If the request cannot be
// continued, it returns the status and the page to show instead.
func (s *Service) unseal(text string, v *browser.Visitor) (*authRequest, int, *pages.Failure) {
	var in sealedRequest
	switch err := s.options.Browser.Unseal(purposeRequest, v, text, &in); {
	case errors.Is(err, browser.ErrExpired), err == nil && !s.options.Now().Before(in.Expires):
		return nil, http.StatusBadRequest, failureStale
	case err != nil:
		return nil, http.StatusForbidden, failureForeign
	}
	app, err := s.options.Registry.AppByClientID(in.ClientID)
	if err != nil || !app.Disabled.IsZero() || !app.Allows(in.RedirectURI) {
		return nil, http.StatusBadRequest, failureChanged
	}
	return &authRequest{app: app, redirect: in.RedirectURI, scopes: in.Scopes, state: string(in.State),
		challenge: in.Challenge, auto: in.Auto, once: tokens.Once{ID: in.ID, Expires: in.Expires}}, 0, nil
}

// authorize handles GET /api/oauth2/authorize, the address to which an app sends its user.
func (s *Service) authorize(w http.ResponseWriter, r *http.Request) {
	pages.NoStore(w.Header())
	if prefetching(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	query, err := parseQuery(r)
	if err != nil {
		s.writePage(w, r, http.StatusBadRequest, &pages.Failure{Title: "This link is broken",
			Message: "The address that the app sent you to cannot be read."})
		return
	}
	app, failure := s.identify(query)
	if failure != nil {
		s.writePage(w, r, http.StatusBadRequest, failure)
		return
	}
	req := &authRequest{app: app, redirect: query.get("redirect_uri"), auto: AutoNever}
	if query.count("state") <= 1 && len(query.get("state")) <= maxState {
		req.state = query.get("state")
	}
	v, err := s.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	if err := req.read(query); err != nil {
		s.reportRequestError(w, r, req, &v, err)
		return
	}
	if query.get("auto_authorize") == "true" {
		req.auto = s.options.Auto()
	}
	s.startRequest(w, r, req, &v)
}

// reportRequestError reports a mistake in the app's request. If the user has signed in, the error
// goes to the app by a redirect. Otherwise a page shows the error with a link back to the app.
func (s *Service) reportRequestError(w http.ResponseWriter, r *http.Request, req *authRequest, v *browser.Visitor,
	err error) {
	if v.SignedIn() {
		s.redirectError(w, r, http.StatusFound, req, err)
		return
	}
	f := protocolErrorOf(err)
	host, _ := redirectHost(req.redirect)
	s.writePage(w, r, http.StatusBadRequest, &pages.Failure{Title: "The app sent a wrong request",
		Message: "The app that sent you here made a mistake, so you cannot sign in for it. You can go back to it " +
			"and report this to its developer.",
		Detail: f.code + ": " + f.description,
		Back: &pages.Link{Name: "Go back to " + host, Path: s.appURL(req, "error", f.code, "error_description",
			f.description)}})
}

// identify returns the app of a request. Unless both the app and its redirect address are known, it
// returns a page, because a redirect to an unchecked address would leak data (RFC 6749 4.1.2.1).
func (s *Service) identify(query params) (tokens.App, *pages.Failure) {
	unknown := func(detail string) *pages.Failure {
		return &pages.Failure{Title: "Unknown app", Message: "The app that sent you here is not registered, was " +
			"switched off, or sent a wrong link.", Detail: detail}
	}
	if fault := query.faultOf("client_id"); fault != "" {
		return tokens.App{}, unknown(fault)
	}
	app, err := s.options.Registry.AppByClientID(query.get("client_id"))
	switch {
	case err != nil:
		return tokens.App{}, unknown("client_id is unknown: " + truncateForPage(query.get("client_id")))
	case !app.Disabled.IsZero():
		return tokens.App{}, unknown("client_id belongs to an app that was switched off")
	}
	if fault := query.faultOf("redirect_uri"); fault != "" {
		return tokens.App{}, &pages.Failure{Title: "Wrong address",
			Message: "The app did not say to which one address you should be sent afterwards, so it got nothing.",
			Detail:  fault}
	}
	if !app.Allows(query.get("redirect_uri")) {
		return tokens.App{}, &pages.Failure{Title: "Wrong address",
			Message: "The app asked to send you to an address that it has not registered. You were not sent there, " +
				"and the app got nothing.",
			Detail: truncateForPage(query.get("redirect_uri"))}
	}
	return app, nil
}

// maxShown is the number of bytes of a refused value that a page shows.
const maxShown = 300

func truncateForPage(text string) string {
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// read checks the parameters other than client_id and redirect_uri in the order of the protocol and
// stores them in q. Its errors may be sent to the app.
func (q *authRequest) read(query params) error {
	if name := query.repeated(); name != "" {
		return invalidRequest(name + " is repeated")
	}
	switch query.get("response_type") {
	case "code":
	case "":
		return invalidRequest("response_type is missing")
	default:
		return &protocolError{code: "unsupported_response_type", description: "response_type must be code"}
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

// startRequest shows the sign-in or consent page. If the user is signed in, has consented before
// and auto_authorize is allowed, it redirects to the app with a code at once.
func (s *Service) startRequest(w http.ResponseWriter, r *http.Request, req *authRequest, v *browser.Visitor) {
	if v.SignedIn() && req.auto != AutoNever && opensPage(r) {
		code, err := s.approve(r.Context(), req, v, false)
		if !errors.Is(err, tokens.ErrConsentRequired) {
			s.finishRequest(w, r, http.StatusFound, req, code, err)
			return
		}
	}
	var err error
	if req.once.ID, err = s.options.Browser.NewID(); err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	req.once.Expires = s.options.Now().Add(requestLife)
	sealed, err := s.seal(req, v)
	if err != nil {
		s.writeUnavailable(w, r, err)
		return
	}
	if v.SignedIn() {
		s.writePage(w, r, http.StatusOK, s.consentView(sealed, req, v))
		return
	}
	s.writePage(w, r, http.StatusOK, s.signInView(sealed, req, v))
}

// prefetching reports whether the browser fetches the page before the user has opened it.
func prefetching(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") || strings.EqualFold(r.Header.Get("Purpose"),
		"prefetch")
}

// opensPage reports whether r can be a user opening the page. A frame, image or script must not get
// a code for a user who sees nothing. Browsers that send no Sec-Fetch headers are accepted.
func opensPage(r *http.Request) bool {
	allows := func(name, want string) bool {
		got := r.Header.Get(name)
		return got == "" || got == want
	}
	return r.Method == http.MethodGet && allows("Sec-Fetch-Mode", "navigate") && allows("Sec-Fetch-Dest", "document")
}

// approve asks the registry for the code. consented says whether the user has consented just now;
// if not, an earlier consent is needed and its absence is tokens.ErrConsentRequired.
func (s *Service) approve(ctx context.Context, req *authRequest, v *browser.Visitor, consented bool) (string, error) {
	return s.options.Registry.Approve(ctx, tokens.Approval{User: v.Session.User.ID, AuthTime: v.Session.Created,
		ClientID:    req.app.ClientID,
		RedirectURI: req.redirect, Scopes: req.scopes, Challenge: req.challenge, Request: req.once,
		Consented: consented})
}

// finishRequest redirects the browser to the app with the code, or with the error of approve. It
// shows a page instead if the app changed meanwhile or the request was answered before.
func (s *Service) finishRequest(w http.ResponseWriter, r *http.Request, status int, req *authRequest, code string,
	err error) {
	switch {
	case errors.Is(err, tokens.ErrInvalidClient), errors.Is(err, tokens.ErrInvalidRequest):
		// The app was changed while the user was on the page, so its earlier redirect
		// address can no longer be trusted.
		s.writePage(w, r, http.StatusBadRequest, failureChanged)
	case errors.Is(err, tokens.ErrUsed):
		s.writePage(w, r, http.StatusBadRequest, failureStale)
	case errors.Is(err, tokens.ErrNotFound):
		s.redirectError(w, r, status, req, errDenied)
	case err != nil:
		s.redirectError(w, r, status, req, err)
	default:
		s.redirectToApp(w, status, req, "code", code)
	}
}
