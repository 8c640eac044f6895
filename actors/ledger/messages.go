package ledger

import (
	"errors"
	"log/slog"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/money"
)

// message is any message that an account's actor accepts besides those of the library. The
// set is closed and contains only pointer types.
type message interface{ ledgerMessage() }

// errPending is returned by the core if the reply is sent when the operation is durable.
var errPending = errors.New("pending")

// none is the reply of messages that have no result.
type none struct{}

// holding asks for a hold. If Ask.Durable is set, the reply waits for the journal.
type holding struct {
	kit.Reply[*hold]
	ask     Ask
	granted *hold // owned by the actor
}

// done implements waiter.
func (m *holding) done(err error) {
	if err != nil {
		m.Resolve(nil, err)
		return
	}
	m.Resolve(m.granted, nil)
}

// leaving releases a hold whose caller no longer waits for it.
type leaving struct{ asked *holding }

// resuming asks for the open hold of a request, after a restart.
type resuming struct {
	kit.Reply[resumed]
	request string
}

// resumed is the reply to resuming: the hold and the amount that it has reserved, in micro-dollars.
type resumed struct {
	hold   *hold
	amount int64
}

// extending asks for amount more micro-dollars on a hold. The reply waits for the journal only if the journal decides.
type extending struct {
	reply
	hold   *hold
	amount int64
}

type progressing struct {
	hold   *hold
	amount int64
}

// settling ends a hold with a charge. The reply comes when the charge is durable.
type settling struct {
	reply
	hold       *hold
	settlement Settlement
}

// charging settles a hold for a caller that does not wait.
type charging struct {
	hold       *hold
	settlement Settlement
	logger     *slog.Logger
}

// Reject implements kit.Rejecter. An account whose actor has failed reads the disk anew, which
// does not know holds that were not journaled.
func (m *charging) Reject(reason kit.Reason) {
	logUncharged(m.logger, m.hold, m.settlement.Amount, reason)
}

type releasing struct {
	hold    *hold
	reason  string
	receipt *money.Receipt
}

type adjusting struct {
	reply
	amount int64
	reason string
	once   string
	by     state.Actor
}

// balanceAsk asks for the balance. Money that waits for the journal counts as held.
type balanceAsk struct{ kit.Reply[Balance] }

// movingAsk asks whether the end of a request's hold is still to be journaled.
type movingAsk struct {
	kit.Reply[bool]
	request string
}

// recalling says that requests elsewhere were refused for want of what this process has in an allowance.
type recalling struct {
	account string
	name    money.AllowanceName
}

// roomAsk asks how far a hold could be extended.
type roomAsk struct {
	kit.Reply[int64]
	hold *hold
}

// reply is a Reply that the core can resolve.
type reply struct{ kit.Reply[none] }

// done implements waiter.
func (r *reply) done(err error) { r.Resolve(none{}, err) }

// answer sends the core's decision, unless it is errPending.
func (r *reply) answer(err error) {
	if !errors.Is(err, errPending) {
		r.done(err)
	}
}

// posted is the outcome of the batch in flight.
type posted struct {
	batch   []op
	account money.Account
	results []money.Posted
	err     error
}

// IgnoreDeadLetterLogging is set because a stopping actor reads the outcome without the message (account.flushLast).
func (*posted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is set because recovery settles the hold at the next start.
func (*releasing) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is set because an account that stops returns its allowances by itself.
func (*recalling) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*progressing) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as releasing's.
func (*leaving) IgnoreDeadLetterLogging() {}

func (*holding) ledgerMessage()     {}
func (*leaving) ledgerMessage()     {}
func (*resuming) ledgerMessage()    {}
func (*extending) ledgerMessage()   {}
func (*progressing) ledgerMessage() {}
func (*settling) ledgerMessage()    {}
func (*charging) ledgerMessage()    {}
func (*releasing) ledgerMessage()   {}
func (*adjusting) ledgerMessage()   {}
func (*balanceAsk) ledgerMessage()  {}
func (*movingAsk) ledgerMessage()   {}
func (*recalling) ledgerMessage()   {}
func (*roomAsk) ledgerMessage()     {}
func (*posted) ledgerMessage()      {}
