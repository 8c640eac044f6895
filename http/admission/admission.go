// Package admission is what happens to a request at every door for models before
// the door knows what is asked for: it is identified by its key, counted against
// the limits of that and its owner's share of the gateway, and refused in the words
// of its shape. Which door it is, what
// a body says and what it costs is not for this package.
package admission

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/http/access"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/intake"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Identify returns the key of a request, which has to have a scope. It is returned,
// too, if it may not do this: the log names it. query says that ?key= is a place
// for it.
func Identify(a *auth.Authenticator, r *http.Request, scope string, query bool) (state.Key, error) {
	if scope == "" { // would be permitted to every key
		return state.Key{}, errNoScope
	}
	_, span := telemetry.Start(r.Context(), telemetry.SpanAuth)
	defer span.End()
	key, err := a.Authenticate(r, query)
	if err == nil {
		err = a.Permit(&key, r, scope, "")
	}
	switch {
	case err != nil:
		telemetry.Fail(span, telemetry.ErrorName(envelope.From(err)))
	case span.IsRecording():
		span.SetAttributes(telemetry.KeyID.String(key.ID))
	}
	return key, err
}

// errNoScope refuses a request to a route that has no scope.
var errNoScope = errors.New("the route has no scope")

// Admit counts an identified request against its key's request rate and concurrency
// and against its owner's share of the gateway's requests. It comes before the body is
// read. The caller releases the Pass. A request that is refused by Admit costs nothing
// of the key's rate, one that is refused later has used one of it.
func Admit(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *state.Key, now time.Time) (*throttle.Pass, error) {
	return admit(w, r, limits, key, keyLimits(key), now)
}

// AdmitWatcher is Admit for a request that waits for changes: a stream of events, a
// WebSocket, a long poll. It counts by the request rate only, because it may last for
// hours beside the key's other requests, and is bounded by its owner's share.
func AdmitWatcher(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *state.Key, now time.Time) error {
	l := keyLimits(key)
	l.MaxInFlight = 0
	pass, err := admit(w, r, limits, key, l, now)
	if pass != nil {
		pass.Release(0)
	}
	return err
}

func admit(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *state.Key, l throttle.KeyLimits, now time.Time) (*throttle.Pass, error) {
	pass, refused := limits.Admit(key.ID, l, now)
	if refused != nil {
		return nil, atLimit(w.Header(), refused)
	}
	if err := intake.Claim(r.Context(), state.OwnerOf(key.ID, key.User)); err != nil {
		pass.Release(0)
		return nil, err
	}
	tell(w.Header(), "Requests", pass.Requests)
	tell(w.Header(), "Tokens", pass.Tokens)
	return pass, nil
}

// Charge counts the tokens of an admitted request, as they are estimated, against its
// key's limit.
func Charge(w http.ResponseWriter, pass *throttle.Pass, tokens int, now time.Time) error {
	if refused := pass.Charge(tokens, now); refused != nil {
		return atLimit(w.Header(), refused)
	}
	tell(w.Header(), "Requests", pass.Requests)
	tell(w.Header(), "Tokens", pass.Tokens)
	return nil
}

// keyLimits are a key's limits as actors/throttle takes them.
func keyLimits(key *state.Key) throttle.KeyLimits {
	return throttle.KeyLimits{RequestsPerMinute: int(key.Limits.RPM), TokensPerMinute: int(key.Limits.TPM), MaxInFlight: int(key.Limits.Concurrency)}
}

// atLimit is the error of a request that a key's limit refuses.
func atLimit(h http.Header, refused *throttle.Refused) error {
	tell(h, "Requests", refused.Requests)
	tell(h, "Tokens", refused.Tokens)
	return &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Code: "rate_limit_exceeded",
		Message: "the API key is at its limit of " + refused.Limit + ", try again later", RetryAfter: max(refused.RetryAfter, time.Second)}
}

// tell says where a key stands (wire/errors.md 7). A limit the key does not have
// has no headers.
func tell(h http.Header, of string, l throttle.Level) {
	if l.Limit == 0 {
		return
	}
	h.Set("X-Ratelimit-Limit-"+of, strconv.Itoa(l.Limit))
	h.Set("X-Ratelimit-Remaining-"+of, strconv.Itoa(l.Remaining))
	h.Set("X-Ratelimit-Reset-"+of, l.Reset.Round(time.Millisecond).String())
}

// Refuse writes an error in a shape's dialect, and notes it in the line of the
// request. What failed inside is logged.
func Refuse(w http.ResponseWriter, logger *slog.Logger, dialect envelope.Dialect, err error) {
	e := envelope.From(err)
	if e.Status >= 500 && e.Cause != nil {
		logger.Warn("request failed", "request_id", access.RequestID(w), "status", e.Status, "cause", e.Cause)
	}
	access.Note(w, slog.String("error", telemetry.ErrorName(e)))
	envelope.Write(w, dialect, e)
}
