package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/money"
)

const (
	// idleAfter is the time for which an account without open holds keeps its actor.
	idleAfter = time.Minute
	// retryAfter is the wait after a failed commit before the next one.
	retryAfter = time.Second
	// stalledAfter bounds the duration of a commit. After it the account grants no more holds, because settlements
	// gather in memory until the commit ends.
	stalledAfter = 10 * time.Second
	// lastTries bounds the failed commits of an account that stops. They take less time than the process has to stop.
	lastTries = 5
)

// account is the actor: it adds a clock, a timer and the journal to a core. Only Receive and
// Failed touch its fields.
type account struct {
	client      *Client
	name        string
	core        *core
	timer       *kit.Timer
	used        time.Time
	looked      time.Time     // when the last look for idle allowances was
	retryAt     time.Time     // after a failed commit, the time of the next one; zero after a success
	asked       time.Time     // when the oldest waiter outside a batch began to wait, or zero
	flight      chan struct{} // closed when the batch in flight has an outcome; nil if none is in flight
	result      *posted       // its outcome, once flight is closed
	submittedAt time.Time     // when it was submitted to the writer
	turn        kit.Rejecter  // the message being handled, if it needs a reply
}

// Receive implements actor.Actor.
func (a *account) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		a.timer = a.client.system.NewTimer(c.Self())
		a.used = time.Now()
		store := a.client.store
		a.core = a.client.newCore(store.View(), a.name)
		a.wake(a.used)
	case *actor.Stopping:
		a.client.removeActor(a.name, c.Self())
		a.timer.Stop()
		if a.core != nil {
			a.core.giveBackAll(a.used.Add(idleAfter)) // also what is free when the last batch is durable
		}
		a.flushLast()
	case *kit.Tick:
		if a.timer.Fired(m) {
			a.tick(c)
		}
	case message:
		a.used = time.Now()
		a.turn, _ = m.(kit.Rejecter)
		a.handle(m)
		a.turn = nil
		a.schedule(c.Self())
	case *kit.Crashed:
		// Only the disk shows whether the batch is durable. The actor stops, and the next one
		// reads the disk. Recovery ends the holds that have no owner then. The batch in flight has no outcome
		// that the last commit could wait for.
		a.flight, a.core.inFlight = nil, nil
		a.client.system.Logger().Error("journaling panicked", "account", a.name, "stack", string(m.Recovered.Stack))
		c.Stop(c.Self())
	}
}

// Failed implements kit.Failer. The actor keeps its core (see resume): the core changes
// only after its checks, and no other record exists of the holds that are not journaled.
func (a *account) Failed(any) {
	if a.turn != nil {
		a.turn.Reject(kit.ReasonFailed)
		a.turn = nil
	}
}

// handle decides one message and replies to it, unless the reply has to wait for a commit. It must
// not block, because it can run on the goroutine of a request or of the state's writer.
func (a *account) handle(m message) {
	switch m := m.(type) {
	case *holding:
		a.hold(m)
	case *leaving:
		if h := m.asked.granted; h != nil {
			a.core.release(h, ReasonLeft, nil, nil)
		}
	case *resuming:
		if h := a.openHold(m.request); h != nil {
			m.Resolve(resumed{h, h.amount}, nil)
		} else {
			m.Resolve(resumed{}, fmt.Errorf("hold of request %s: %w", m.request, state.ErrNotFound))
		}
	case *extending:
		m.answer(a.retryWithNewCredits(func() error { return a.core.extend(a.used, m.hold, m.amount, m) }))
	case *progressing:
		a.core.progress(m.hold, m.amount)
	case *settling:
		if m.settlement.Amount > m.hold.amount {
			a.refresh()
		}
		m.answer(a.core.settle(a.used, m.hold, &m.settlement, m))
	case *charging:
		if m.settlement.Amount > m.hold.amount {
			a.refresh()
		}
		_ = a.core.settle(a.used, m.hold, &m.settlement, nil) // the caller does not wait
	case *releasing:
		a.core.release(m.hold, m.reason, m.receipt, nil)
	case *adjusting:
		m.answer(a.retryWithNewCredits(func() error { return a.core.adjust(m, m) }))
	case *balanceAsk:
		a.refresh()
		m.Resolve(Balance{Credits: a.core.credits, Spent: a.core.spent, Held: a.core.held + a.core.debits}, nil)
	case *recalling:
		a.core.recalled(m.name, a.used.Add(recallPause))
	case *movingAsk:
		m.Resolve(a.core.moving(m.request), nil)
	case *roomAsk:
		a.refresh()
		m.Resolve(a.core.room(a.used, m.hold.bounds), nil)
	case *posted:
		a.applyResult(m)
	}
}

// openHold returns the open hold of a request, or nil. If other processes change the account, too, one of them may have
// begun it.
func (a *account) openHold(request string) *hold {
	found := a.core.openHold(request)
	if found != nil || a.core.others == nil {
		return found
	}
	if h := money.FindHoldOf(a.client.store.View(), a.name, request); h != nil && !a.core.moving(request) {
		return a.core.adopt(h)
	}
	return nil
}

// hold grants or refuses a hold. It grants none while commits fail or take too long, because each
// granted hold is a further settlement that waits in memory.
func (a *account) hold(m *holding) {
	now := a.used
	// Settlements wait for the store, and more of them must not pile up.
	if now.Before(a.retryAt) || a.flight != nil && now.Sub(a.submittedAt) > stalledAfter {
		m.Resolve(nil, fmt.Errorf("hold: %w", state.ErrUnavailable))
		return
	}
	err := a.retryWithNewCredits(func() (err error) {
		m.granted, err = a.core.beginHold(now, m.ask.Amount, m.ask.receipt(), m.ask.Durable, m)
		return err
	})
	if !errors.Is(err, errPending) {
		m.done(err)
	}
}

// retryWithNewCredits repeats a refused decision with the credits of the table, because a payment
// may have been made since they were read.
func (a *account) retryWithNewCredits(decide func() error) error {
	err := decide()
	if err != nil && !errors.Is(err, errPending) && a.refresh() {
		return decide()
	}
	return err
}

// refresh reads the credits again and reports whether they have changed. The known credits
// may be too low and are never too high, because this actor makes all withdrawals.
func (a *account) refresh() bool {
	credits := money.FindAccount(a.client.store.View(), a.name).Credits
	if credits == a.core.credits {
		return false
	}
	a.core.credits = credits
	return true
}

// schedule starts a commit if it is due, or sets the timer for it.
func (a *account) schedule(self *actor.PID) {
	now := a.used
	switch {
	case a.core.waiting == 0:
		a.asked = time.Time{}
	case a.asked.IsZero():
		a.asked = now
	}
	full := len(a.core.ops) >= maxBatch
	if (full || a.core.waiting > 0 && a.commitDue(now)) && !now.Before(a.retryAt) {
		a.flush(self, now)
	}
	a.wake(now)
}

// commitDue reports whether the next batch should be committed now.
func (a *account) commitDue(now time.Time) bool { return !now.Before(a.commitTime()) }

// commitTime returns the time at which the next batch should be committed.
func (a *account) commitTime() time.Time {
	if a.core.complete() {
		return a.asked
	}
	return a.asked.Add(a.core.gather())
}

// wake sets the timer to the next time at which the account has something to do: a commit, the end
// of a pause after a failed commit, or its stop when it is idle.
func (a *account) wake(now time.Time) {
	at := a.used.Add(idleAfter)
	if !at.After(now) {
		at = now.Add(idleAfter) // idle except for an open hold
	}
	if due, ok := a.core.due(now); ok && len(a.core.inFlight) == 0 {
		at = due
	}
	if a.core.waiting > 0 && len(a.core.inFlight) == 0 {
		at = a.commitTime()
	}
	if look := a.looked.Add(returnAfter / 2); len(a.core.allowances) > 0 && look.Before(at) {
		at = look
	}
	if at.Before(a.retryAt) {
		at = a.retryAt
	}
	a.timer.Wake(now, at)
}

// tick stops an account that was idle for idleAfter, or starts the commit that is due. Before that, it returns the
// allowances that were not used for some time.
func (a *account) tick(c actor.Context) {
	now := time.Now()
	if len(a.core.allowances) > 0 && now.Sub(a.looked) >= returnAfter/2 {
		a.core.giveBackIdle(now)
		a.looked = now
	}
	if a.core.idle() && now.Sub(a.used) >= idleAfter {
		// New callers no longer find this actor. A caller that has found it is refused and retries.
		a.client.removeActor(a.name, c.Self())
		c.Stop(c.Self())
		return
	}
	if !now.Before(a.retryAt) && (a.core.waiting == 0 || a.commitDue(now)) {
		a.flush(c.Self(), now)
	}
	a.wake(now)
}

// flush starts the next batch unless one is in flight. The result is sent from the goroutine
// of the journal's writer, which is free at that moment. If too many commands wait for the
// writer, another goroutine waits for the result.
func (a *account) flush(self *actor.PID, now time.Time) {
	ps := a.core.next(now)
	if len(ps) == 0 {
		return
	}
	if a.asked = (time.Time{}); a.core.waiting > 0 {
		a.asked = now
	}
	m := &posted{batch: a.core.inFlight}
	flight := make(chan struct{})
	a.flight, a.result, a.submittedAt = flight, m, now
	store, system, name := a.client.store, a.client.system, a.name
	post := func(tx *state.Tx) (err error) {
		m.account, m.results, err = money.Post(tx, name, ps)
		return err
	}
	handleOutcome := func(err error) {
		defer close(flight)
		m.err = err
		system.Send(self, m)
	}
	switch err := state.Submit(store, post, handleOutcome); {
	case errors.Is(err, state.ErrBusy):
		system.Go(self, "journal batch", func(context.Context) any {
			_, err := state.Do(context.Background(), store,
				func(tx *state.Tx) (none, error) { return none{}, post(tx) })
			handleOutcome(err)
			return nil
		})
	case err != nil:
		handleOutcome(err)
	}
}

// applyResult applies the outcome of the batch that was in flight.
func (a *account) applyResult(m *posted) {
	batch := len(m.batch)
	a.client.applyPosted(a.core, m)
	a.flight, a.result = nil, nil
	if m.err == nil {
		a.retryAt = time.Time{}
		return
	}
	a.retryAt = time.Now().Add(retryAfter)
	a.client.system.Logger().Error("account not journaled", "account", a.name, "postings", batch, "cause", m.err)
}

// applyPosted applies the outcome of a batch to the core and logs charges that the journal has refused. The core
// repeats the charges of a commit that failed.
func (c *Client) applyPosted(core *core, m *posted) {
	for i := range m.results {
		if o := &m.batch[i]; m.err == nil && m.results[i].Err != nil && o.kind == money.Settle && o.retried() {
			logUncharged(c.system.Logger(), o.hold, o.amount, m.results[i].Err)
		}
	}
	core.posted(m.account, m.results, m.err)
}

// logUncharged logs that a request costs nothing, because its settlement cannot be written. Its caller did not wait, so
// the log is the only trace of the amount.
func logUncharged(logger *slog.Logger, h *hold, amount int64, cause any) {
	logger.Error("request not charged", "request_id", h.known.request, "amount", amount, "cause", cause)
}

// flushLast journals the decisions that are not durable while the actor stops. Another goroutine does that, for which
// the stop of the system waits: it waits for the batch in flight, repeats what failed and owns the core from now on.
func (a *account) flushLast() {
	if a.core == nil || len(a.core.ops) == 0 && a.flight == nil {
		return
	}
	c, core, flight, result, name := a.client, a.core, a.flight, a.result, a.name
	c.system.Go(c.parent, "journal last batch", func(context.Context) any {
		if flight != nil {
			<-flight
			c.applyPosted(core, result)
		}
		var failed error
		for tries := 0; tries < lastTries; {
			// The time begins no holds. Nothing can end them any more, and without an entry they are free at once.
			ps := core.next(time.Time{})
			if len(ps) == 0 {
				return nil
			}
			m := &posted{batch: core.inFlight}
			m.account, m.results, m.err = money.CommitPostings(context.Background(), c.store, name, ps)
			c.applyPosted(core, m)
			if failed = m.err; failed == nil {
				continue
			}
			if tries++; c.store.Err() != nil {
				break // for good
			}
			time.Sleep(retryAfter)
		}
		for i := range core.ops {
			if o := &core.ops[i]; o.kind == money.Settle {
				logUncharged(c.system.Logger(), o.hold, o.amount, failed)
			}
		}
		return nil
	})
}
