package throttle

import "time"

// Kind is the result of a permitted request. KindOf maps the failure classes of the upstream
// client to it.
type Kind uint8

// The kinds of outcome.
const (
	Success     Kind = iota
	RateLimited      // 429
	Overloaded       // 503, 529
	Transient        // 500, 502, 504, reset, timeout
	NotSent          // the upstream was never reached
	CallerFault      // 4xx that the caller caused
	Cancelled        // the caller gave up
	Credential       // the provider refused our API key
	Unused           // the request was not sent at all
	kindCount
)

var kindNames = [kindCount]string{"success", "rate_limited", "overloaded", "transient", "not_sent",
	"caller_fault", "cancelled", "credential", "unused"}

func (k Kind) String() string {
	if k >= kindCount {
		return "unknown"
	}
	return kindNames[k]
}

// failure reports whether the outcome counts against the upstream's health.
func (k Kind) failure() bool { return k == Overloaded || k == Transient || k == NotSent }

// alive reports whether a probe with this outcome found a working upstream.
func (k Kind) alive() bool { return k == Success || k == RateLimited }

// unspent reports whether the upstream certainly used no tokens.
func (k Kind) unspent() bool {
	switch k {
	case RateLimited, NotSent, CallerFault, Credential, Unused:
		return true
	}
	return false
}

// Outcome is the result of a permitted request. Only Kind is required.
type Outcome struct {
	Kind Kind
	// Model is the model that a cool-down applies to. Empty means the model of the Ask.
	Model string
	// RetryAfter is the time that the upstream gave, for RateLimited and Overloaded.
	RetryAfter time.Duration
	// TokensUsed replaces the estimate. Zero means that the use is not known and the
	// estimate stays, unless Kind shows that no tokens were used.
	TokensUsed int
	// The upstream's remaining limits and the times until they are reset, from its
	// response headers. Nil means that it sent none.
	RemainingRequests, RemainingTokens *int
	ResetRequests, ResetTokens         time.Duration
}

// exhausted returns how long the upstream has no limit left, by its own headers.
func (o *Outcome) exhausted() time.Duration {
	var d time.Duration
	if o.RemainingRequests != nil && *o.RemainingRequests <= 0 {
		d = o.ResetRequests
	}
	if o.RemainingTokens != nil && *o.RemainingTokens <= 0 {
		d = max(d, o.ResetTokens)
	}
	return d
}

// plain reports whether the outcome changes only counters.
func (o *Outcome) plain() bool {
	if o.Kind == RateLimited || o.Kind == Credential || o.Kind == Overloaded && o.RetryAfter > 0 {
		return false
	}
	return o.exhausted() == 0
}
