package kit

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Tick is what a Timer sends to its actor. It goes in LaneControl.
type Tick struct{ generation uint64 }

// IgnoreDeadLetterLogging marks ticks: coming too late is normal for them.
func (*Tick) IgnoreDeadLetterLogging() {}

// Timer wakes one actor. It belongs to that actor: only Receive may use it. A
// tick that was under way when the timer was moved is recognised by its
// generation. An armed timer costs no goroutine.
type Timer struct {
	system     *System
	self       *actor.PID
	timer      *time.Timer
	generation uint64
	due        time.Time // zero: not armed
}

// NewTimer is a timer for self, not armed.
func (s *System) NewTimer(self *actor.PID) *Timer { return &Timer{system: s, self: self} }

// Wake asks for a tick at due. A timer armed for an earlier time stays: its
// owner looks again at that tick, which is cheaper than moving the timer at
// every message.
func (t *Timer) Wake(now, due time.Time) {
	if !t.due.IsZero() && !t.due.After(due) {
		return
	}
	t.Stop()
	t.due = due
	tick := &Tick{t.generation}
	t.timer = time.AfterFunc(max(due.Sub(now), 0), func() { t.system.Send(t.self, tick) })
}

// Stop disarms the timer; a tick under way becomes stale.
func (t *Timer) Stop() {
	t.generation++
	t.due = time.Time{}
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Fired says whether tick is the one asked for last, and disarms the timer.
func (t *Timer) Fired(tick *Tick) bool {
	if tick.generation != t.generation || t.due.IsZero() {
		return false
	}
	t.due = time.Time{}
	return true
}
