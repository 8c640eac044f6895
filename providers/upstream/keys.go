package upstream

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// RefusedRest is the time for which a key rests after the provider refused it.
const RefusedRest = 10 * time.Minute

// Keys returns a provider's keys in turn and rests ("benches") those that the provider refused. A key whose
// credentials were refused rests for all models. A key that reached its rate limit rests for one model,
// because providers count per key and model. If all keys rest, they are used anyway, so that the client
// gets the provider's own refusal. Keys is safe for concurrent use.
type Keys struct {
	keys []string
	next atomic.Uint64

	mu      sync.Mutex
	resting map[restingKey]time.Time // the end of each rest
	any     atomic.Bool              // whether resting or refused has entries
	refused map[string]time.Time     // when the provider last refused a key, of which each of them may be the only one

	refusals atomic.Int64 // how often the provider refused a key
}

// restingKey is a key with the model for which it rests, or with "" for all models.
type restingKey struct{ key, model string }

// NewKeys returns a rotation of keys.
func NewKeys(keys []string) *Keys {
	return &Keys{keys: keys, resting: make(map[restingKey]time.Time), refused: make(map[string]time.Time)}
}

// All returns all keys, for removing them from texts of the provider. The caller must not change the slice.
func (k *Keys) All() []string { return k.keys }

// Only returns the only key, or "" if the provider has none. ok is false if there are several keys.
func (k *Keys) Only() (key string, ok bool) {
	switch len(k.keys) {
	case 0:
		return "", true
	case 1:
		return k.keys[0], true
	}
	return "", false
}

// Take returns the next key that does not rest for the model at now, or "" if the provider has no keys.
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

// Refuse rests key for all models until d after now.
func (k *Keys) Refuse(key string, now time.Time, d time.Duration) { k.restKey(key, "", now, d) }

// maxResting bounds the entries. A new entry replaces those that have ended, or else the one that ends first.
// A key whose entry is replaced is tried again sooner, which costs one refused request.
const maxResting = 256

// restKey lets a key rest for a time, for one model or for all. The only key never rests, because nothing else could be
// tried.
func (k *Keys) restKey(key, model string, now time.Time, d time.Duration) {
	if len(k.keys) < 2 || d <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.resting[restingKey{key, model}]; !known && len(k.resting) >= maxResting {
		k.makeRoom(now)
	}
	k.resting[restingKey{key, model}] = now.Add(d)
	k.any.Store(true)
}

// makeRoom removes the entries that have ended, or else the entry of a model that ends first. k.mu must be held.
func (k *Keys) makeRoom(now time.Time) {
	maps.DeleteFunc(k.resting, func(_ restingKey, until time.Time) bool { return !until.After(now) })
	if len(k.resting) < maxResting {
		return
	}
	var first restingKey
	for b, until := range k.resting {
		if b.model != "" && (first.model == "" || until.Before(k.resting[first])) {
			first = b
		}
	}
	delete(k.resting, first)
}

// RecordFailure rests key as its failure f for the model requires. A refused key rests for all models for
// RefusedRest. A key at its rate limit rests for this model as long as the provider said, and so does one that got a
// refusal for overload with a time, because providers shed load by key and model. A request that can never fit says
// nothing about its key.
func (k *Keys) RecordFailure(key, model string, f *Failure, now time.Time) {
	switch {
	case f.Class == Credential:
		k.refusals.Add(1)
		k.mu.Lock()
		k.refused[key] = now
		k.mu.Unlock()
		k.any.Store(true)
		k.restKey(key, "", now, RefusedRest)
	case f.Class == RateLimited && !f.TooLarge:
		k.restKey(key, model, now, max(f.RetryAfter, rateLimitRest))
	case f.Class == Overloaded:
		k.restKey(key, model, now, f.RetryAfter)
	}
}

// RecordSuccess ends the rest of a key that the provider had refused and has accepted now. It costs one atomic read as
// long as no key was refused.
func (k *Keys) RecordSuccess(key string) {
	if !k.any.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, refused := k.refused[key]; refused {
		delete(k.refused, key)
		delete(k.resting, restingKey{key, ""})
	}
}

// KeyState says whether a key can be used. It has nothing of the key itself.
type KeyState struct {
	Refused bool          // the provider refused it, and has not accepted it since
	Rest    time.Duration // until all models may use it again, or 0
}

// States returns the states of all keys, in the order of the configuration.
func (k *Keys) States(now time.Time) []KeyState {
	all := make([]KeyState, len(k.keys))
	if !k.any.Load() {
		return all
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, key := range k.keys {
		_, all[i].Refused = k.refused[key]
		for b, until := range k.resting {
			if b.key == key {
				all[i].Rest = max(all[i].Rest, until.Sub(now))
			}
		}
	}
	return all
}

// Resting returns how many keys rest at now for some model or all of them, and how many keys there are.
func (k *Keys) Resting(now time.Time) (resting, of int) {
	for _, s := range k.States(now) {
		if s.Rest > 0 {
			resting++
		}
	}
	return resting, len(k.keys)
}

// Refusals returns how often the provider refused one of the keys. It never falls.
func (k *Keys) Refusals() int64 { return k.refusals.Load() }

// rateLimitRest is the rest of a key whose provider named no time.
const rateLimitRest = 5 * time.Second

// Rest returns how long all keys still rest for the model, or 0 if one of them can be used.
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

// Usable returns how many keys do not rest for the model at now.
func (k *Keys) Usable(model string, now time.Time) int {
	n := 0
	for _, key := range k.keys {
		if k.rest(key, model, now) <= 0 {
			n++
		}
	}
	return n
}

// rest returns how long key still rests for model.
func (k *Keys) rest(key, model string, now time.Time) time.Duration {
	if !k.any.Load() {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(k.resting[restingKey{key, ""}].Sub(now), k.resting[restingKey{key, model}].Sub(now))
}
