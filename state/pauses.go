package state

import (
	"fmt"
	"strings"
	"time"
)

// Pause is a provider that an operator holds back. It lasts until somebody ends it,
// over restarts too: who stopped a provider did not mean until the next deployment.
type Pause struct {
	Provider string
	Since    time.Time
}

// pausePrefix begins the names of the facts that are pauses. Pauses have no table of their own, because only a few
// providers are paused at a time.
const pausePrefix = "pause/"

// Pause keeps that a provider is paused. One that is paused already keeps the time
// since when it is.
func (tx *Tx) Pause(provider string) error {
	if provider == "" || len(provider) > maxID {
		return fmt.Errorf("%w: a provider's name of %d bytes", ErrInvalid, len(provider))
	}
	name := pausePrefix + provider
	if facts.get(tx.mem, name) != nil {
		return nil
	}
	return facts.put(tx, fact{Name: name, Value: sequenceKey(uint64(tx.now.UnixNano()))})
}

// EndPause forgets that a provider is paused.
func (tx *Tx) EndPause(provider string) {
	if r := facts.get(tx.mem, pausePrefix+provider); r != nil {
		facts.remove(tx, r)
	}
}

// Pause finds the pause of a provider.
func (v View) Pause(provider string) (Pause, bool) {
	f, ok := found(facts.get(v.txn, pausePrefix+provider))
	return pauseOf(f), ok
}

// Pauses are the providers that are paused, by name.
func (v View) Pauses() []Pause {
	var all []Pause
	facts.from(v.txn, byID, terminated(pausePrefix), func(r *row[fact]) bool {
		ours := strings.HasPrefix(r.rec.Name, pausePrefix)
		if ours {
			all = append(all, pauseOf(r.rec))
		}
		return ours
	})
	return all
}

func pauseOf(f fact) Pause { return Pause{strings.TrimPrefix(f.Name, pausePrefix), markOf(f)} }
