package state

import (
	"sync"
	"time"
)

// clock is the time of the state: the wall clock, but never earlier than it was, also not earlier than before a
// restart. A record that has expired stays expired and a later record has a later time when the wall clock is set back.
//
// While the wall clock is behind, the clock runs at half speed, so that records that are made meanwhile do not live for
// ever and the wall clock catches up.
type clock struct {
	wall func() time.Time

	mu   sync.Mutex
	seen time.Time // the last time of wall
	last time.Time // the last result of now
}

// now returns the time. It never goes back: after the wall clock was set back, it runs at half speed until the wall
// clock has caught up. Records that were written before stay older than those written after.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.wall()
	passed := max(at.Sub(c.seen), 0) // by the monotonic clock, if wall has one
	c.seen = at
	// Without its monotonic part a time is compared by the wall clock, as the times in records are.
	c.last = later(at.Round(0), c.last.Add(passed/2))
	return c.last
}

// notBefore makes sure that the clock is never earlier than at.
func (c *clock) notBefore(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.wall()
	c.last = later(c.last, at)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Now returns the time at which commands are decided and records expire.
func (s *State) Now() time.Time { return s.now() }

const (
	// clockName is the fact that keeps the time.
	clockName = "clock/mark"
	// markEvery bounds the time by which a crash can set the clock back. The time is kept as part of a commit that is
	// made anyway, or of a Sweep.
	markEvery = 10 * time.Second
)

// markTime keeps the time, if that was not done lately.
func (tx *Tx) markTime() error {
	if mark, found := tx.View().TimeFact(clockName); found && tx.now.Sub(mark) < markEvery {
		return nil
	}
	return tx.PutTimeFact(clockName, tx.now)
}

// restoreClock begins where the process before left the time.
func (s *State) restoreClock() {
	if mark, found := s.View().TimeFact(clockName); found {
		s.clock.notBefore(mark)
	}
}

// lastMark keeps the time with which the writer ends. Where the disk is full, the mark before it counts.
func (s *State) lastMark() {
	mark, found := s.View().TimeFact(clockName)
	if s.Err() != nil || !found || !s.now().After(mark) {
		return
	}
	put := func(tx *Tx) error { return tx.PutTimeFact(clockName, tx.now) }
	s.group(&request{cmd: put, answer: func(error) {}})
}
