package state

import (
	"sync"
	"time"
)

// clock is the time of the state: the wall clock, but never earlier than it was,
// also not earlier than before a restart. What has expired stays expired and what
// comes later has a later time, whatever somebody does to the wall clock.
//
// While the wall clock is behind it goes at half speed, so that nothing that was
// made meanwhile lives for ever and the wall clock catches up.
type clock struct {
	wall func() time.Time

	mu   sync.Mutex
	seen time.Time // what wall said last
	last time.Time // what now said last
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.wall()
	passed := max(at.Sub(c.seen), 0) // by the monotonic clock, if wall has one
	c.seen = at
	// Without its monotonic part a time is compared by the wall clock, which is
	// what was written next to it.
	c.last = later(at.Round(0), c.last.Add(passed/2))
	return c.last
}

// notBefore makes sure that it is never earlier than at.
func (c *clock) notBefore(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.wall()
	c.last = later(c.last, at)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Now is the time by which everything here is decided and has expired.
func (s *State) Now() time.Time { return s.now() }

const (
	// clockName is the fact that keeps how late it was.
	clockName = "clock/mark"
	// markEvery is how much time a crash may take back: as part of a commit
	// that is made anyway, or of a Sweep.
	markEvery = 10 * time.Second
)

// markTime keeps how late it is, if that was not done lately.
func (tx *Tx) markTime() error {
	r := facts.get(tx.mem, clockName)
	if r != nil && tx.now.Sub(markOf(r.rec)) < markEvery {
		return nil
	}
	return facts.put(tx, fact{Name: clockName, Value: sequenceKey(uint64(tx.now.UnixNano()))})
}

// markOf is the time that a mark tells; one that tells nothing is the zero time.
func markOf(f fact) time.Time {
	if len(f.Value) != 8 {
		return time.Time{}
	}
	return time.Unix(0, int64(sequenceOf(f.Value))).UTC()
}

// restoreClock begins where the process before left the time.
func (s *State) restoreClock() {
	if r := facts.get(s.snapshot(), clockName); r != nil {
		s.clock.notBefore(markOf(r.rec))
	}
}

// lastMark keeps the time with which the writer ends.
func (s *State) lastMark() {
	r := facts.get(s.snapshot(), clockName)
	if s.Err() != nil || r == nil || !s.now().After(markOf(r.rec)) {
		return
	}
	mark := func(tx *Tx) error {
		return facts.put(tx, fact{Name: clockName, Value: sequenceKey(uint64(tx.now.UnixNano()))})
	}
	s.group(&request{cmd: mark, answer: func(error) {}}) // where the disk is full, the mark before counts
}
