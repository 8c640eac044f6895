package kit

import (
	"errors"
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Lane is the priority of a message in its mailbox. Messages of lower lanes are always handled first.
type Lane uint8

// The lanes are named after the limiter for which they were made. A message without a lane belongs to LaneControl.
const (
	LaneControl Lane = iota
	LaneRelease
	LaneAcquire
	laneCount
)

// Laned is implemented by messages that choose their lane.
type Laned interface{ Lane() Lane }

// Reason says why a message was not handled.
type Reason uint8

// The reasons that reach Reject.
const (
	ReasonStopped Reason = iota + 1 // the actor has stopped
	ReasonFull                      // the acquire lane is full
	ReasonFailed                    // the actor failed and is not up again
	ReasonDead                      // there is no such actor
)

// String returns the reason for logs.
func (r Reason) String() string {
	switch r {
	case ReasonStopped:
		return "stopped"
	case ReasonFull:
		return "full"
	case ReasonFailed:
		return "failed"
	case ReasonDead:
		return "dead"
	}
	return "unknown"
}

// Rejecter is implemented by messages with a waiting caller. Reject may be called on any goroutine, must not block,
// and may race with a reply, of which the first one counts.
type Rejecter interface{ Reject(Reason) }

// Lanes configures a LaneMailbox. The zero value has three unbounded lanes.
type Lanes struct {
	// Bound is the number of messages that LaneAcquire holds. 0 means no bound.
	Bound int
	// FailFast refuses LaneAcquire while the actor has failed and waits for its restart, so that callers do not
	// wait through the back-off.
	FailFast bool
}

// LaneMailbox is a mailbox of three lanes in strict order; system messages come before all of them.
// It never blocks and never drops a message silently. It refuses a message that does not fit on the
// sender's goroutine, and the messages that are left when the actor stops. Any goroutine may post.
//
// At most one goroutine runs the mailbox at a time. running says that there is one, and it is set
// under the same lock under which a message is added, so that a message never waits without a
// goroutine that will come to it.
type LaneMailbox struct {
	config Lanes
	kind   *kind
	system *System // nil if the actor is not listed
	inline bool    // see Inline

	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	process    func() // m.run, bound once because Schedule would allocate it each time

	mu        sync.Mutex
	internal  ring // the library's own messages
	lanes     [laneCount]ring
	running   bool // a goroutine is in run, or was scheduled
	suspended bool // the actor failed and waits for its supervisor
	closed    bool // the actor has stopped
}

var _ actor.Mailbox = (*LaneMailbox)(nil)

// RegisterHandlers implements actor.Mailbox. The PID can be found by name a moment before this call, so that messages
// may be waiting already.
func (m *LaneMailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.invoker, m.dispatcher, m.process = invoker, dispatcher, m.run
}

// Start implements actor.Mailbox. The message Started has woken the mailbox already.
func (m *LaneMailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *LaneMailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for i := range m.lanes {
		n += m.lanes[i].count
	}
	return n
}

// PostUserMessage implements actor.Mailbox. A batch of messages counts as one message here.
func (m *LaneMailbox) PostUserMessage(message any) {
	lane := laneOf(message)
	m.mu.Lock()
	if reason := m.refuses(lane); reason != 0 {
		m.mu.Unlock()
		m.reject(message, reason)
		return
	}
	if m.inline && m.empty() && m.wake(!m.suspended) {
		m.mu.Unlock()
		m.runFrom(message) // no message is before it, so it needs no lane
		return
	}
	m.lanes[lane].push(message)
	m.kind.depth.Add(1)
	wake := m.wake(!m.suspended)
	m.mu.Unlock()
	if wake {
		m.schedule()
	}
}

// empty reports whether no message waits.
func (m *LaneMailbox) empty() bool {
	waiting := m.internal.count
	for i := range m.lanes {
		waiting += m.lanes[i].count
	}
	return waiting == 0
}

// PostSystemMessage implements actor.Mailbox.
func (m *LaneMailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.internal.push(message)
	wake := m.wake(true)
	m.mu.Unlock()
	if wake {
		m.schedule()
	}
}

// schedule runs the mailbox: on the goroutine of the caller if it is inline, and on one of the dispatcher otherwise.
func (m *LaneMailbox) schedule() {
	if m.inline {
		m.process()
	} else {
		m.dispatcher.Schedule(m.process)
	}
}

// inlineMost is the number of messages that a sender handles before it returns.
const inlineMost = 32

// wake reports whether the caller must schedule a run. m.mu must be held.
func (m *LaneMailbox) wake(runnable bool) bool {
	if m.running || !runnable || m.invoker == nil {
		return false
	}
	m.running = true
	return true
}

// refuses returns why a message is not taken, or 0 if it is. m.mu must be held.
func (m *LaneMailbox) refuses(lane Lane) Reason {
	if m.closed {
		return ReasonStopped
	}
	if lane != LaneAcquire {
		return 0
	}
	if m.suspended && m.config.FailFast {
		return ReasonFailed
	}
	if m.config.Bound > 0 && m.lanes[lane].count >= m.config.Bound {
		return ReasonFull
	}
	return 0
}

// Close refuses all messages that wait and all later ones. The mailbox calls it when its actor has stopped.
func (m *LaneMailbox) Close() {
	m.mu.Lock()
	m.closed = true
	left := m.lanes
	m.lanes = [laneCount]ring{}
	m.mu.Unlock()
	for i := range left {
		m.rejectAll(&left[i], ReasonStopped)
	}
}

// rejectAll rejects all messages of a lane that was taken out of the mailbox.
func (m *LaneMailbox) rejectAll(left *ring, reason Reason) {
	m.kind.depth.Add(-int64(left.count))
	for message := left.pop(); message != nil; message = left.pop() {
		m.reject(message, reason)
	}
}

// reject rejects a message. A message without Reject becomes a dead letter, so that it is counted.
func (m *LaneMailbox) reject(message any, reason Reason) {
	if r, ok := actor.UnwrapEnvelopeMessage(message).(Rejecter); ok {
		m.kind.rejected.Add(1)
		r.Reject(reason)
		return
	}
	if c, ok := m.invoker.(actor.Context); ok {
		c.ActorSystem().DeadLetter.SendUserMessage(c.Self(), message)
	}
}

// errGoexit is the failure of an actor whose Receive called runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit in Receive")

// run handles the messages that wait.
func (m *LaneMailbox) run() { m.runFrom(nil) }

// runFrom handles the user message first, unless it is nil, and then the messages that wait.
func (m *LaneMailbox) runFrom(first any) {
	for m.batch(first) {
		first = nil
	}
}

// batch handles messages until none waits or one of them panics.
func (m *LaneMailbox) batch(first any) (again bool) {
	var message any
	drained := false
	defer func() {
		if drained {
			return
		}
		if reason := recover(); reason != nil {
			m.invoker.EscalateFailure(reason, message)
			again = true
			return
		}
		// After Goexit this goroutine ends, so another one must run the mailbox.
		m.invoker.EscalateFailure(errGoexit, message)
		m.dispatcher.Schedule(m.process)
	}()
	for i := 1; ; i++ {
		switch {
		case m.inline && i > inlineMost:
			drained = true
			m.dispatcher.Schedule(m.process)
			return false
		case i > m.dispatcher.Throughput():
			i = 1
			runtime.Gosched()
		}
		var system bool
		if message = first; message == nil {
			message, system = m.next()
		}
		first = nil
		switch {
		case message == nil:
			drained = true
			return false
		case system:
			m.handleSystem(message)
		default:
			m.invoker.InvokeUserMessage(message)
		}
	}
}

// next returns the next message, or marks the mailbox idle.
func (m *LaneMailbox) next() (message any, system bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if message = m.internal.pop(); message != nil {
		return message, true
	}
	if !m.suspended {
		for i := range m.lanes {
			if message = m.lanes[i].pop(); message != nil {
				m.kind.depth.Add(-1)
				return message, false
			}
		}
	}
	m.running = false
	return nil, false
}

// handleSystem handles a message of the library about the actor's life.
func (m *LaneMailbox) handleSystem(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend()
		return
	case *actor.ResumeMailbox:
		m.mu.Lock()
		m.suspended = false
		m.mu.Unlock()
		return
	}
	if _, first := message.(*actor.Started); first {
		m.list()
	}
	m.invoker.InvokeSystemMessage(message)
	// An actor stops inside a system message, which is its Stop or the Terminated of its last child. Only its
	// guard has seen that.
	c, ok := m.invoker.(actor.Context)
	if !ok {
		return
	}
	if g, ok := c.Actor().(*guard); ok && g.stopped && !m.isClosed() {
		m.Close()
		g.system.announceStop(c.Self().Id)
	}
}

// isClosed reports whether the actor has stopped.
func (m *LaneMailbox) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// suspend keeps messages until the supervisor has decided about a failed actor.
func (m *LaneMailbox) suspend() {
	m.mu.Lock()
	m.suspended = true
	var left ring
	if m.config.FailFast {
		left, m.lanes[LaneAcquire] = m.lanes[LaneAcquire], ring{}
	}
	m.mu.Unlock()
	m.rejectAll(&left, ReasonFailed)
}

// laneOf returns the lane of a message, also inside an envelope of Request or headers.
func laneOf(message any) Lane {
	if m, ok := actor.UnwrapEnvelopeMessage(message).(Laned); ok {
		return min(m.Lane(), laneCount-1)
	}
	return LaneControl
}
