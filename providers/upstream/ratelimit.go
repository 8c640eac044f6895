package upstream

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Remaining has what a provider reports as left of its limits. A nil field means that it does not report it.
type Remaining struct {
	Requests, Tokens           *int
	ResetRequests, ResetTokens time.Duration // until the limits are whole again; 0 if not reported
}

// rateLimitHeaders are the vendors' names of the headers.
var rateLimitHeaders = [...]struct{ requests, tokens, resetRequests, resetTokens string }{
	{
		"X-Ratelimit-Remaining-Requests",
		"X-Ratelimit-Remaining-Tokens",
		"X-Ratelimit-Reset-Requests",
		"X-Ratelimit-Reset-Tokens",
	},
	{
		"Anthropic-Ratelimit-Requests-Remaining",
		"Anthropic-Ratelimit-Tokens-Remaining",
		"Anthropic-Ratelimit-Requests-Reset",
		"Anthropic-Ratelimit-Tokens-Reset",
	},
}

// RateLimits returns the limits in the headers of a reply of any status.
func RateLimits(h http.Header, now func() time.Time) Remaining {
	var r Remaining
	for _, names := range rateLimitHeaders {
		if v := h[names.requests]; len(v) > 0 {
			r.Requests = count(v[0])
			r.ResetRequests = reset(h.Get(names.resetRequests), now)
		}
		if v := h[names.tokens]; len(v) > 0 {
			r.Tokens = count(v[0])
			r.ResetTokens = reset(h.Get(names.resetTokens), now)
		}
	}
	return r
}

// count returns a number that is not negative, or nil.
func count(v string) *int {
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// reset reads "6m0s", "1.5" (seconds) or an RFC 3339 time. It returns 0 for anything else and for the past, and
// at most an hour, as RetryAfter does.
func reset(v string, now func() time.Time) time.Duration {
	if v = strings.TrimSpace(v); v == "" {
		return 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return clampRetry(d.Seconds())
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clampRetry(s)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return clampRetry(at.Sub(now()).Seconds())
	}
	return 0
}
