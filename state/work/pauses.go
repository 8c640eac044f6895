package work

import (
	"fmt"
	"strings"
	"time"

	"stagedoor/state"
)

// Pause says that an operator has paused a provider. It lasts until it is ended, also across
// restarts, because an operator who stops a provider does not want the next deployment to start it
// again.
type Pause struct {
	Provider string
	Since    time.Time
}

// pausePrefix is the prefix of the facts that store pauses. Pauses have no table, because few
// providers are paused at a time.
const pausePrefix = "pause/"

// PauseProvider records that a provider is paused. If it is paused already, the time of the pause stays. The provider
// need not be configured, so that it can be paused before it is added. The error is state.ErrInvalid for a name that
// cannot be one.
func PauseProvider(tx *state.Tx, provider string) error {
	if provider == "" || len(provider) > state.MaxID {
		return fmt.Errorf("%w: a provider's name of %d bytes", state.ErrInvalid, len(provider))
	}
	name := pausePrefix + provider
	if _, paused := tx.View().Fact(name); paused {
		return nil
	}
	tx.Audit(pauseEvent("provider.pause", provider))
	return tx.PutTimeFact(name, tx.Now())
}

func pauseEvent(action, provider string) state.AuditEvent {
	return state.AuditEvent{Action: action, Target: state.Target{Kind: "provider", ID: provider}}
}

// EndPause removes the pause of a provider, if there is one.
func EndPause(tx *state.Tx, provider string) {
	if _, paused := FindPause(tx.View(), provider); paused {
		tx.Audit(pauseEvent("provider.resume", provider))
		tx.RemoveFact(pausePrefix + provider)
	}
}

// FindPause returns the pause of a provider, if it is paused.
func FindPause(v state.View, provider string) (p Pause, found bool) {
	since, found := v.TimeFact(pausePrefix + provider)
	return Pause{provider, since}, found
}

// ListPauses returns the pauses by provider.
func ListPauses(v state.View) []Pause {
	var all []Pause
	for name := range v.Facts(pausePrefix) {
		p, _ := FindPause(v, strings.TrimPrefix(name, pausePrefix))
		all = append(all, p)
	}
	return all
}
