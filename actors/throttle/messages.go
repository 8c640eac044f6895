package throttle

import (
	"log/slog"

	"stagedoor/actors/kit"
)

// A ticket is sent three times at most, each time as another message type, so that no
// message has to be allocated.
type (
	// acquiring asks for a grant. If the mailbox rejects it, the ticket is refused.
	acquiring ticket
	// releasing frees the place; the ticket contains the outcome.
	releasing ticket
	// cancelling removes an abandoned ticket from the queue.
	cancelling ticket
)

// releasingFree releases a request that bypassed the actor and has no ticket.
type releasingFree struct {
	client  *Client
	outcome Outcome
	counted bool // the breaker has counted it, and may have to be judged
}

type (
	configuring struct{ config Config }
	// pausing makes the actor read the shared pause flag again.
	pausing struct{}
	// waking makes the actor dispatch its queue again.
	waking   struct{}
	statsAsk struct{ kit.Reply[Stats] }
	queueAsk struct{ kit.Reply[[]Waiter] }
	// borrowing tells the actor which units it has.
	borrowing struct {
		kit.Reply[demand]
		limits [Limits]holding
	}
)

func (*acquiring) Lane() kit.Lane     { return kit.LaneAcquire }
func (*releasing) Lane() kit.Lane     { return kit.LaneRelease }
func (*releasingFree) Lane() kit.Lane { return kit.LaneRelease }

// LogValue keeps API keys out of logs when a message is printed.
func (*acquiring) LogValue() slog.Value { return slog.StringValue("throttle.acquiring") }

// LogValue is as acquiring's.
func (*releasing) LogValue() slog.Value { return slog.StringValue("throttle.releasing") }

// LogValue is as acquiring's.
func (*cancelling) LogValue() slog.Value { return slog.StringValue("throttle.cancelling") }

// IgnoreDeadLetterLogging marks messages that may arrive after the actor has stopped.
func (*releasing) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*releasingFree) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*cancelling) IgnoreDeadLetterLogging() {}

// Reject implements kit.Rejecter. The ticket is refused as Shed if the mailbox is full, and
// as Closed if there is no actor.
func (m *acquiring) Reject(reason kit.Reason) {
	t := (*ticket)(m)
	why := Closed
	if reason == kit.ReasonFull {
		why = Shed
	}
	if t.decide(&Refused{Reason: why, RetryAfter: minRetry}) {
		t.permit.client.shared.refused[why].Add(1)
	}
}

// Reject implements kit.Rejecter. It frees the place although the actor does not run.
func (m *releasing) Reject(kit.Reason) { m.permit.client.shared.inFlight.Add(-1) }

// Reject implements kit.Rejecter.
func (m *releasingFree) Reject(kit.Reason) { m.client.shared.inFlight.Add(-1) }
