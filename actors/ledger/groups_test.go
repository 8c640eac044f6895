package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// member is the actor's part of one member of the group, as a test drives it.
type member struct {
	name   string
	core   *core
	holds  []*hold
	flying []money.Posting
}

// What the members have spent and hold together stays within the budget, in whatever order their
// accounts hold, settle, commit and lose their actors.
func TestBudgetOfAGroupIsNeverExceeded(t *testing.T) { rapid.Check(t, checkGroupBudget) }

func checkGroupBudget(rt *rapid.T) {
	const budget = 500
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store, err := schema.Open(statetest.DecideTwice(journal.NewMemory()), func() time.Time { return now })
	if err != nil {
		rt.Fatal(err)
	}
	defer store.Close()
	members, group := enrol(rt, store, budget)
	common := new(shared)
	for _, m := range members {
		m.core = newCore(money.FindAccount(store.View(), m.name), nil, budgetsOf(store), common)
	}
	pick := func(rt *rapid.T) *member { return rapid.SampledFrom(members).Draw(rt, "member") }
	amount, requests := rapid.Int64Range(0, 200), 0
	rt.Repeat(map[string]func(*rapid.T){
		"hold": func(rt *rapid.T) {
			m := pick(rt)
			requests++
			durable, receipt := rapid.Bool().Draw(rt, "durable"), money.Receipt{Request: fmt.Sprint("r", requests)}
			receipt.Key = "key_" + m.name
			h, _ := m.core.beginHold(now, amount.Draw(rt, "amount"), receipt, durable, new(answers))
			if h != nil {
				m.holds = append(m.holds, h)
			}
		},
		"extend": func(rt *rapid.T) {
			if m, h := openHold(rt, pick(rt)); h != nil {
				_ = m.core.extend(now, h, amount.Draw(rt, "amount"), nil)
			}
		},
		"settle": func(rt *rapid.T) {
			if m, h := openHold(rt, pick(rt)); h != nil {
				_ = m.core.settle(now, h,
					&Settlement{Amount: rapid.Int64Range(0, h.amount).Draw(rt, "charge"), Reason: "finished"},
					new(answers))
			}
		},
		"release": func(rt *rapid.T) {
			if m, h := openHold(rt, pick(rt)); h != nil {
				_ = m.core.release(h, "refused", nil, nil)
			}
		},
		"time passes": func(*rapid.T) { now = now.Add(30 * time.Millisecond) },
		"flush": func(rt *rapid.T) {
			m := pick(rt)
			if ps := m.core.next(now); len(ps) > 0 {
				m.flying = ps
			}
		},
		"land": func(rt *rapid.T) { pick(rt).land(rt, store, rapid.IntRange(0, 3).Draw(rt, "outcome") == 0) },
		"the actor is lost": func(rt *rapid.T) {
			m := pick(rt)
			m.land(rt, store, false)
			if m.flying = postings(nil, m.core.ops); len(m.flying) > 0 { // as account.flushLast does
				if _, _, err := money.CommitPostings(context.Background(), store, m.name, m.flying); err != nil {
					rt.Fatal(err)
				}
			}
			m.flying = nil
			m.core, m.holds = newCore(money.FindAccount(store.View(), m.name), money.ListHolds(store.View(), m.name),
				budgetsOf(store), common), nil
			for h := range m.core.open {
				m.holds = append(m.holds, h)
			}
		},
		"": func(rt *rapid.T) {
			used := money.SpentBy(store.View(), group).Total
			for _, m := range members {
				for h := range m.core.open {
					used += h.amount
				}
			}
			if used > budget {
				rt.Fatalf("the members have spent and hold %d of %d", used, budget)
			}
		},
	})
	for _, m := range members {
		for _, h := range m.holds {
			_ = m.core.release(h, "end", nil, nil)
		}
		for range 100 {
			m.land(rt, store, false)
			now = now.Add(time.Second)
			if m.flying = m.core.next(now); len(m.flying) == 0 {
				break
			}
		}
	}
	a := common.quotaOf(group, budgetsOf(store))
	if a.held != 0 || len(a.heldBy) != 0 || a.spend.Total != money.SpentBy(store.View(), group).Total {
		rt.Fatalf("left: held %d by %v, spent %+v, the store has %+v", a.held, a.heldBy, a.spend,
			money.SpentBy(store.View(), group))
	}
	if _, err := money.CheckLedger(context.Background(), store); err != nil {
		rt.Fatal(err)
	}
}

// enrol makes the group, its members and their money.
func enrol(rt *rapid.T, store *state.State, budget int64) ([]*member, budget.Scope) {
	var all []*member
	g, err := state.Do(context.Background(), store, func(tx *state.Tx) (identity.Group, error) {
		return identity.AddGroup(tx, identity.Group{Name: "staff", Ceiling: identity.Ceiling{Budget: budget}})
	})
	for _, name := range []string{"a", "b", "c"} {
		if err == nil {
			_, err = state.Do(context.Background(), store, func(tx *state.Tx) (identity.User, error) {
				return identity.AddUser(tx, identity.User{Username: name, Status: identity.UserActive, Group: g.ID})
			})
		}
		if err == nil {
			_, _, err = money.CommitPostings(context.Background(), store, name,
				[]money.Posting{{Kind: money.Credit, Amount: 1_000_000}})
		}
		all = append(all, &member{name: name})
	}
	if err != nil {
		rt.Fatal(err)
	}
	return all, g.Scope()
}

func openHold(rt *rapid.T, m *member) (*member, *hold) {
	if len(m.holds) == 0 {
		return m, nil
	}
	if h := rapid.SampledFrom(m.holds).Draw(rt, "hold"); h.phase == open {
		return m, h
	}
	return m, nil
}

// land reports the outcome of the batch in flight.
func (m *member) land(rt *rapid.T, store *state.State, fail bool) {
	if m.flying == nil {
		return
	}
	if fail {
		m.core.posted(money.Account{}, nil, state.ErrUnavailable)
	} else {
		account, results, err := money.CommitPostings(context.Background(), store, m.name, m.flying)
		if err != nil {
			rt.Fatal(err)
		}
		m.core.posted(account, results, nil)
	}
	m.flying = nil
}
