package flow

import "time"

// Phase is what a request is doing.
type Phase uint8

// The phases. A request that is tried again goes through some of them again.
const (
	// Starting: accepted, and on its way to its first attempt.
	Starting Phase = iota
	// Queued: in front of a provider's gate, or as a job in the provider's own queue.
	Queued
	// Waiting: sent, and without a piece of answer yet.
	Waiting
	// Replying: pieces of the answer come.
	Replying
	// Making: a provider is at work on a job that tells its progress.
	Making
	// Resting: between two attempts.
	Resting
	// Ended: over, whatever became of it.
	Ended
)

// Phases are all of them in order.
func Phases() []Phase { return []Phase{Starting, Queued, Waiting, Replying, Making, Resting, Ended} }

func (p Phase) String() string {
	switch p {
	case Starting:
		return "starting"
	case Queued:
		return "queued"
	case Waiting:
		return "waiting"
	case Replying:
		return "replying"
	case Making:
		return "in_progress"
	case Resting:
		return "resting"
	}
	return "ended"
}

// Mark is when a request came into a phase.
type Mark struct {
	Phase   Phase
	Attempt int // from 1; 0: before the first
	After   time.Duration
}

// A mark is packed into a word, so that it can be read while the next is written:
// the phase, the attempt, and the microseconds since the beginning.
const (
	markPhase   = 56
	markAttempt = 48
	markAfter   = 1<<markAttempt - 1
)

func (m Mark) pack() uint64 {
	return uint64(m.Phase)<<markPhase | uint64(min(m.Attempt, 255))<<markAttempt | uint64(max(m.After.Microseconds(), 0))&markAfter
}

func unpack(w uint64) Mark {
	return Mark{Phase: Phase(w >> markPhase), Attempt: int(w >> markAttempt & 255), After: time.Duration(w&markAfter) * time.Microsecond}
}
