package share

import (
	"sync"
	"time"
)

// Cache keeps values by owner and key. When it is full, the owner with most slots loses its oldest
// value (see Latest), so no owner pushes out the values of another. The caches of the gateway for
// hints and for what was sent already are of this type. Any goroutine may use a Cache.
type Cache[V any] struct {
	size int
	life time.Duration
	now  func() time.Time

	mu     sync.Mutex
	values map[cacheKey]*cached[V]
	slots  *Latest[*cached[V]]
}

// cacheKey names a value. Keys often come from providers, so two owners may have equal ones.
type cacheKey struct{ owner, key string }

// cached is a value of the cache.
type cached[V any] struct {
	key     cacheKey
	slots   int
	expires time.Time // zero if the value does not expire
	value   V         // the zero value once it was removed or replaced
}

// NewCache returns a Cache of a number of slots. Values expire after life by the clock now; with a
// life of 0 they do not expire, and now may be nil.
func NewCache[V any](slots int, life time.Duration, now func() time.Time) *Cache[V] {
	return &Cache[V]{size: slots, life: life, now: now, values: make(map[cacheKey]*cached[V]),
		slots: NewLatest[*cached[V]](slots)}
}

// Put keeps a value, which takes a number of slots, in place of any that the owner has under key.
// A value of more slots than the cache has is not kept, and one of more slots than the owner's share
// only while other owners leave it the room.
func (c *Cache[V]) Put(owner, key string, value V, slots int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(cacheKey{owner, key}, value, slots)
}

// Add is like Put for a value of one slot, but only if the owner has no value under key. It
// reports whether the value was added.
func (c *Cache[V]) Add(owner, key string, value V) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{owner, key}
	if c.get(k) != nil {
		return false
	}
	c.put(k, value, 1)
	return true
}

// Get returns the value that the owner has under key. ok is false if there is none, or not any more.
func (c *Cache[V]) Get(owner, key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.get(cacheKey{owner, key}); e != nil {
		return e.value, true
	}
	return value, false
}

// Remove removes the value that the owner has under key. Its slots are used again when they are the
// oldest ones of the owner.
func (c *Cache[V]) Remove(owner, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.values[cacheKey{owner, key}]; e != nil {
		c.remove(e)
	}
}

// Len returns how many values there are. Expired ones count until they are looked up or replaced.
func (c *Cache[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.values)
}

// get returns the entry of a key, or nil. An entry that has expired is removed when it is looked for, so that no
// sweep is needed.
func (c *Cache[V]) get(key cacheKey) *cached[V] {
	e := c.values[key]
	if e != nil && !e.expires.IsZero() && !c.now().Before(e.expires) {
		c.remove(e)
		return nil
	}
	return e
}

// put stores a value that takes a number of slots. It pushes out the oldest values of the owner with the most, and a
// value that is larger than the whole cache is not stored.
func (c *Cache[V]) put(key cacheKey, value V, slots int) {
	if slots > c.size {
		return
	}
	var expires time.Time
	if c.life > 0 {
		expires = c.now().Add(c.life)
	}
	before := c.values[key]
	if before != nil && before.slots == slots {
		before.value, before.expires = value, expires
		return
	}
	if before != nil {
		c.remove(before)
	}
	e := &cached[V]{key: key, slots: slots, expires: expires, value: value}
	c.values[key] = e
	for range slots {
		if old, full := c.slots.Add(key.owner, e); full {
			c.remove(old)
			if old == e { // more slots would only push out other values
				return
			}
		}
	}
}

// remove forgets a value. The entry itself stays in its slots until they are used again.
func (c *Cache[V]) remove(e *cached[V]) {
	var none V
	e.value = none
	if c.values[e.key] == e {
		delete(c.values, e.key)
	}
}
