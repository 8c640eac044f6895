// Package admission is what happens to a request at every door for models before
// the door knows what is asked for: it is identified by its key, counted against
// the limits of that, and refused in the words of its shape. Which door it is, what
// a body says and what it costs is not for this package.
package admission

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/http/access"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Identify returns the key of a request, which has to have a scope. It is returned,
// too, if it may not do this: the log names it. query says that ?key= is a place
// for it.
func Identify(a *auth.Authenticator, r *http.Request, scope string, query bool) (state.Key, error) {
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

// Count counts a request of tokens (estimated) against the limits of its key, and
// tells in h where that stands. What it returns is given back by the caller.
func Count(h http.Header, limits *throttle.Keys, key *state.Key, tokens int, now time.Time) (*throttle.Pass, error) {
	own := throttle.KeyLimits{RequestsPerMinute: int(key.Limits.RPM), TokensPerMinute: int(key.Limits.TPM), MaxInFlight: int(key.Limits.Concurrency)}
	pass, refused := limits.Admit(key.ID, own, tokens, now)
	if refused != nil {
		tell(h, "Requests", refused.Requests)
		tell(h, "Tokens", refused.Tokens)
		return nil, &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Code: "rate_limit_exceeded",
			Message: "the API key is at its limit, try again later", RetryAfter: max(refused.RetryAfter, time.Second)}
	}
	tell(h, "Requests", pass.Requests)
	tell(h, "Tokens", pass.Tokens)
	return pass, nil
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
