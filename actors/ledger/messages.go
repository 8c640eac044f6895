package ledger

import (
	"errors"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

// message is what an account's actor accepts besides the library's own. The set
// is closed, and only pointers are in it.
type message interface{ ledgerMessage() }

// errPending is how the core says that the answer comes when it is durable.
var errPending = errors.New("pending")

// none is the answer of what answers nothing.
type none struct{}

// holding asks for a hold. If durable, the answer waits for the journal.
type holding struct {
	kit.Reply[*hold]
	ask     Ask
	granted *hold // the actor's
}

// done implements waiter.
func (m *holding) done(err error) {
	if err != nil {
		m.Resolve(nil, err)
		return
	}
	m.Resolve(m.granted, nil)
}

// leaving releases what a caller was granted who no longer waits.
type leaving struct{ asked *holding }

// resuming asks for the open hold of a request, after a restart.
type resuming struct {
	kit.Reply[resumed]
	request string
}

type resumed struct {
	hold   *hold
	amount int64
}

type extending struct {
	reply
	hold   *hold
	amount int64
}

type progressing struct {
	hold   *hold
	amount int64
}

type settling struct {
	reply
	hold       *hold
	settlement Settlement
}

type releasing struct {
	hold    *hold
	reason  string
	receipt *state.Receipt
}

type adjusting struct {
	reply
	amount int64
	reason string
	once   string
}

type balanceAsk struct{ kit.Reply[Balance] }

// movingAsk asks whether the journal is still to hear of a request's end.
type movingAsk struct {
	kit.Reply[bool]
	request string
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

// answer resolves what the core has decided, unless that is still to come.
func (r *reply) answer(err error) {
	if !errors.Is(err, errPending) {
		r.done(err)
	}
}

// posted says what became of the batch under way.
type posted struct {
	batch   []op
	account state.Account
	results []state.Posted
	err     error
}

// tell answers those who wait.
func (m *posted) tell() {
	for i := range m.batch {
		err := m.err
		if err == nil {
			err = m.results[i].Err
		}
		tell(&m.batch[i], err)
	}
}

// Reject implements kit.Rejecter: the actor has stopped, and those who wait hear of
// the outcome all the same.
func (m *posted) Reject(kit.Reason) { m.tell() }

// IgnoreDeadLetterLogging: a stopping actor does not wait for its batch.
func (*posted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: what was held is settled at the next start.
func (*releasing) IgnoreDeadLetterLogging() {}

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
func (*releasing) ledgerMessage()   {}
func (*adjusting) ledgerMessage()   {}
func (*balanceAsk) ledgerMessage()  {}
func (*movingAsk) ledgerMessage()   {}
func (*roomAsk) ledgerMessage()     {}
func (*posted) ledgerMessage()      {}
