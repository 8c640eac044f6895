package engine

import (
	"slices"
	"sync"
	"time"
)

const (
	// The latest keptPieces times of a target count, if they are not older than pieceAge. With fewer than
	// leastPieces there is no p95.
	keptPieces  = 128
	pieceAge    = 10 * time.Minute
	leastPieces = 20
	// maxPieceTargets bounds the targets that are measured. The names are those of the configuration and not those that
	// clients send, so that only reloads can reach the bound. A new target replaces the one that was idle for longest.
	maxPieceTargets = 512
)

// firstPieces records how long targets take to their first piece of reply, for models with hedge: p95. The zero value
// is ready. It is safe for concurrent use.
type firstPieces struct {
	mu      sync.Mutex
	targets map[pieceKey]*pieces
}

// pieceKey names a target of a model as the configuration does. Whole replies are not compared with streams.
type pieceKey struct {
	model, provider, target string
	stream                  bool
}

// pieces is a ring of the latest times of a target.
type pieces struct {
	took [keptPieces]time.Duration
	at   [keptPieces]time.Time
	n    int // recorded so far
}

// record adds a time to a target. It takes the time of an attempt that was cancelled before its first piece as the time
// that it had taken until then. Without those, the p95 would sink with each hedge, because slow attempts would be
// missing.
func (p *firstPieces) record(k pieceKey, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[k]
	if t == nil {
		if len(p.targets) >= maxPieceTargets {
			p.forgetIdlest()
		}
		if p.targets == nil {
			p.targets = make(map[pieceKey]*pieces)
		}
		t = new(pieces)
		p.targets[k] = t
	}
	t.took[t.n%keptPieces], t.at[t.n%keptPieces] = took, now
	t.n++
}

// forgetIdlest removes the target whose last time is the oldest.
func (p *firstPieces) forgetIdlest() {
	var idlest pieceKey
	var since time.Time
	for k, t := range p.targets {
		if at := t.at[(t.n-1)%keptPieces]; since.IsZero() || at.Before(since) {
			idlest, since = k, at
		}
	}
	delete(p.targets, idlest)
}

// p95 returns the time within which 95 of 100 first pieces of a target came lately, or 0 if there are too few to tell.
func (p *firstPieces) p95(k pieceKey, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[k]
	if t == nil {
		return 0
	}
	var recent [keptPieces]time.Duration
	all := recent[:0]
	for i := range min(t.n, keptPieces) {
		if now.Sub(t.at[i]) <= pieceAge {
			all = append(all, t.took[i])
		}
	}
	if len(all) < leastPieces {
		return 0
	}
	slices.Sort(all)
	return max(all[(len(all)*95+99)/100-1], 1)
}
