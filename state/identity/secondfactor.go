package identity

import (
	"slices"
	"time"

	"stagedoor/state"
)

// SecondFactor makes the codes that a user types beside the password (RFC 6238).
type SecondFactor struct {
	Secret []byte `json:"secret"`
	// Step is the time step of the last code that was used. Its codes and all earlier ones are refused.
	Step int64 `json:"step"`
	// Recovery has the hashes of the codes, each of which replaces the device once.
	Recovery []state.Hash `json:"recovery"`
	Since    time.Time    `json:"since"`
}

// UseStep returns a copy in which the codes up to step are used, and false if they were used before.
func (f *SecondFactor) UseStep(step int64) (*SecondFactor, bool) {
	used := *f
	used.Step = step
	return &used, step > f.Step
}

// UseRecovery returns a copy without the recovery code of this hash, and false if there is none.
func (f *SecondFactor) UseRecovery(hash state.Hash) (*SecondFactor, bool) {
	used := *f
	used.Recovery = slices.DeleteFunc(slices.Clone(f.Recovery), func(h state.Hash) bool { return h.Equal(hash) })
	return &used, len(used.Recovery) < len(f.Recovery)
}
