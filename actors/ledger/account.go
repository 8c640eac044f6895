package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

const (
	// idleAfter is how long an account without money in motion keeps its actor.
	idleAfter = time.Minute
	// retryAfter is how long the journal is left alone after it failed.
	retryAfter = time.Second
)

// account is the actor: a clock, a timer and the journal around a core. Its
// fields are touched in Receive and Failed only.
type account struct {
	client *Client
	name   string
	core   *core
	timer  *kit.Timer
	used   time.Time
	sick   time.Time     // until when the journal is left alone
	asked  time.Time     // since when somebody waits who is not in a batch; zero: nobody
	flight chan struct{} // closed when the batch under way has an outcome
	result *posted       // its outcome, once flight is closed
	turn   kit.Rejecter  // the message being handled, if somebody waits for it
}

// Receive implements actor.Actor.
func (a *account) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		a.timer = a.client.system.NewTimer(c.Self())
		a.used = time.Now()
		a.core = newCore(a.client.store.Account(a.name), a.client.store.Holds(a.name), a.client.store, &a.client.shared)
		a.wake(a.used)
	case *actor.Stopping:
		a.client.forget(a.name, c.Self())
		a.timer.Stop()
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
		a.step(c.Self())
	case *kit.Crashed:
		// The batch may be durable or not, and only the disk knows: stop, and let
		// the next one read it. Recovery ends the holds that nobody owns then.
		a.client.system.Logger().Error("journaling panicked", "account", a.name, "stack", string(m.Recovered.Stack))
		c.Stop(c.Self())
	}
}

// Failed implements kit.Failer. The actor goes on with what it has (policy in
// Client.Props): the core changes after its checks, and nothing else knows the
// holds that are not journaled.
func (a *account) Failed(any) {
	if a.turn != nil {
		a.turn.Reject(kit.ReasonFailed)
		a.turn = nil
	}
}

func (a *account) handle(m message) {
	switch m := m.(type) {
	case *holding:
		a.hold(m)
	case *leaving:
		if h := m.asked.granted; h != nil {
			a.core.release(h, ReasonLeft, nil, nil)
		}
	case *resuming:
		if h := a.core.find(m.request); h != nil {
			m.Resolve(resumed{h, h.amount}, nil)
		} else {
			m.Resolve(resumed{}, fmt.Errorf("hold of request %s: %w", m.request, state.ErrNotFound))
		}
	case *extending:
		m.answer(a.refreshed(func() error { return a.core.extend(a.used, m.hold, m.amount) }))
	case *progressing:
		a.core.progress(m.hold, m.amount)
	case *settling:
		if m.settlement.Amount > m.hold.amount {
			a.refresh()
		}
		m.answer(a.core.settle(a.used, m.hold, &m.settlement, m))
	case *releasing:
		a.core.release(m.hold, m.reason, m.receipt, nil)
	case *adjusting:
		m.answer(a.refreshed(func() error { return a.core.adjust(m.amount, m.reason, m.once, m) }))
	case *balanceAsk:
		a.refresh()
		m.Resolve(Balance{Credits: a.core.credits, Spent: a.core.spent, Held: a.core.held + a.core.debits}, nil)
	case *movingAsk:
		m.Resolve(a.core.moving(m.request), nil)
	case *roomAsk:
		a.refresh()
		m.Resolve(a.core.room(a.used, m.hold.bounds), nil)
	case *posted:
		a.land(m)
	}
}

func (a *account) hold(m *holding) {
	now := a.used
	if now.Before(a.sick) {
		m.Resolve(nil, fmt.Errorf("hold: %w", state.ErrUnavailable))
		return
	}
	var w waiter
	if m.ask.Durable {
		w = m
	}
	err := a.refreshed(func() (err error) {
		m.granted, err = a.core.begin(now, m.ask.Amount, m.ask.receipt(), w)
		return err
	})
	switch {
	case err != nil:
		m.Resolve(nil, err)
	case w == nil:
		m.Resolve(m.granted, nil)
	}
}

// refreshed lets a decision that the credits known here refuse be made again
// with those of the table: somebody may have topped up.
func (a *account) refreshed(decide func() error) error {
	err := decide()
	if err != nil && a.refresh() {
		return decide()
	}
	return err
}

// refresh reads the credits again, and tells whether they have changed. They are
// what may be behind, and never ahead: whatever lowers them goes through here.
func (a *account) refresh() bool {
	credits := a.client.store.Account(a.name).Credits
	if credits == a.core.credits {
		return false
	}
	a.core.credits = credits
	return true
}

// step sends a batch if it is time, or sees to it that it goes later.
func (a *account) step(self *actor.PID) {
	now := a.used
	switch {
	case a.core.waiting == 0:
		a.asked = time.Time{}
	case a.asked.IsZero():
		a.asked = now
	}
	if a.core.waiting > 0 && !now.Before(a.sick) && a.enough(now) {
		a.flush(self, now)
	}
	a.wake(now)
}

// enough tells whether those who wait have waited for company long enough.
func (a *account) enough(now time.Time) bool { return !now.Before(a.departs()) }

// departs is when the next batch should leave.
func (a *account) departs() time.Time {
	if a.core.complete() {
		return a.asked
	}
	return a.asked.Add(a.core.gather())
}

func (a *account) wake(now time.Time) {
	at := a.used.Add(idleAfter)
	if !at.After(now) {
		at = now.Add(idleAfter) // idle, but for a hold that is under way
	}
	if due, ok := a.core.due(now); ok && len(a.core.inFlight) == 0 {
		at = due
	}
	if a.core.waiting > 0 && len(a.core.inFlight) == 0 {
		at = a.departs()
	}
	if at.Before(a.sick) {
		at = a.sick
	}
	a.timer.Wake(now, at)
}

func (a *account) tick(c actor.Context) {
	now := time.Now()
	if a.core.idle() && now.Sub(a.used) >= idleAfter {
		// Nobody finds it from here on; who has found it is refused and asks again.
		a.client.forget(a.name, c.Self())
		c.Stop(c.Self())
		return
	}
	if !now.Before(a.sick) && (a.core.waiting == 0 || a.enough(now)) {
		a.flush(c.Self(), now)
	}
	a.wake(now)
}

// flush starts the next batch, if there is none under way. It lands on the goroutine
// of the journal's writer, which has nothing to do before it has told of this one,
// unless too many commands wait there: then somebody waits beside.
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
	a.flight, a.result = flight, m
	store, system, name := a.client.store, a.client.system, a.name
	post := func(tx *state.Tx) (err error) {
		m.account, m.results, err = tx.Post(name, ps)
		return err
	}
	landed := func(err error) {
		defer close(flight)
		m.err = err
		system.Send(self, m)
	}
	switch err := state.Submit(store, post, landed); {
	case errors.Is(err, state.ErrBusy):
		system.Go(self, "journal batch", func(context.Context) any {
			_, err := state.Do(context.Background(), store, func(tx *state.Tx) (none, error) { return none{}, post(tx) })
			landed(err)
			return nil
		})
	case err != nil:
		landed(err)
	}
}

// land follows the batch that was under way.
func (a *account) land(m *posted) {
	a.core.posted(m.account, m.results, m.err)
	a.flight, a.result = nil, nil
	if m.err == nil {
		a.sick = time.Time{}
		return
	}
	a.sick = time.Now().Add(retryAfter)
	a.client.system.Logger().Error("account not journaled", "account", a.name, "postings", len(m.batch), "cause", m.err)
}

// flushLast journals what is decided and not under way, while the actor stops.
// It waits beside the actor for the batch before, whose begins it refers to.
func (a *account) flushLast() {
	if a.core == nil || len(a.core.ops) == 0 {
		return
	}
	core, flight, result, store, name := a.core, a.flight, a.result, a.client.store, a.name
	a.client.system.Go(a.client.parent, "journal last batch", func(context.Context) any {
		if flight != nil {
			<-flight
			for i := range result.batch {
				if o := &result.batch[i]; o.kind == state.Begin && result.err == nil && result.results[i].Err == nil {
					o.hold.id = result.results[i].Sequence
				}
			}
			core.inFlight = nil
		}
		m := posted{batch: core.ops}
		m.account, m.results, m.err = store.Post(context.Background(), name, postings(nil, core.ops))
		m.tell()
		return nil
	})
}
