package work

import (
	"fmt"
	"strings"
	"time"

	"stagedoor/state"
)

// Pause says that an operator holds a provider back. It lasts until it is ended, also over restarts, because an
// operator who stops a provider does not mean to stop it until the next deployment only.
type Pause struct {
	Provider string
	Since    time.Time
}

// pausePrefix begins the names of the facts that are pauses. Pauses have no table of their own, because only a few
// providers are paused at a time.
const pausePrefix = "pause/"

// PauseProvider keeps that a provider is paused. A provider that is paused already keeps the time of its pause.
func PauseProvider(tx *state.Tx, provider string) error {
	if provider == "" || len(provider) > state.MaxID {
		return fmt.Errorf("%w: a provider's name of %d bytes", state.ErrInvalid, len(provider))
	}
	name := pausePrefix + provider
	if _, paused := tx.View().Fact(name); paused {
		return nil
	}
	return tx.PutTimeFact(name, tx.Now())
}

// EndPause removes the pause of a provider, if there is one.
func EndPause(tx *state.Tx, provider string) { tx.RemoveFact(pausePrefix + provider) }

// FindPause returns the pause of a provider.
func FindPause(v state.View, provider string) (p Pause, found bool) {
	since, found := v.TimeFact(pausePrefix + provider)
	return Pause{provider, since}, found
}

// ListPauses lists the providers that are paused, by name.
func ListPauses(v state.View) []Pause {
	var all []Pause
	for name := range v.Facts(pausePrefix) {
		p, _ := FindPause(v, strings.TrimPrefix(name, pausePrefix))
		all = append(all, p)
	}
	return all
}
