package throttle

import (
	"log/slog"
	"time"

	"stagedoor/actors/kit"
)

// A ticket is sent three times at most, each time as another message, so that
// none of them has to be allocated.
type (
	// acquiring asks for a place. If it is rejected, so is the ticket.
	acquiring ticket
	// releasing gives the place back, with the outcome in it.
	releasing ticket
	// cancelling takes an abandoned ticket out of the queue.
	cancelling ticket
)

// releasingFree is releasing without a ticket.
type releasingFree struct {
	client  *Client
	outcome Outcome
	counted bool // the breaker has counted it, and may have to be judged
}

type (
	configuring struct{ config Config }
	// pausing tells that what is shared says something else by now.
	pausing struct{}
	cooling struct{ d time.Duration }
	// waking makes the actor look at its queue again.
	waking   struct{}
	statsAsk struct{ kit.Reply[Stats] }
	queueAsk struct{ kit.Reply[[]Waiter] }
)

func (*acquiring) Lane() kit.Lane     { return kit.LaneAcquire }
func (*releasing) Lane() kit.Lane     { return kit.LaneRelease }
func (*releasingFree) Lane() kit.Lane { return kit.LaneRelease }

// LogValue keeps keys out of logs, whoever prints a message.
func (*acquiring) LogValue() slog.Value { return slog.StringValue("throttle.acquiring") }

// LogValue is as acquiring's.
func (*releasing) LogValue() slog.Value { return slog.StringValue("throttle.releasing") }

// LogValue is as acquiring's.
func (*cancelling) LogValue() slog.Value { return slog.StringValue("throttle.cancelling") }

// IgnoreDeadLetterLogging marks messages that may find the actor gone.
func (*releasing) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*releasingFree) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*cancelling) IgnoreDeadLetterLogging() {}

// Reject implements kit.Rejecter: a full mailbox sheds, a missing actor is closed.
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

// Reject implements kit.Rejecter: the place is free even if nobody is there to hear.
func (m *releasing) Reject(kit.Reason) { m.permit.client.shared.inFlight.Add(-1) }

// Reject implements kit.Rejecter.
func (m *releasingFree) Reject(kit.Reason) { m.client.shared.inFlight.Add(-1) }
