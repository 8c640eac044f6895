package auth

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
)

// failures counts the unknown keys that addresses send. Its table has a fixed size,
// and the hash of an address chooses its slot, so addresses share slots. Sharing is harmless,
// because a known key is never refused: only the error of an unknown key changes. Behind a proxy
// all clients have one address, so a limit on known keys would lock all of them out.
type failures struct {
	most  atomic.Int64 // failures a minute; 0 sets no limit
	seed  maphash.Seed
	slots [4096]atomic.Uint64 // the minute in the upper half, its failures in the lower
}

// newFailures returns counts that are all zero. The seed keeps clients from choosing addresses that share a slot.
func newFailures() *failures { return &failures{seed: maphash.MakeSeed()} }

// add counts a failure. It returns how long the address has to wait, or 0 if it has failures left.
func (f *failures) add(from netip.Addr, now time.Time) time.Duration {
	most := f.most.Load()
	if most == 0 {
		return 0
	}
	if from.Is6() {
		p, _ := from.WithZone("").Prefix(64) // the network of one customer
		from = p.Addr()
	}
	slot := &f.slots[maphash.Comparable(f.seed, from)%uint64(len(f.slots))]
	minute := uint64(now.Unix() / 60)
	for {
		old := slot.Load()
		next := old + 1
		if old>>32 != minute {
			next = minute<<32 | 1
		}
		if slot.CompareAndSwap(old, next) {
			if int64(next&(1<<32-1)) <= most {
				return 0
			}
			return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
		}
	}
}

// tooManyFailures returns the error of an address that has sent too many unknown keys in this minute.
func tooManyFailures(wait time.Duration) *dialogue.Error {
	return dialogue.TooManyFailures("too_many_invalid_keys",
		"too many unknown API keys came from this address, try again later", wait)
}
