package adminapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// failuresPerMinute is the number of wrong tokens from one address that get 401 before further ones
// get 429. A request with the right token is never refused, because tokens are too long to guess.
const failuresPerMinute = 10

// Guard admits requests that have an admin token: the one in the configuration or the one created
// by the command "stagedoor admin token". It never admits gateway keys. It is safe for concurrent
// use.
// Tokens are compared by their hashes, which have one length, so that a comparison takes the same
// time for every token.
type Guard struct {
	fixed    atomic.Pointer[state.Hash] // hash of the token in the configuration; nil if there is none
	state    *state.State
	now      func() time.Time
	attempts *auth.Attempts
}

// NewGuard returns a Guard that reads the token created by command from s for every request.
func NewGuard(s *state.State, now func() time.Time) *Guard {
	return &Guard{state: s, now: now, attempts: auth.NewAttempts(failuresPerMinute)}
}

// SetToken replaces the token of the configuration at once. An empty token removes it.
func (g *Guard) SetToken(token string) {
	if token == "" {
		g.fixed.Store(nil)
		return
	}
	g.fixed.Store(new(state.HashSecret(token)))
}

// requireToken returns a handler that calls next only for requests with an admin token.
func (g *Guard) requireToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.checkToken(r); err != nil {
			envelope.Write(w, envelope.Plain, err)
			return
		}
		next(w, r)
	}
}

// serveIfEnabled returns a handler that calls next for every request while the API is enabled.
func (g *Guard) serveIfEnabled(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, on := g.tokens(); !on {
			envelope.Write(w, envelope.Plain, errOff)
			return
		}
		next(w, r)
	}
}

var errOff = dialogue.Refusal(http.StatusForbidden, "admin_api_disabled",
	"the admin API is off: set admin.token in the configuration, or make a token with stagedoor admin token")

// tokens returns the hashes of the tokens that are set, and whether there is one.
func (g *Guard) tokens() (hashes [2]state.Hash, on bool) {
	fixed := g.fixed.Load()
	if fixed != nil {
		hashes[0] = *fixed
	}
	made, ok := identity.FindAdminToken(g.state.View())
	if ok {
		hashes[1] = made
	}
	return hashes, ok || fixed != nil
}

// checkToken returns an error unless r has an admin token. It compares hashes in constant time. An
// unset hash equals no token.
// A failed attempt is recorded in the audit log as a visitor's, since a guessed admin token opens
// everything.
func (g *Guard) checkToken(r *http.Request) *dialogue.Error {
	hashes, on := g.tokens()
	if !on {
		return errOff
	}
	token, ok := bearer(r)
	if !ok {
		return unauthorized("missing_admin_token", "send the admin token in the header Authorization: Bearer TOKEN")
	}
	sent := state.HashSecret(token)
	// Both comparisons are made in any case, so that the time of the reply does not say which of the tokens is set.
	fixed, made := hashes[0].Equal(sent), hashes[1].Equal(sent)
	if fixed || made {
		return nil
	}
	if wait := g.attempts.Failed(r, g.now()); wait > 0 {
		return dialogue.TooManyFailures("too_many_invalid_tokens",
			"too many wrong tokens came from this address, try again later", wait)
	}
	ctx := r.Context()
	ctx = state.WithActor(ctx, state.ActorOf(ctx).As(state.ActorVisitor, ""))
	// The request is refused in any case, so that an error of the store is no reason to answer otherwise.
	_ = identity.RecordFailedSignIn(ctx, g.state, identity.WrongAdminToken, state.Target{Kind: "admin_token"},
		"wrong token")
	return unauthorized("invalid_admin_token", "wrong admin token; gateway keys are not accepted here")
}

// bearer returns the bearer token of r. It must be in a single Authorization header.
// Two headers are refused and not merged, because a proxy in front could have checked the other
// one.
func bearer(r *http.Request) (string, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

// unauthorized returns a 401.
func unauthorized(code, message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusUnauthorized, code, message)
}
