package money

import (
	"slices"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// Limit is the budget that a scope has.
type Limit struct {
	Scope  budget.Scope
	Budget budget.Budget
}

// Room returns the amount that an account can still hold within its credits and within limits, by what is durable. It
// is negative while the account is in debt.
func Room(v state.View, account string, limits []Limit) int64 {
	a := FindAccount(v, account)
	room := a.free()
	for _, l := range limits {
		room = min(room, l.left(v, &a, &tally{}))
	}
	return room
}

// left returns what the scope can still hold. a is the account of the request, and t has what the running command has
// charged so far.
func (l *Limit) left(v state.View, a *Account, t *tally) int64 {
	if l.Budget.Amount <= 0 {
		return budget.MaxCredits
	}
	spent := t.spentBy(v, l.Scope)
	return l.Budget.Left(spent.In(l.Budget.Window, v.Now()), heldBy(v, l.Scope, a))
}

// heldBy returns the sum of the open holds and of the allowances of a scope. There is no record of that sum, which
// would change with each request of a whole group: the open holds are the requests in flight, so they are few.
func heldBy(v state.View, scope budget.Scope, a *Account) (sum int64) {
	switch scope.Kind {
	case budget.UserScope:
		return a.Held + a.Granted
	case budget.KeyScope:
		for _, r := range holds.Under(v, byAccount, state.TextKey(a.ID)) {
			if r.Rec.Receipt.Key == scope.ID {
				sum += r.Rec.Amount
			}
		}
		for _, r := range allowances.Under(v, byAccount, state.TextKey(a.ID)) {
			if r.Rec.Key == scope.ID {
				sum += r.Rec.Amount
			}
		}
	case budget.GroupScope:
		name := scope.Name()
		for h := range holds.All(v) {
			if slices.Contains(h.Receipt.Scopes, name) {
				sum += h.Amount
			}
		}
		for _, r := range allowances.Under(v, byGroup, state.TextKey(name)) {
			sum += r.Rec.Amount
		}
	}
	return sum
}

// checkLimits returns a *budget.Error if a limit does not cover an amount of the posting.
func (p *poster) checkLimits(what *Posting, amount int64) error {
	if what.Limits == nil || amount == 0 {
		return nil
	}
	if err := p.flushAllowances(); err != nil {
		return err
	}
	for _, l := range what.Limits() {
		if left := l.left(p.tx.View(), &p.account, &p.tally); amount > left {
			return &budget.Error{Scope: l.Scope, Budget: l.Budget, Left: left, Asked: amount}
		}
	}
	return nil
}

// spentBy returns what a scope has spent, with what the running command has charged.
func (t *tally) spentBy(v state.View, scope budget.Scope) KeySpend {
	if scope.Kind != budget.UserScope {
		if s := t.changedSpend(scope.Name()); s != nil {
			return *s
		}
		return SpentByKey(v, scope.Name())
	}
	sum := KeySpend{Key: scope.Name()}
	for _, r := range spends.Under(v, byAccount, state.TextKey(scope.ID)) {
		if t.changedSpend(r.Rec.Key) == nil {
			sum.join(&r.Rec)
		}
	}
	for _, s := range t.spends {
		if s.Account == scope.ID {
			sum.join(s)
		}
	}
	return sum
}
