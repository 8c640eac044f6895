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

// failuresPerMinute is how many wrong tokens of an address are answered 401 and
// not 429. Who is right is never held up: tokens are too long to be guessed.
const failuresPerMinute = 10

// Guard lets in who has the token of administration: that of the configuration
// or that which was made by command. Gateway keys are never one.
type Guard struct {
	fixed    atomic.Pointer[state.Hash]
	made     func() (state.Hash, bool)
	now      func() time.Time
	attempts *auth.Attempts
}

// NewGuard makes a Guard that knows the token that was made by command.
func NewGuard(s *state.State, now func() time.Time) *Guard {
	return &Guard{made: func() (state.Hash, bool) { return identity.FindAdminToken(s.View()) }, now: now,
		attempts: auth.NewAttempts(failuresPerMinute)}
}

// SetToken replaces the token of the configuration, at once; "": there is none.
func (g *Guard) SetToken(token string) {
	if token == "" {
		g.fixed.Store(nil)
		return
	}
	h := state.HashSecret(token)
	g.fixed.Store(&h)
}

// protect serves next to those who have the token.
func (g *Guard) protect(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.admit(r); err != nil {
			envelope.Write(w, envelope.Plain, err)
			return
		}
		next(w, r)
	}
}

// open serves next to everybody if there is an API at all.
func (g *Guard) open(next http.HandlerFunc) http.HandlerFunc {
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

func (g *Guard) tokens() (hashes [2]state.Hash, on bool) {
	fixed := g.fixed.Load()
	if fixed != nil {
		hashes[0] = *fixed
	}
	made, ok := g.made()
	if ok {
		hashes[1] = made
	}
	return hashes, ok || fixed != nil
}

// admit compares hashes, each in constant time. The zero hash is nobody's.
func (g *Guard) admit(r *http.Request) *dialogue.Error {
	hashes, on := g.tokens()
	if !on {
		return errOff
	}
	token, ok := bearer(r)
	if !ok {
		return unauthorized("missing_admin_token", "send the token of administration in the header Authorization: Bearer TOKEN")
	}
	sent := state.HashSecret(token)
	fixed, made := hashes[0].Equal(sent), hashes[1].Equal(sent)
	if fixed || made {
		return nil
	}
	if wait := g.attempts.Failed(r, g.now()); wait > 0 {
		return dialogue.TooManyFailures("too_many_invalid_tokens",
			"too many wrong tokens came from this address, try again later", wait)
	}
	return unauthorized("invalid_admin_token", "this is not the token of administration; gateway keys are not good here")
}

// bearer is the token of a request: sent once, and in its header only.
func bearer(r *http.Request) (string, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

func unauthorized(code, message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusUnauthorized, code, message)
}
