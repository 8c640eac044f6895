package throttle

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// KeyLimits holds the limits of one API key of the gateway. Zero is no limit.
type KeyLimits struct {
	RequestsPerMinute int
	TokensPerMinute   int
	MaxInFlight       int
}

// Share returns an equal part of a limit for each of so many processes, at least 1. No limit stays no limit.
func Share(limit, processes int) int {
	if limit <= 0 {
		return limit
	}
	return max(limit/max(processes, 1), 1)
}

// share returns the part of the limits that one of so many processes has.
func (l KeyLimits) share(processes int) KeyLimits {
	return KeyLimits{Share(l.RequestsPerMinute, processes), Share(l.TokensPerMinute, processes),
		Share(l.MaxInFlight, processes)}
}

// none reports whether there is no limit to count for.
func (l KeyLimits) none() bool { return l == KeyLimits{} }

// Keys limits the gateway's own API keys. It has no queue and decides at once. The limits
// are an argument of each call, so a changed limit takes effect with the next request. Any
// goroutine may use it.
type Keys struct {
	seed   maphash.Seed
	shards [keyShards]keyShard
	most   int // keys per shard

	processes atomic.Int64 // that share the limits
}

const (
	keyShards = 16
	// evictLook is the number of keys that an eviction looks at to find one to forget.
	evictLook = 16
)

// keyShard is a part of the keys with a lock of its own, so that keys seldom wait for each other.
type keyShard struct {
	mu   sync.Mutex
	keys map[string]*keyState
}

// keyState is one key's counters, under its shard's lock.
type keyState struct {
	requests, tokens bucket
	inFlight         int
	used             time.Time
}

// NewKeys returns a table of at most about max keys. Beyond that it forgets keys that have
// nothing in flight. It prefers keys with full buckets, because forgetting them loses nothing.
func NewKeys(max int) *Keys {
	k := &Keys{seed: maphash.MakeSeed(), most: (max + keyShards - 1) / keyShards}
	for i := range k.shards {
		k.shards[i].keys = make(map[string]*keyState)
	}
	return k
}

// ShareLimits says how many processes share the limits, of which each has an equal part from now on.
func (k *Keys) ShareLimits(processes int) { k.processes.Store(int64(processes)) }

// Pass is an admitted request of a key. The caller must release it.
type Pass struct {
	// Requests and Tokens are the levels after the last call, for headers.
	Requests, Tokens Level

	shard    *keyShard
	key      *keyState
	limits   KeyLimits
	charge   time.Duration
	released atomic.Bool
}

// Admit counts a request against the request rate and the concurrency of its key, which are
// known before the body is read. A refusal costs nothing and contains the time after which
// the request would be admitted. An admitted request counts against the rate even if it
// fails later. The caller should call Charge as soon as the tokens are known.
func (k *Keys) Admit(key string, limits KeyLimits, now time.Time) (*Pass, *Refused) {
	if limits.none() {
		return &Pass{}, nil
	}
	limits = limits.share(int(k.processes.Load()))
	shard := &k.shards[maphash.String(k.seed, key)%keyShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	s := shard.get(key, now, k.most)
	s.configure(now, limits)
	if refused := s.refuse(now, limits); refused != nil {
		return nil, refused
	}
	s.requests.take(1)
	s.inFlight++
	return &Pass{
		shard:    shard,
		key:      s,
		limits:   limits,
		Requests: s.requests.level(now),
		Tokens:   s.tokens.level(now),
	}, nil
}

// Charge counts the estimated tokens of an admitted request, or refuses it with the time
// after which they would fit. It is called once, before Release.
func (p *Pass) Charge(tokens int, now time.Time) *Refused {
	if p.key == nil {
		return nil
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	s := p.key
	s.configure(now, p.limits)
	p.Requests = s.requests.level(now)
	if wait := s.tokens.wait(tokens); wait > 0 {
		return s.refused(now, wait, LimitTokens)
	}
	p.charge = s.tokens.take(tokens)
	p.Tokens = s.tokens.level(now)
	return nil
}

// Release frees the place and replaces the estimate by the tokens used. A negative number
// means that the use is not known, and the estimate stays. Later calls and calls of a nil
// Pass do nothing. Release also works if the key was forgotten.
func (p *Pass) Release(tokensUsed int) {
	if p == nil || p.key == nil || p.released.Swap(true) {
		return
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.key.inFlight--
	if tokensUsed >= 0 {
		p.key.tokens.settle(p.charge, tokensUsed)
	}
}

// configure applies the current limits and refills the buckets.
func (s *keyState) configure(now time.Time, limits KeyLimits) {
	s.used = now
	s.requests.configure(now, limits.RequestsPerMinute, time.Minute)
	s.tokens.configure(now, limits.TokensPerMinute, time.Minute)
	s.requests.refill(now)
	s.tokens.refill(now)
}

// refuse returns the refusal if the key has reached a limit, or nil. It names the limit whose wait
// is longest.
func (s *keyState) refuse(now time.Time, limits KeyLimits) *Refused {
	var wait time.Duration
	var limit string
	if limits.MaxInFlight > 0 && s.inFlight >= limits.MaxInFlight {
		// The end of a request cannot be foreseen, and a client that retries after a second is cheap.
		wait, limit = minRetry, LimitConcurrency
	}
	if w := s.requests.wait(1); w > wait {
		wait, limit = w, LimitRequests
	}
	if limit == "" {
		return nil
	}
	return s.refused(now, wait, limit)
}

// refused returns the refusal of a request that the key may send after wait. limit names the limit
// that was reached.
func (s *keyState) refused(now time.Time, wait time.Duration, limit string) *Refused {
	return &Refused{Reason: LimitReached, RetryAfter: wait, Limit: limit,
		Requests: s.requests.level(now), Tokens: s.tokens.level(now)}
}

// get returns the state of a key and adds it if necessary.
func (s *keyShard) get(key string, now time.Time, most int) *keyState {
	state := s.keys[key]
	if state != nil {
		return state
	}
	if len(s.keys) >= most {
		s.forgetOne(now)
	}
	state = &keyState{}
	s.keys[key] = state
	return state
}

// forgetOne looks at a few keys, in the map's random order, and forgets the
// first that is as good as new, else the one unused for longest.
func (s *keyShard) forgetOne(now time.Time) {
	var oldest string
	var since time.Time
	looked := 0
	for key, state := range s.keys {
		if state.inFlight == 0 {
			if state.full(now) {
				delete(s.keys, key)
				return
			}
			if since.IsZero() || state.used.Before(since) {
				oldest, since = key, state.used
			}
		}
		if looked++; looked == evictLook && !since.IsZero() {
			break
		}
	}
	if !since.IsZero() {
		delete(s.keys, oldest)
	}
}

// full reports whether both buckets are full. Such a state is the same as a new one and need not be
// kept.
func (s *keyState) full(now time.Time) bool {
	s.requests.refill(now)
	s.tokens.refill(now)
	return s.requests.credit >= s.requests.burst && s.tokens.credit >= s.tokens.burst
}
