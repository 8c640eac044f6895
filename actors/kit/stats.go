package kit

import (
	"slices"
	"strings"
	"sync/atomic"
)

// kind counts what happens to the actors of one kind.
type kind struct {
	name      string
	started   atomic.Int64
	stopped   atomic.Int64
	failed    atomic.Int64
	restarted atomic.Int64
	contained atomic.Int64
	rejected  atomic.Int64
	depth     atomic.Int64
	listed    atomic.Int64
	failure   atomic.Pointer[LastFailure]
}

// Stats is a snapshot of a System. Its numbers are read one after the other and not at one instant.
type Stats struct {
	Kinds       []KindStats // by name
	DeadLetters map[string]int64
	Goroutines  int64 // functions of Go that still run
	Crashed     int64 // functions of Go that panicked
}

// KindStats counts the actors of one kind since the start.
type KindStats struct {
	Kind      string
	Spawned   int64
	Stopped   int64
	Failed    int64 // panics that were passed to supervision
	Restarted int64
	Contained int64        // panics while stopping or restarting, which were survived
	Rejected  int64        // messages refused by a mailbox
	Depth     int64        // messages in the mailboxes now
	Last      *LastFailure // nil if there was none
}

// Live returns the number of actors of the kind.
func (k KindStats) Live() int64 { return k.Spawned - k.Stopped }

// snapshot reads the counters one after the other, so they may be of slightly different moments.
func (k *kind) snapshot() KindStats {
	restarted := k.restarted.Load()
	return KindStats{
		Kind: k.name,
		// Each new instance gets Started, but a restart is not a spawn.
		Spawned:   k.started.Load() - restarted,
		Stopped:   k.stopped.Load(),
		Failed:    k.failed.Load(),
		Restarted: restarted,
		Contained: k.contained.Load(),
		Rejected:  k.rejected.Load(),
		Depth:     k.depth.Load(),
		Last:      k.failure.Load(),
	}
}

// Stats returns the counters. Any goroutine may call it.
func (s *System) Stats() Stats {
	stats := Stats{
		DeadLetters: s.dead.snapshot(),
		Goroutines:  s.goroutines.Load(),
		Crashed:     s.crashed.Load(),
	}
	s.kinds.Range(func(_, k any) bool {
		stats.Kinds = append(stats.Kinds, k.(*kind).snapshot())
		return true
	})
	slices.SortFunc(stats.Kinds, func(a, b KindStats) int { return strings.Compare(a.Kind, b.Kind) })
	return stats
}

// Kind returns the counters of one kind, which are zero for an unknown kind.
func (s Stats) Kind(name string) KindStats {
	for _, k := range s.Kinds {
		if k.Kind == name {
			return k
		}
	}
	return KindStats{Kind: name}
}

// kindOf returns the counters of a kind and creates them at its first use.
func (s *System) kindOf(name string) *kind {
	k, ok := s.kinds.Load(name)
	if !ok {
		k, _ = s.kinds.LoadOrStore(name, &kind{name: name})
	}
	return k.(*kind)
}
