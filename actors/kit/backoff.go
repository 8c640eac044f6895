package kit

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Failure describes the failure of a child for Backoff.Report.
type Failure struct {
	Child     string // the actor's name
	Reason    string // from panicText; contains no message
	Count     int    // number of failures within the window of the strategy
	Directive actor.Directive
	Delay     time.Duration // before the restart
	Exhausted bool          // Count exceeds the limit
}

// Backoff restarts a failed child after Initial, twice Initial, four times Initial and so on up to Max. The child's
// mailbox keeps its messages meanwhile, unless Lanes.FailFast is set. The library's strategy of a similar name grows
// linearly and without a limit.
//
// Make one value for each supervised kind and share it between actors. A restart stops the children of the restarted
// actor first, so restart only actors without children, or with children that can be spawned again.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
	// Window is the time for which a failure counts. 0 means one minute.
	Window time.Duration
	// Limit is the number of failures in the window up to which the child is restarted. Beyond it AtLimit
	// decides, and Report gets Exhausted. 0 means no limit.
	Limit int
	// AtLimit is the action beyond Limit. The zero value restarts with the delay Max.
	AtLimit AtLimit
	// Decide, if not nil, chooses the action for a reason. Otherwise the child is always restarted.
	Decide func(reason any) actor.Directive
	// Report, if not nil, gets every failure. It runs on a goroutine of the actors and must not block.
	Report func(Failure)
}

// AtLimit is the action for a child that fails too often.
type AtLimit uint8

// Actions of Backoff beyond its limit.
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

// plan counts the failure and sets the delay, or what AtLimit says if there were too many.
func (b *Backoff) plan(rs *actor.RestartStatistics, failure *Failure) {
	window := b.Window
	window = cmp.Or(window, time.Minute)
	if rs.NumberOfFailures(window) == 0 {
		rs.Reset() // the library itself never forgets a failure
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

// delay returns the wait before the restart after so many failures.
func (b *Backoff) delay(count int) time.Duration {
	delay := b.Initial
	for range count - 1 {
		if delay *= 2; delay >= b.Max {
			return b.Max
		}
	}
	return delay
}

// report calls Report and survives a panic of it.
func (b *Backoff) report(failure Failure) {
	if b.Report == nil {
		return
	}
	// At the top level this runs on the failing child's goroutine without the protection of an actor, so a
	// panic would end the process.
	defer func() { _ = recover() }()
	b.Report(failure)
}

// apply carries out the directive, a restart after its delay.
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
		// RestartChildren only sends, so any goroutine may call it. If the child stopped meanwhile, it causes
		// one counted dead letter.
		time.AfterFunc(failure.Delay, func() { supervisor.RestartChildren(child) })
	}
}
