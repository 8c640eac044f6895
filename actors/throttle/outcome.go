package throttle

import "time"

// Kind is what became of a permitted request, in the failure classes of the
// upstream client.
type Kind uint8

// The kinds of outcome.
const (
	Success     Kind = iota
	RateLimited      // 429
	Overloaded       // 503, 529
	Transient        // 500, 502, 504, reset, timeout
	NotSent          // the upstream was never reached
	CallerFault      // 4xx that the caller caused
	Cancelled        // the caller left
	Credential       // the provider refused our key
	Unused           // the request was not even tried
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

// failure says whether the outcome counts against the upstream's health.
func (k Kind) failure() bool { return k == Overloaded || k == Transient || k == NotSent }

// alive says whether a probe with this outcome found a working upstream.
func (k Kind) alive() bool { return k == Success || k == RateLimited }

// unspent says whether the upstream surely used no tokens.
func (k Kind) unspent() bool {
	switch k {
	case RateLimited, NotSent, CallerFault, Credential, Unused:
		return true
	}
	return false
}

// Outcome is what a permit's owner learned. Only Kind is needed.
type Outcome struct {
	Kind Kind
	// Model is the model that a cool-down is about; "": that of the Ask.
	Model string
	// RetryAfter is the upstream's, for RateLimited and Overloaded.
	RetryAfter time.Duration
	// TokensUsed replaces the estimate; 0: not known, the estimate stays,
	// unless Kind says that none were used.
	TokensUsed int
	// What the upstream says is left, and until when that is so; nil: not said.
	RemainingRequests, RemainingTokens *int
	ResetRequests, ResetTokens         time.Duration
}

// exhausted is how long the upstream says that nothing is left.
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

// plain says whether an outcome changes nothing but counters.
func (o *Outcome) plain() bool {
	if o.Kind == RateLimited || o.Kind == Credential || o.Kind == Overloaded && o.RetryAfter > 0 {
		return false
	}
	return o.exhausted() == 0
}
