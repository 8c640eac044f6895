package upstream

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Bench is how long a refused key rests.
const Bench = 10 * time.Minute

// Keys hands out a provider's keys in turn and benches those that the provider refused: a
// key whose credentials were refused for all models, a key that reached its rate limit for
// one model, because providers count by key and model. If all keys are benched they are
// handed out all the same, so that the provider's own refusal is heard. Safe for
// concurrent use.
type Keys struct {
	keys []string
	next atomic.Uint64

	mu      sync.Mutex
	benched map[benched]time.Time // until when
	any     atomic.Bool           // whether benched has entries
}

// benched is a key, for one model or ("") for all of them.
type benched struct{ key, model string }

// NewKeys makes a rotation.
func NewKeys(keys []string) *Keys {
	return &Keys{keys: keys, benched: make(map[benched]time.Time)}
}

// All is every key, for taking them out of what a provider says. It must not be
// written to.
func (k *Keys) All() []string { return k.keys }

// Only returns the only key, or "" if there is none; false: there is a choice.
func (k *Keys) Only() (key string, ok bool) {
	switch len(k.keys) {
	case 0:
		return "", true
	case 1:
		return k.keys[0], true
	}
	return "", false
}

// Take returns the next key that is not benched for the model at now, or "" if the provider
// has no keys.
func (k *Keys) Take(now time.Time, model string) string {
	if only, ok := k.Only(); ok {
		return only
	}
	start := k.next.Add(1)
	for i := range uint64(len(k.keys)) {
		key := k.keys[(start+i)%uint64(len(k.keys))]
		if k.rest(key, model, now) <= 0 {
			return key
		}
	}
	return k.keys[start%uint64(len(k.keys))]
}

// Refuse benches key for all models until d from now.
func (k *Keys) Refuse(key string, now time.Time, d time.Duration) { k.bench(key, "", now, d) }

// maxBenched bounds the entries. A new one takes the place of those that have ended, else of the
// one that ends first. A key whose entry is lost is tried again sooner, so it costs one refusal.
const maxBenched = 256

func (k *Keys) bench(key, model string, now time.Time, d time.Duration) {
	if len(k.keys) < 2 || d <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.benched[benched{key, model}]; !known && len(k.benched) >= maxBenched {
		k.makeRoom(now)
	}
	k.benched[benched{key, model}] = now.Add(d)
	k.any.Store(true)
}

// makeRoom removes the entries that have ended, else the one of a model that ends first. k.mu must be held.
func (k *Keys) makeRoom(now time.Time) {
	maps.DeleteFunc(k.benched, func(_ benched, until time.Time) bool { return !until.After(now) })
	if len(k.benched) < maxBenched {
		return
	}
	var first benched
	for b, until := range k.benched {
		if b.model != "" && (first.model == "" || until.Before(k.benched[first])) {
			first = b
		}
	}
	delete(k.benched, first)
}

// Judge benches key for what its use for the model brought: for all models and for long if
// the key was refused, and for this model until the provider said if its rate was. A
// request that can never fit says nothing about the key.
func (k *Keys) Judge(key, model string, f *Failure, now time.Time) {
	switch {
	case f.Class == Credential:
		k.bench(key, "", now, Bench)
	case f.Class == RateLimited && !f.TooLarge:
		k.bench(key, model, now, max(f.RetryAfter, rateLimitRest))
	}
}

// rateLimitRest is how long a key rests whose provider named no time.
const rateLimitRest = 5 * time.Second

// Rest is how long all keys rest for the model; 0: one of them can be used.
func (k *Keys) Rest(model string, now time.Time) time.Duration {
	shortest := time.Duration(0)
	for i, key := range k.keys {
		d := max(k.rest(key, model, now), 0)
		if i == 0 || d < shortest {
			shortest = d
		}
	}
	return shortest
}

// Usable is how many keys do not rest for the model at now.
func (k *Keys) Usable(model string, now time.Time) int {
	n := 0
	for _, key := range k.keys {
		if k.rest(key, model, now) <= 0 {
			n++
		}
	}
	return n
}

// Benched is how many keys rest at now, for all models or for some, and how many there are.
func (k *Keys) Benched(now time.Time) (resting, of int) {
	if !k.any.Load() {
		return 0, len(k.keys)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := map[string]struct{}{}
	for b, until := range k.benched {
		if until.After(now) {
			keys[b.key] = struct{}{}
		}
	}
	return len(keys), len(k.keys)
}

// rest is how long a key rests for a model.
func (k *Keys) rest(key, model string, now time.Time) time.Duration {
	if !k.any.Load() {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(k.benched[benched{key, ""}].Sub(now), k.benched[benched{key, model}].Sub(now))
}
