package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/http/accesslog"
	"stagedoor/http/envelope"
	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// errNoScope refuses a request to a route that has no scope.
var errNoScope = errors.New("the route has no scope")

// Identify returns the key of a request to a route that needs scope, and records a span for it.
// The key is returned together with the error if it is valid but lacks the scope, so that the
// log can name it. allowQuery says whether the key may be sent as ?key=. An empty scope is
// refused, because an empty scope would be permitted to every key.
func (a *Authenticator) Identify(r *http.Request, scope string, allowQuery bool) (identity.Key, error) {
	if scope == "" {
		return identity.Key{}, errNoScope
	}
	_, span := telemetry.Start(r.Context(), telemetry.SpanAuth)
	defer span.End()
	key, err := a.Authenticate(r, allowQuery)
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

// Admit counts an identified request against its key's request rate and concurrency, and
// against its owner's share of the gateway's requests. Handlers call it before they read the
// body. The caller releases the Pass. A request that Admit refuses does not use up any of the
// key's rate; a request that is refused later has used one.
func Admit(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *identity.Key,
	now time.Time) (*throttle.Pass, error) {
	return admit(w, r, limits, key, keyLimits(key), now)
}

// AdmitWatcher counts a request as Admit does, for one that waits for changes: a stream of events, a WebSocket or a
// long poll. Such a request may last for hours beside the key's other requests, so it counts against the request rate
// and the owner's share, and not against the concurrency.
func AdmitWatcher(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *identity.Key,
	now time.Time) error {
	l := keyLimits(key)
	l.MaxInFlight = 0
	pass, err := admit(w, r, limits, key, l, now)
	if pass != nil {
		pass.Release(0)
	}
	return err
}

// admit takes a place in the limits of a key and in its owner's share of the gateway, and reports both levels in
// headers. The caller releases the pass when the request has ended. If the share has no room, the place of the key is
// given back.
func admit(w http.ResponseWriter, r *http.Request, limits *throttle.Keys, key *identity.Key, l throttle.KeyLimits,
	now time.Time) (*throttle.Pass, error) {
	pass, refused := limits.Admit(key.ID, l, now)
	if refused != nil {
		return nil, limitError(w.Header(), refused)
	}
	if err := overload.Claim(r.Context(), state.OwnerOf(key.ID, key.User)); err != nil {
		pass.Release(0)
		return nil, err
	}
	setLimitHeaders(w.Header(), "Requests", pass.Requests)
	setLimitHeaders(w.Header(), "Tokens", pass.Tokens)
	return pass, nil
}

// Charge counts the estimated tokens of an admitted request against its key's limit, and
// returns the error to send if the limit is reached.
func Charge(w http.ResponseWriter, pass *throttle.Pass, tokens int, now time.Time) error {
	if refused := pass.Charge(tokens, now); refused != nil {
		return limitError(w.Header(), refused)
	}
	setLimitHeaders(w.Header(), "Requests", pass.Requests)
	setLimitHeaders(w.Header(), "Tokens", pass.Tokens)
	return nil
}

// keyLimits returns the limits of a key as the throttle takes them. 0 stands for no limit.
func keyLimits(key *identity.Key) throttle.KeyLimits {
	return throttle.KeyLimits{RequestsPerMinute: int(key.Limits.RPM), TokensPerMinute: int(key.Limits.TPM),
		MaxInFlight: int(key.Limits.Concurrency)}
}

// limitError sets the headers of a refusal and returns its error.
func limitError(h http.Header, refused *throttle.Refused) error {
	setLimitHeaders(h, "Requests", refused.Requests)
	setLimitHeaders(h, "Tokens", refused.Tokens)
	return dialogue.RateLimited("the API key is at its limit of "+refused.Limit, refused.RetryAfter, nil)
}

// setLimitHeaders reports the level of one limit of a key. A limit that the
// key does not have gets no headers.
func setLimitHeaders(h http.Header, limit string, l throttle.Level) {
	if l.Limit == 0 {
		return
	}
	h.Set("X-Ratelimit-Limit-"+limit, strconv.Itoa(l.Limit))
	h.Set("X-Ratelimit-Remaining-"+limit, strconv.Itoa(l.Remaining))
	h.Set("X-Ratelimit-Reset-"+limit, l.Reset.Round(time.Millisecond).String())
}

// Refuse writes err in a shape's dialect and notes it in the request's line of the access log.
// The cause of a server error is logged and never sent.
func Refuse(w http.ResponseWriter, logger *slog.Logger, dialect envelope.Dialect, err error) {
	e := envelope.From(err)
	if e.Status >= 500 && e.Cause != nil {
		logger.Warn("request failed", "request_id", accesslog.RequestID(w), "status", e.Status, "cause", e.Cause)
	}
	accesslog.Note(w, slog.String("error", telemetry.ErrorName(e)))
	envelope.Write(w, dialect, e)
}
