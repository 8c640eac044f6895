// Package share bounds what is in use of a resource at a time, and divides it among
// those who use it. A Pool has a capacity in units: requests, bytes, jobs, connections.
//
// # The rule
//
// An owner may hold at most half of what the other owners leave free, and always the
// pool's least amount as long as that is free. So one owner alone holds half of the
// pool at most, a second one half of the rest, and an owner that comes late finds room.
// An owner is a user, or a key without a user; requests without a key are counted for
// their client's address. The caller chooses the name.
//
// # Concurrency
//
// Any goroutine may use a Pool. A Pool never waits: a claim is granted or refused.
//
// # Errors
//
// Every refusal is a *Refused, which names the pool and says whether the owner's share
// or the whole pool is used up.
package share

import (
	"fmt"
	"sync"
)

// The pools of the gateway.
const (
	Requests   = "requests"   // requests under way
	Bodies     = "bodies"     // bytes of request bodies
	Memory     = "memory"     // bytes of memory that requests take beyond their bodies
	Background = "background" // background responses under way
	Videos     = "videos"     // video jobs under way
	Content    = "content"    // bytes of pictures and uploads on disk
	Files      = "files"      // pictures and uploads on disk
	Watchers   = "watchers"   // connections that watch, and long polls
	Webhooks   = "webhooks"   // deliveries of webhooks that wait
	Tries      = "tries"      // tries of deliveries under way at one endpoint of webhooks
	Passwords  = "passwords"  // passwords that are hashed, and those that wait for it
	Usage      = "usage"      // rows of usage that wait to be written
)

// Refused is the error of a claim that a pool does not grant.
type Refused struct {
	Pool string // the name of the pool
	// Share reports that the owner's own share is used up. Otherwise the whole pool is.
	Share bool
}

func (r *Refused) Error() string {
	if r.Share {
		return fmt.Sprintf("the owner's share of the pool %q is used up", r.Pool)
	}
	return fmt.Sprintf("the pool %q is full", r.Pool)
}

// OfShare reports whether the owner's share is used up. Packages that must not import this
// one ask for it by an interface.
func (r *Refused) OfShare() bool { return r.Share }

// Pool is a bounded number of units. The zero Pool is not usable, see New.
type Pool struct {
	name string

	mu       sync.Mutex
	capacity int64 // 0: no bound
	least    int64
	used     int64
	refused  [2]int64         // claims for which there was no room, and those beyond a share
	owners   map[string]int64 // what each owner holds; owners that hold nothing are not in it
}

// New returns a pool of capacity units; 0 is a pool without a bound. An owner may
// always hold least units while they are free, even where its share is smaller, but
// never more than half of the pool by that rule. The least amount is 1 unit at least.
func New(name string, capacity, least int64) *Pool {
	return &Pool{name: name, capacity: capacity, least: least, owners: make(map[string]int64)}
}

// Resize changes the capacity. Units that are in use stay in use.
func (p *Pool) Resize(capacity int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capacity = capacity
}

// Take claims n units for an owner. The error is a *Refused.
func (p *Pool) Take(owner string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check(owner, n); err != nil {
		return p.count(err)
	}
	p.add(owner, n)
	return nil
}

// Check returns the error that Take would return, and claims nothing.
func (p *Pool) Check(owner string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count(p.check(owner, n))
}

// Refusal returns the error that Take would return, or nil, and counts no refusal. A decision that may be made again
// uses it, and calls CountRefusal once it is final.
func (p *Pool) Refusal(owner string, n int64) *Refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check(owner, n)
}

// CountRefusal counts a claim that was refused after Refusal.
func (p *Pool) CountRefusal(refused *Refused) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.count(refused)
}

// Adopt counts n units that are in use already, such as those of an earlier process,
// whether there is room for them or not.
func (p *Pool) Adopt(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(owner, n)
}

// Move hands n units of one owner to another if that one's share has room for them.
// After an error they are still the first one's.
func (p *Pool) Move(from, to string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from == to {
		return nil
	}
	p.add(from, -n)
	if own := p.owners[to]; p.capacity > 0 && own+n > p.share(own) {
		p.add(from, n)
		return p.count(&Refused{Pool: p.name, Share: true})
	}
	p.add(to, n)
	return nil
}

// Give returns n units of an owner.
func (p *Pool) Give(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(owner, -n)
}

// Used returns the units in use.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Held returns the units that an owner holds.
func (p *Pool) Held(owner string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[owner]
}

// Largest returns the owner that holds most, or "" if none holds anything.
func (p *Pool) Largest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	largest := ""
	for owner, n := range p.owners {
		if most := p.owners[largest]; n > most || n == most && owner < largest {
			largest = owner
		}
	}
	return largest
}

// Stats are a pool's figures for an operator.
type Stats struct {
	Name     string
	Used     int64
	Capacity int64 // 0: no bound
	Owners   int   // that hold something
	// Full and Shares count the claims that were refused because the pool was full, or
	// because the owner's share was used up.
	Full, Shares int64
}

// Stats returns the figures as they are now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Name: p.name, Used: p.used, Capacity: p.capacity, Owners: len(p.owners), Full: p.refused[0], Shares: p.refused[1]}
}

// Most returns what one owner may hold when nobody else holds anything; 0 is a pool
// without a bound. A claim for more than that can never be granted.
func (p *Pool) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.capacity == 0 {
		return 0
	}
	return max(p.capacity/2, 1)
}

// count counts a refusal, if it is one, and returns it.
func (p *Pool) count(refused *Refused) error {
	switch {
	case refused == nil:
		return nil
	case refused.Share:
		p.refused[1]++
	default:
		p.refused[0]++
	}
	return refused
}

func (p *Pool) check(owner string, n int64) *Refused {
	own := p.owners[owner]
	switch {
	case p.capacity == 0:
		return nil
	case own+n > p.share(own):
		return &Refused{Pool: p.name, Share: true}
	case p.used+n > p.capacity:
		return &Refused{Pool: p.name}
	}
	return nil
}

// share is how much an owner may hold that holds own.
func (p *Pool) share(own int64) int64 {
	least := max(min(p.least, p.capacity/2), 1)
	return max((p.capacity-(p.used-own))/2, least)
}

func (p *Pool) add(owner string, n int64) {
	p.used += n
	if left := p.owners[owner] + n; left > 0 {
		p.owners[owner] = left
	} else {
		delete(p.owners, owner)
	}
}
