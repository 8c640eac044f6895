package dialogue

// Enforced says what the gateway itself does to a reply, because the upstream cannot be asked for it. Encoders fill
// it, and actors/text does it to the events of the reply. The client gets what it asked for, so nothing of it is
// reported as a loss.
type Enforced struct {
	// Stop lists stop sequences. A choice ends before the first that appears in its text.
	Stop []string
	// NoAnswer is set if the client wants no answer (max_tokens 0, which fills the vendor's cache of prompts or scores
	// a prompt), and the upstream makes one of at least one token. The client gets the usage and no text.
	NoAnswer bool
}

// Empty reports whether nothing is to be done.
func (e Enforced) Empty() bool { return len(e.Stop) == 0 && !e.NoAnswer }

// The gateway looks for a bounded number of stop sequences in every piece of a reply, and holds back no more text than
// one of them has. Some shapes have no bound, and a body holds millions.
const (
	maxEnforcedStops = 64
	maxEnforcedStop  = 4 << 10 // bytes
)

// UpstreamStop returns the stop sequences that an encoder sends: the first most of those that accepts allows. The
// gateway enforces the others within its bounds, and the rest is a loss. accepts may be nil.
func (r *Request) UpstreamStop(most int, accepts func(string) bool, rep *Report) []string {
	var sent, enforced []string
	for _, s := range r.Stop {
		switch {
		case s == "":
		case len(sent) < most && (accepts == nil || accepts(s)):
			sent = append(sent, s)
		case len(enforced) == maxEnforcedStops, len(s) > maxEnforcedStop:
			rep.Lose("stop:truncated")
		default:
			enforced = append(enforced, s)
		}
	}
	r.Enforced.Stop = enforced
	return sent
}

// UpstreamMaxTokens returns the max_tokens that an encoder sends to an upstream which makes at least least tokens. A
// raised limit is a loss, because the tokens are paid for. If the client wants no answer, it gets none all the same.
func (r *Request) UpstreamMaxTokens(least int64, rep *Report) int64 {
	if *r.MaxTokens >= least {
		return *r.MaxTokens
	}
	rep.Lose("max_tokens:raised")
	r.Enforced.NoAnswer = *r.MaxTokens <= 0
	return least
}
