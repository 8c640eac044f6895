package ledger

import (
	"sync"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// quota counts what one scope (a key, a user or a group) has spent and holds, and
// enforces its budget. Spent and held together stay within the budget, except for
// settlements above their hold. It is safe for concurrent use, because the accounts of a
// group's members share the group's quota.
type quota struct {
	scope   budget.Scope
	budgets budgets

	mu      sync.Mutex
	spend   money.KeySpend   // durable
	held    int64            // of all open holds, journaled or not
	heldBy  map[string]int64 // for a group, the part of held that each account holds
	budget  budget.Budget
	version uint64 // version of the keys when budget was read, plus one; 0 if it was not read
}

// budgets reads scopes, their budgets and their spending. They are read again after any
// change of a key, so a changed budget applies at once, also to streams in flight.
type budgets interface {
	AccessVersion() uint64
	BudgetScopes(key, account string) []budget.Scope
	BudgetOf(scope budget.Scope) budget.Budget
	SpentBy(scope budget.Scope) money.KeySpend
}

// storedBudgets reads them from the state.
type storedBudgets struct {
	*identity.Access
	store *state.State
}

// budgetsOf returns the budgets of a state, which are read without its writer.
func budgetsOf(s *state.State) budgets { return storedBudgets{identity.AccessOf(s), s} }

// SpentBy implements budgets.
func (b storedBudgets) SpentBy(scope budget.Scope) money.KeySpend {
	return money.SpentBy(b.store.View(), scope)
}

// newQuota returns the quota of a scope, with what was spent so far.
func newQuota(scope budget.Scope, b budgets) *quota {
	return &quota{scope: scope, budgets: b, spend: b.SpentBy(scope)}
}

// left returns the budget and what is left of it. a.mu must be held.
func (a *quota) left(now time.Time) (budget.Budget, int64) {
	if version := a.budgets.AccessVersion() + 1; a.version != version {
		a.budget, a.version = a.budgets.BudgetOf(a.scope), version
		if a.scope.Kind == budget.UserScope {
			a.spend = a.budgets.SpentBy(a.scope) // it is not updated while there is no budget
		}
	}
	return a.budget, a.budget.Left(a.spend.In(a.budget.Window, now), a.held)
}

// hold adds amount to what an account holds, or returns a *budget.Error and changes nothing.
func (a *quota) hold(now time.Time, account string, amount int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, left := a.left(now); amount > left {
		return &budget.Error{Scope: a.scope, Budget: b, Left: left, Asked: amount}
	}
	a.add(account, amount)
	return nil
}

// move changes what an account holds without a check.
func (a *quota) move(account string, delta int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(account, delta)
}

// add does the work of move. a.mu must be held.
func (a *quota) add(account string, delta int64) {
	a.held += delta
	if a.heldBy == nil {
		return
	}
	if a.heldBy[account] += delta; a.heldBy[account] == 0 {
		delete(a.heldBy, account)
	}
}

// forget removes everything that an account holds.
func (a *quota) forget(account string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if held := a.heldBy[account]; held != 0 {
		a.add(account, -held)
		a.spend = a.budgets.SpentBy(a.scope) // the account's last settlements may not have been reported
	}
}

// refresh reads what a user has spent. Only the actor of the user's account settles, so what is durable then
// is all that it has settled.
func (a *quota) refresh() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.budget.Amount > 0 {
		a.spend = a.budgets.SpentBy(a.scope)
	}
}

// settled sets the total that the scope has spent. Commits of different accounts may be
// reported in a different order than they were made, so the total that counts more requests
// is the later one.
func (a *quota) settled(spend *money.KeySpend) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if spend.Requests >= a.spend.Requests {
		a.spend = *spend
	}
}

// room returns what is left of the budget at a time.
func (a *quota) room(now time.Time) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, left := a.left(now)
	return left
}

// shared holds the quotas of groups, which several accounts use.
type shared struct {
	mu     sync.Mutex
	scopes map[budget.Scope]*quota
}

// quotaOf returns the quota of a group, which all accounts of its members share.
func (s *shared) quotaOf(scope budget.Scope, b budgets) *quota {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scopes[scope]
	if a == nil {
		if s.scopes == nil {
			s.scopes = make(map[budget.Scope]*quota)
		}
		a = newQuota(scope, b)
		a.heldBy = make(map[string]int64)
		s.scopes[scope] = a
	}
	return a
}

// load counts the open holds that the previous process has left. The holds of an account are
// counted again when its actor starts.
func (s *shared) load(holds []money.Hold, b budgets) {
	for i := range holds {
		for _, name := range holds[i].Receipt.Scopes {
			if scope := budget.ScopeNamed(name); scope.Kind == budget.GroupScope {
				s.quotaOf(scope, b).move(holds[i].Account, holds[i].Amount)
			}
		}
	}
}

// forget removes what an account holds from all groups. The account's actor is about to
// count its open holds, so the counts of an actor that failed before must not remain.
func (s *shared) forget(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.scopes {
		a.forget(account)
	}
}

// bounds holds the quotas that limit the requests of one key, as they were in version: those
// of the key, of the group and, last, of the user.
type bounds struct {
	all     []*quota
	names   []string // of groups, for receipts; a user's spending is the sum over the user's keys
	version uint64
	// allowance is out of which this process holds money for the key, or nil if no other process changes the account.
	allowance *allowance
	terms     int // of the allowance when its limits were compared with those of the quotas
}

// boundsOf returns the quotas of a key. It caches one entry per key of the account.
func (c *core) boundsOf(key string) *bounds {
	version := c.budgets.AccessVersion()
	b := c.keys[key]
	if b != nil && b.version == version {
		return b
	}
	b = &bounds{version: version}
	for _, scope := range c.budgets.BudgetScopes(key, c.account) {
		b.all = append(b.all, c.quota(scope))
		if scope.Kind != budget.KeyScope {
			b.names = append(b.names, scope.Name())
		}
	}
	b.all = append(b.all, c.user)
	if c.others != nil {
		b.allowance = c.allowanceOf(key, b)
	}
	c.keys[key] = b
	return b
}

// boundsNamed returns the quotas of a hold of the previous process, whose receipt names
// the scopes.
func (c *core) boundsNamed(r *money.Receipt) *bounds {
	b := &bounds{names: r.Scopes}
	if r.Key != "" {
		b.all = append(b.all, c.quota(budget.Scope{Kind: budget.KeyScope, ID: r.Key}))
	}
	for _, name := range r.Scopes {
		b.all = append(b.all, c.quota(budget.ScopeNamed(name)))
	}
	b.all = append(b.all, c.user)
	return b
}

// quota returns the quota of a scope. That of a group is shared with other accounts.
func (c *core) quota(scope budget.Scope) *quota {
	if scope.Kind == budget.GroupScope {
		return c.shared.quotaOf(scope, c.budgets)
	}
	a := c.scopes[scope]
	if a == nil {
		// The scope has no open holds here, so the durable spending is complete.
		a = newQuota(scope, c.budgets)
		c.scopes[scope] = a
	}
	return a
}

// limits returns the budgets that the quotas enforce, as they are now. Posting.Limits calls it.
func (b *bounds) limits() []money.Limit {
	all := make([]money.Limit, len(b.all))
	for i, a := range b.all {
		all[i] = money.Limit{Scope: a.scope, Budget: a.budgets.BudgetOf(a.scope)}
	}
	return all
}

// hold changes the held amount of the account and of its quotas by delta without a check. It does nothing if other
// processes change the account, because then only the journal knows what is held in all.
func (c *core) hold(h *hold, delta int64) {
	if c.others != nil {
		return
	}
	c.held += delta
	for _, a := range h.bounds.all {
		a.move(c.account, delta)
	}
}

// take adds amount to the held amount. It refuses an amount that the account does not have
// or that a budget does not cover, and then changes nothing.
func (c *core) take(now time.Time, b *bounds, amount int64) error {
	if amount > c.available() {
		return c.insufficient(amount)
	}
	for i, a := range b.all {
		if err := a.hold(now, c.account, amount); err != nil {
			for _, before := range b.all[:i] {
				before.move(c.account, -amount)
			}
			return err
		}
	}
	c.held += amount
	return nil
}

// room returns the amount that the account and every budget can still hold.
func (c *core) room(now time.Time, b *bounds) int64 {
	if c.others != nil {
		return max(c.others.room(b), 0) + max(b.allowance.spare(), 0)
	}
	room := c.available()
	for _, a := range b.all {
		room = min(room, a.room(now))
	}
	return max(room, 0)
}
