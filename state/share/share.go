// Package share bounds what is in use of a resource at a time, and divides it among
// those who use it. A Pool has a capacity in units: requests, bytes, jobs, connections.
//
// # The rule
//
// An owner may hold at most half of what the other owners leave free, and always the
// pool's least amount as long as that is free. So one owner alone holds half of the
// pool at most, a second one half of the rest, and an owner that comes late finds room.
// Halves are rounded down. The least amount that applies is the one that New was given, but
// at most half of the capacity and at least 1.
//
// Where units are returned within the time of a request, SetAlone lets an owner for whom nothing must be left free hold
// nearly all of them.
//
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
// or the whole pool is used up. If both are, it says the share. Refusals are counted in Stats:
// Take, Check and Move count them, and Refusal leaves that to CountRefusal.
//
// No method checks its number of units. It must not be negative, and an owner must hold what
// it gives or moves.
package share

import (
	"fmt"
	"sync"
)

// The pools of the gateway.
const (
	Requests      = "requests"      // requests in flight
	Bodies        = "bodies"        // bytes of request bodies
	Memory        = "memory"        // bytes of memory that requests take beyond their bodies
	Background    = "background"    // background responses in progress
	Videos        = "videos"        // video jobs in progress
	Content       = "content"       // bytes of pictures and uploads on disk
	Files         = "files"         // pictures and uploads on disk
	Watchers      = "watchers"      // connections that watch, and long polls
	Relays        = "relays"        // replies between gateways that last as long as a request
	Sockets       = "sockets"       // bytes that WebSockets of responses keep
	Webhooks      = "webhooks"      // deliveries of webhooks that wait
	Tries         = "tries"         // attempts to deliver to one endpoint of webhooks that are in flight
	Passwords     = "passwords"     // passwords that are hashed, and those that wait for it
	Usage         = "usage"         // rows of usage that wait to be written
	Conversations = "conversations" // conversations that are kept
	Kept          = "kept"          // bytes of replies that are kept while requests run and shortly after
	Replies       = "replies"       // bytes of finished replies on disk, for repeated requests
	SignIns       = "sign_ins"      // conversations with OpenID providers
	RequestLog    = "request_log"   // ended requests that wait to be written to their log
)

// Refused is the error of a claim that a pool does not grant.
type Refused struct {
	Pool string // the name of the pool
	// Share reports that the owner's own share is used up. Otherwise the whole pool is.
	Share bool
}

// Error implements error.
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
	capacity int64            // 0: no bound
	least    int64            // as given to New; share applies its bounds
	used     int64            // by all owners together
	refused  [2]int64         // claims for which there was no room, and those beyond a share
	owners   map[string]int64 // what each owner holds; owners that hold nothing are not in it
	alone    func(owner string) bool
}

// keptFree says how much of a pool an owner without others must leave free: one unit of this many.
const keptFree = 32

// SetAlone sets a function that reports whether there is no other owner than this one that could want a share. Such an
// owner may then hold by Move up to capacity - capacity/keptFree - 1 units. The function is called only for what is
// beyond a share, and must not use the Pool. Call SetAlone before the Pool is used.
func (p *Pool) SetAlone(alone func(owner string) bool) { p.alone = alone }

// New returns a pool of capacity units. A capacity of 0 means no bound. least is the number of
// units that an owner may hold even if its share is smaller, as long as they are free.
func New(name string, capacity, least int64) *Pool {
	return &Pool{name: name, capacity: capacity, least: least, owners: make(map[string]int64)}
}

// Resize changes the capacity. Units in use stay in use, also if there are more of them than the
// new capacity. Claims are refused then until enough have been given back.
func (p *Pool) Resize(capacity int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capacity = capacity
}

// Take claims n units for an owner, which returns them by Give. The error is a *Refused, is
// counted, and claims nothing.
func (p *Pool) Take(owner string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check(owner, n); err != nil {
		return p.count(err)
	}
	p.add(owner, n)
	return nil
}

// Check returns the error that Take would return, and counts it as Take does, but claims nothing.
// Use it for a claim that is refused early or made elsewhere.
func (p *Pool) Check(owner string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count(p.check(owner, n))
}

// Refusal returns the refusal that Take would return, or nil. It claims nothing and counts nothing. Use it for a
// decision that may be made again, such as in a transaction, and call CountRefusal once the decision is final.
func (p *Pool) Refusal(owner string, n int64) *Refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check(owner, n)
}

// CountRefusal counts a result of Refusal in Stats. It ignores nil.
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

// Move makes n units of the owner from units of the owner to, if the share of to, or what SetAlone lets it hold, has
// room for them.
// The units count as free while that is checked. An error is a counted *Refused, and the units stay
// with from. Move does nothing if the owners are the same.
func (p *Pool) Move(from, to string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from == to {
		return nil
	}
	p.add(from, -n)
	if own := p.owners[to]; p.capacity > 0 && own+n > p.share(own) && !p.allowAlone(to, own+n) {
		p.add(from, n)
		return p.count(&Refused{Pool: p.name, Share: true})
	}
	p.add(to, n)
	return nil
}

// Give returns n units of an owner to the pool. An owner must not give more than it holds, because
// the pool would then count less than is in use.
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

// Largest returns the owner that holds most, or "" if none holds anything. Of several such owners it
// is the first by name. A caller that must free units takes them from this owner.
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
	Owners   int   // owners that hold at least one unit
	// Full and Shares count the claims that were refused because the pool was full, or
	// because the owner's share was used up.
	Full, Shares int64
}

// Stats returns the figures as they are now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Name: p.name, Used: p.used, Capacity: p.capacity, Owners: len(p.owners),
		Full: p.refused[0], Shares: p.refused[1],
	}
}

// Most returns the units that one owner may hold if no other owner holds any: half of the capacity,
// rounded down, and at least 1. It is 0 for a pool without a bound. A larger claim is never granted.
func (p *Pool) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.capacity == 0 {
		return 0
	}
	return max(p.capacity/2, 1)
}

// count adds a refusal to Stats and returns it as an error. It returns a nil error for nil. p.mu must
// be held.
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

// check returns the refusal of a claim for n units, or nil. It claims and counts nothing. p.mu must
// be held.
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

// share returns the most units that an owner may hold. own is what it holds now, which does not
// count as used by others. The pool must have a bound, and p.mu must be held.
func (p *Pool) share(own int64) int64 {
	least := max(min(p.least, p.capacity/2), 1)
	return max((p.capacity-(p.used-own))/2, least)
}

// allowAlone reports whether the owner may hold n units because there is no other owner. p.mu must be held.
func (p *Pool) allowAlone(owner string, n int64) bool {
	return p.alone != nil && n < p.capacity-p.capacity/keptFree && p.alone(owner)
}

// add adds n units, or takes -n of them away, without any check. p.mu must be held.
func (p *Pool) add(owner string, n int64) {
	p.used += n
	if left := p.owners[owner] + n; left > 0 {
		p.owners[owner] = left
	} else {
		delete(p.owners, owner)
	}
}
