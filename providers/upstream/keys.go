package upstream

import (
	"sync"
	"sync/atomic"
	"time"
)

// Bench is how long a refused key rests.
const Bench = 10 * time.Minute

// Keys hands out a provider's keys in turn and benches those the provider
// refused. If all are benched they are handed out all the
// same: a provider that refuses everything shall be heard doing so. Safe for concurrent use.
type Keys struct {
	keys []string
	next atomic.Uint64

	mu      sync.Mutex
	benched map[string]time.Time // until when
	any     atomic.Bool          // whether benched has entries
}

// NewKeys makes a rotation.
func NewKeys(keys []string) *Keys {
	return &Keys{keys: keys, benched: make(map[string]time.Time)}
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

// Take returns the next key that is not benched at now, or "" if the provider
// has none.
func (k *Keys) Take(now time.Time) string {
	if only, ok := k.Only(); ok {
		return only
	}
	start := k.next.Add(1)
	for i := range uint64(len(k.keys)) {
		key := k.keys[(start+i)%uint64(len(k.keys))]
		if !k.resting(key, now) {
			return key
		}
	}
	return k.keys[start%uint64(len(k.keys))]
}

// Refuse benches key until d from now.
func (k *Keys) Refuse(key string, now time.Time, d time.Duration) {
	if len(k.keys) < 2 || d <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.benched[key] = now.Add(d)
	k.any.Store(true)
}

// Judge benches key for what its use brought: a refusal for long, a rate limit
// until the provider said.
func (k *Keys) Judge(key string, f *Failure, now time.Time) {
	switch f.Class {
	case Credential:
		k.Refuse(key, now, Bench)
	case RateLimited:
		k.Refuse(key, now, max(f.RetryAfter, rateLimitRest))
	}
}

// rateLimitRest is how long a key rests whose provider named no time.
const rateLimitRest = 5 * time.Second

// Benched is how many keys rest at now, and how many there are.
func (k *Keys) Benched(now time.Time) (resting, of int) {
	for _, key := range k.keys {
		if k.resting(key, now) {
			resting++
		}
	}
	return resting, len(k.keys)
}

func (k *Keys) resting(key string, now time.Time) bool {
	if !k.any.Load() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	until, ok := k.benched[key]
	if ok && now.After(until) {
		delete(k.benched, key)
		k.any.Store(len(k.benched) > 0)
		return false
	}
	return ok
}
