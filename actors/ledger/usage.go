package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/money"
	"stagedoor/state/share"
)

const (
	// countEvery is the time for which the usage of requests without a price is collected in memory. A
	// crash loses at most that much of it. A stop loses none, unless the last write fails.
	countEvery = time.Second
	// maxCounted bounds the rows in memory. An account has a share of them, as package share
	// explains. Beyond it, or where all rows are in use, all further models of a key have one row
	// together, which may exceed the bound.
	maxCounted = 4096
)

// uncounted collects the usage of requests without a hold. Such a request costs no commit: it
// adds to a row in memory, and all rows are written together.
type uncounted struct {
	client *Client
	pid    *actor.PID

	mu     sync.Mutex
	rows   map[usageName]*money.UsageRow
	places *share.Pool // of rows
}

// usageName identifies a row.
type usageName struct{ account, key, model string }

// CountUsage adds row to the usage of today. Use it for requests without a hold. Requests with a hold
// are counted when the hold is settled or released. It does not wait for the write, which happens
// within about countEvery, and it ignores row.Day.
func (c *Client) CountUsage(row money.UsageRow) {
	u := &c.uncounted
	u.mu.Lock()
	first := len(u.rows) == 0
	u.add(&row)
	u.mu.Unlock()
	if first {
		c.system.Send(u.pid, &counting{})
	}
}

// UsageRows returns the pool of the rows of usage that wait to be written, for metrics.
func (c *Client) UsageRows() *share.Pool { return c.uncounted.places }

// add adds the counts of row to the row of its key and model. u.mu must be held.
func (u *uncounted) add(row *money.UsageRow) {
	name := usageName{row.Account, row.Key, row.Model}
	have := u.rows[name]
	if have == nil && u.places.Take(name.account, 1) != nil {
		name.model = money.OtherModels
		if have = u.rows[name]; have == nil {
			u.places.Adopt(name.account, 1) // its key has one such row at most
		}
	}
	if have == nil {
		have = &money.UsageRow{Account: name.account, Key: name.key, Model: name.model}
		u.rows[name] = have
	}
	have.Add(row)
}

// take removes all rows and returns them. It locks u.mu.
func (u *uncounted) take() []money.UsageRow {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]money.UsageRow, 0, len(u.rows))
	for _, row := range u.rows {
		all = append(all, *row)
		u.places.Give(row.Account, 1)
	}
	clear(u.rows)
	return all
}

// empty reports whether no row waits to be written. It locks u.mu.
func (u *uncounted) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.rows) == 0
}

// write writes all rows in one commit. If that fails, it adds them again and returns the error.
func (u *uncounted) write() error {
	rows := u.take()
	if len(rows) == 0 {
		return nil
	}
	_, err := state.Do(context.Background(), u.client.store,
		func(tx *state.Tx) (none, error) { return none{}, money.CountUsage(tx, rows) })
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range rows {
		u.add(&rows[i])
	}
	return err
}

// counting is the message that the first row since the last write has been added. The actor writes
// all rows after countEvery.
type counting struct{}

// IgnoreDeadLetterLogging keeps the log free of messages to a stopped actor, which its last write
// makes needless.
func (*counting) IgnoreDeadLetterLogging() {}

// written is the outcome of a write, as a message to the actor.
type written struct{ err error }

// IgnoreDeadLetterLogging is set because an actor may stop while a write is running. Its last write
// then takes the rows that were added since.
func (*written) IgnoreDeadLetterLogging() {}

// counter is the actor that writes the rows every countEvery, and once more when it stops.
type counter struct {
	client  *Client
	timer   *kit.Timer
	writing bool // the rows that a write has taken are in memory until it ends, so only one runs at a time
}

// Receive implements actor.Actor.
func (a *counter) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		a.timer = a.client.system.NewTimer(c.Self())
	case *counting:
		a.startTimer()
	case *kit.Tick:
		if a.timer.Fired(m) && !a.writing {
			a.writing = true
			a.client.system.Go(c.Self(), "write usage", func(context.Context) any {
				return &written{a.client.uncounted.write()}
			})
		}
	case *written:
		if m.err != nil {
			a.client.system.Logger().Error("usage not written", "cause", m.err)
		}
		a.writing = false
		if !a.client.uncounted.empty() {
			a.startTimer()
		}
	case *kit.Crashed:
		a.client.system.Logger().Error("writing usage panicked", "stack", string(m.Recovered.Stack))
		a.writing = false
		a.startTimer()
	case *actor.Stopping:
		a.timer.Stop()
		a.client.system.Go(a.client.parent, "write last usage", func(context.Context) any {
			if err := a.client.uncounted.write(); err != nil {
				a.client.system.Logger().Error("usage not written", "cause", err)
			}
			return nil
		})
	}
}

// startTimer requests a tick after countEvery, unless an earlier one is coming.
func (a *counter) startTimer() {
	now := time.Now()
	a.timer.Wake(now, now.Add(countEvery))
}
