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
	// countEvery is how long the usage of requests without a price is collected in memory. A
	// crash loses at most that much of it, and a stop loses nothing.
	countEvery = time.Second
	// maxCounted bounds the rows that are gathered. An account has a share of them. Beyond its
	// share, or where all rows are in use, the models of a key have one row together.
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

type usageName struct{ account, key, model string }

// CountUsage counts a request without a hold. The row has no day. It does not wait. Requests
// with a hold are counted when the hold is settled or released.
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

// UsageRows returns the pool of the rows of usage that wait to be written.
func (c *Client) UsageRows() *share.Pool { return c.uncounted.places }

// add adds a row. u.mu must be held.
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

// take returns all rows and forgets them.
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

// write writes all rows. Rows that cannot be written are kept for the next time.
func (u *uncounted) write() error {
	rows := u.take()
	if len(rows) == 0 {
		return nil
	}
	_, err := state.Do(
		context.Background(),
		u.client.store,
		func(tx *state.Tx) (none, error) { return none{}, money.CountUsage(tx, rows) },
	)
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

// counting makes the actor write the collected rows after countEvery.
type counting struct{}

// IgnoreDeadLetterLogging is set because few requests end while the ledger stops.
func (*counting) IgnoreDeadLetterLogging() {}

// written is the outcome of a write.
type written struct{ err error }

// IgnoreDeadLetterLogging is set because a stopping actor does not wait for its write.
func (*written) IgnoreDeadLetterLogging() {}

// counter is the actor that writes the rows every countEvery, and once more when it stops.
type counter struct {
	client *Client
	timer  *kit.Timer
}

// Receive implements actor.Actor.
func (a *counter) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		a.timer = a.client.system.NewTimer(c.Self())
	case *counting:
		a.wake()
	case *kit.Tick:
		if a.timer.Fired(m) {
			a.client.system.Go(c.Self(), "write usage", func(context.Context) any { return &written{a.client.uncounted.write()} })
		}
	case *written:
		if m.err != nil {
			a.client.system.Logger().Error("usage not written", "cause", m.err)
			a.wake()
		}
	case *kit.Crashed:
		a.client.system.Logger().Error("writing usage panicked", "stack", string(m.Recovered.Stack))
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

func (a *counter) wake() {
	now := time.Now()
	a.timer.Wake(now, now.Add(countEvery))
}
