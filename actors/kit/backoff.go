package kit

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Failure is what a supervisor reports about a child.
type Failure struct {
	Child     string // the actor's name
	Reason    string // see panicText: never a message body
	Count     int    // failures within the strategy's window
	Directive actor.Directive
	Delay     time.Duration // before the restart
	Exhausted bool          // more failures than the limit
}

// Backoff restarts a failed child after Initial, twice Initial, four times, up
// to Max; the child's mailbox keeps its messages meanwhile (see Lanes.FailFast).
// The library's strategy of a similar name grows linearly and without limit.
//
// One value is made per supervised kind and shared, not one per actor.
// A restart stops the children of the restarted actor first: only actors
// without children, or whose children can be spawned anew, are restarted.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
	// Window is how long a failure is remembered; 0: one minute.
	Window time.Duration
	// Limit is how many failures in the window are borne. Beyond it AtLimit
	// decides, and Report hears Exhausted. 0: no limit.
	Limit int
	// AtLimit is what happens beyond Limit; the zero value restarts with delay Max.
	AtLimit AtLimit
	// Decide may choose otherwise for a known reason; nil: always restart.
	Decide func(reason any) actor.Directive
	// Report hears of every failure, on a goroutine of the actors: it must not block.
	Report func(Failure)
}

// AtLimit says what becomes of a child that fails too often.
type AtLimit uint8

// What Backoff does beyond its limit.
const (
	KeepRestarting AtLimit = iota
	StopChild
)

var _ actor.SupervisorStrategy = (*Backoff)(nil)

// HandleFailure implements actor.SupervisorStrategy.
func (b *Backoff) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	rs *actor.RestartStatistics, reason, message any) {
	directive := actor.RestartDirective
	if b.Decide != nil {
		directive = b.Decide(reason)
	}
	failure := Failure{Child: child.GetId(), Reason: panicText(reason), Directive: directive}
	if directive == actor.RestartDirective {
		b.plan(rs, &failure)
	}
	b.report(failure)
	b.apply(supervisor, child, failure, reason, message)
}

func (b *Backoff) plan(rs *actor.RestartStatistics, failure *Failure) {
	window := b.Window
	if window == 0 {
		window = time.Minute
	}
	if rs.NumberOfFailures(window) == 0 {
		rs.Reset() // the library never forgets a failure time by itself
	}
	rs.Fail()
	failure.Count = rs.NumberOfFailures(window)
	failure.Delay = b.delay(failure.Count)
	failure.Exhausted = b.Limit > 0 && failure.Count > b.Limit
	if !failure.Exhausted {
		return
	}
	failure.Delay = b.Max
	if b.AtLimit == StopChild {
		failure.Directive, failure.Delay = actor.StopDirective, 0
	}
}

func (b *Backoff) delay(count int) time.Duration {
	delay := b.Initial
	for range count - 1 {
		if delay *= 2; delay >= b.Max {
			return b.Max
		}
	}
	return delay
}

func (b *Backoff) report(failure Failure) {
	if b.Report == nil {
		return
	}
	// At the top level this runs on the failing child's goroutine, outside of
	// any actor's protection: a panic would end the process.
	defer func() { _ = recover() }()
	b.Report(failure)
}

func (b *Backoff) apply(supervisor actor.Supervisor, child *actor.PID, failure Failure, reason, message any) {
	switch failure.Directive {
	case actor.ResumeDirective:
		supervisor.ResumeChildren(child)
	case actor.StopDirective:
		supervisor.StopChildren(child)
	case actor.EscalateDirective:
		supervisor.EscalateFailure(reason, message)
	default:
		if failure.Delay <= 0 {
			supervisor.RestartChildren(child)
			return
		}
		// RestartChildren only sends, which any goroutine may do. A child that
		// stopped meanwhile makes it one counted dead letter.
		time.AfterFunc(failure.Delay, func() { supervisor.RestartChildren(child) })
	}
}
