package flow

import "time"

// Phase is the current activity of a request.
type Phase uint8

// The phases. A request that is retried goes through some of them again.
const (
	// Starting means that the request was accepted and has made no attempt yet.
	Starting Phase = iota
	// Queued means that it waits for a provider's limiter, or as a job in the provider's own queue.
	Queued
	// Waiting means that it was sent and no chunk of the reply has arrived.
	Waiting
	// Replying means that chunks of the reply arrive.
	Replying
	// Making means that a provider works on a job and reports its progress.
	Making
	// Resting means that it waits between two attempts.
	Resting
	// Ended means that it is over, with any outcome.
	Ended
)

// Phases returns all phases in order.
func Phases() []Phase { return []Phase{Starting, Queued, Waiting, Replying, Making, Resting, Ended} }

// String returns the phase as pages and the admin API name it.
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

// Mark is the time at which a request entered a phase.
type Mark struct {
	Phase   Phase
	Attempt int // from 1, or 0 before the first attempt
	After   time.Duration
}

// A mark is packed into one word, so that it can be read while the next one is written. It has the phase, the attempt,
// and the microseconds since the beginning.
const (
	markPhase   = 56
	markAttempt = 48
	markAfter   = 1<<markAttempt - 1
)

// pack puts a mark into one word, so that it is stored and read atomically without a lock.
func (m Mark) pack() uint64 {
	return uint64(m.Phase)<<markPhase | uint64(min(m.Attempt, 255))<<markAttempt | uint64(
		max(m.After.Microseconds(), 0),
	)&markAfter
}

// unpack returns the mark of a word. Marks are packed so that one atomic store makes a phase visible.
func unpack(w uint64) Mark {
	return Mark{
		Phase:   Phase(w >> markPhase),
		Attempt: int(w >> markAttempt & 255),
		After:   time.Duration(w&markAfter) * time.Microsecond,
	}
}
