package ledger

import (
	"time"

	"stagedoor/state"
)

// purse is what one key has spent and holds. Requests of a key that come at the
// same time are decided one after the other by its account's actor, so spent and
// held together never exceed its budget.
type purse struct {
	key   string
	spend state.KeySpend // durable
	held  int64          // of all open holds, journaled or not

	budget state.Budget
	era    uint64 // of the keys when budget was read, and one; 0: it was not
}

// books is where budgets and spending of keys are read. A budget is looked for
// anew after any change of a key: a changed one counts at once, for streams under
// way, too.
type books interface {
	KeyEra() uint64
	KeyBudget(key string) state.Budget
	KeySpent(key string) state.KeySpend
}

// purse finds a key's; nil for requests without one.
func (c *core) purse(key string) *purse {
	if key == "" {
		return nil
	}
	p := c.purses[key]
	if p == nil {
		// Nothing of it is under way here, so what is durable is all there is.
		p = &purse{key: key, spend: c.books.KeySpent(key)}
		c.purses[key] = p
	}
	return p
}

// hold changes what is held.
func (c *core) hold(h *hold, delta int64) {
	c.held += delta
	if h.purse != nil {
		h.purse.held += delta
	}
}

// budget is a purse's budget and what is left of it.
func (c *core) budget(now time.Time, p *purse) (state.Budget, int64) {
	if p == nil {
		return state.Budget{}, state.MaxCredits
	}
	if era := c.books.KeyEra() + 1; p.era != era {
		p.budget, p.era = c.books.KeyBudget(p.key), era
	}
	return p.budget, p.budget.Left(&p.spend, p.held, now)
}

// room is what can be held for a key: of the account and of its budget.
func (c *core) room(now time.Time, p *purse) int64 {
	_, left := c.budget(now, p)
	return max(min(c.available(), left), 0)
}

// covers refuses what the account does not have, or the key may not spend.
func (c *core) covers(now time.Time, p *purse, amount int64) error {
	if amount > c.available() {
		return c.insufficient(amount)
	}
	if b, left := c.budget(now, p); amount > left {
		return &state.BudgetError{Key: p.key, Budget: b, Left: left, Asked: amount}
	}
	return nil
}
