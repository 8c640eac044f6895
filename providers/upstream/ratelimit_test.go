package upstream_test

import (
	"net/http"
	"testing"
	"time"

	"stagedoor/providers/upstream"
)

func TestRateLimitHeadersOfTheVendors(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		header           map[string]string
		requests, tokens int // -1: not said
		resetRequests    time.Duration
		resetTokens      time.Duration
	}{
		"none": {nil, -1, -1, 0, 0},
		"chat": {map[string]string{"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m0s",
			"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 3, 0, 6 * time.Minute,
			120 * time.Millisecond},
		"messages": {map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-01-02T03:05:05Z",
			"anthropic-ratelimit-tokens-remaining": "7"}, 0, 7, time.Minute, 0},
		"garbage": {map[string]string{"x-ratelimit-remaining-requests": "-1", "x-ratelimit-remaining-tokens": "many",
			"x-ratelimit-reset-tokens": "soon"}, -1, -1, 0, 0},
		"too long": {map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "900000"}, 0, -1, time.Hour, 0},
	} {
		h := http.Header{}
		for k, v := range tc.header {
			h.Set(k, v)
		}
		got := upstream.RateLimits(h, func() time.Time { return now })
		if value(got.Requests) != tc.requests || value(got.Tokens) != tc.tokens ||
			got.ResetRequests != tc.resetRequests ||
			got.ResetTokens != tc.resetTokens {
			t.Errorf("%s: got %d %d %s %s", name, value(got.Requests), value(got.Tokens), got.ResetRequests,
				got.ResetTokens)
		}
	}
}

func value(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}
