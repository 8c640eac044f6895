package kit

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Tick is the message of a Timer to its actor. Its lane is LaneControl.
type Tick struct{ generation uint64 }

// IgnoreDeadLetterLogging marks ticks, which often arrive too late.
func (*Tick) IgnoreDeadLetterLogging() {}

// Timer wakes one actor. It belongs to that actor, so only Receive may use it. A tick that was in flight when the timer
// was moved is recognised by its generation. A timer that is set costs no goroutine.
type Timer struct {
	system     *System
	self       *actor.PID
	timer      *time.Timer
	generation uint64
	due        time.Time // zero if the timer is not set
}

// NewTimer returns a timer for self that is not set.
func (s *System) NewTimer(self *actor.PID) *Timer { return &Timer{system: s, self: self} }

// Wake requests a tick at due. A timer that is set for an earlier time stays, and its owner looks again at that tick.
// That is cheaper than moving the timer at every message.
func (t *Timer) Wake(now, due time.Time) {
	if !t.due.IsZero() && !t.due.After(due) {
		return
	}
	t.Stop()
	t.due = due
	tick := &Tick{t.generation}
	t.timer = time.AfterFunc(max(due.Sub(now), 0), func() { t.system.Send(t.self, tick) })
}

// Stop cancels the timer. A tick in flight becomes stale.
func (t *Timer) Stop() {
	t.generation++
	t.due = time.Time{}
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Fired reports whether tick is the latest one that was requested, and cancels the timer.
func (t *Timer) Fired(tick *Tick) bool {
	if tick.generation != t.generation || t.due.IsZero() {
		return false
	}
	t.due = time.Time{}
	return true
}
