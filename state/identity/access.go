package identity

import (
	"strconv"
	"sync/atomic"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// Access answers what every request asks: which key it has, and what the key and its user may do. It is kept in memory
// beside the tables, so that a lookup takes no transaction and no lock. AccessOf returns it. Any goroutine may use it.
type Access struct {
	state   *state.State
	keys    keyring
	roster  roster
	era     atomic.Uint64
	changed atomic.Pointer[chan struct{}] // closed by the next change of era
}

// AccessOf returns the Access of a state.
func AccessOf(s *state.State) *Access { return state.MemoryOf[*Access](s) }

// advance begins the next era.
func (a *Access) advance() {
	a.era.Add(1)
	next := make(chan struct{})
	close(*a.changed.Swap(&next))
}

// Key returns the key with the hash of the secret that a client sent. Whether the key may be used is for Key.Permits to
// say.
func (a *Access) Key(hash state.Hash) (Key, bool) { return a.keys.find(hash) }

// KeysOf returns the committed keys of a user, revoked ones included, in the order in which they were made. They are
// shared and must not be changed. A command uses the function of this name, which sees the changes of its group.
func (a *Access) KeysOf(user string) []Key { return a.keys.of(user) }

// KeyByID returns one key.
func (a *Access) KeyByID(id string) (Key, error) { return FindKey(a.state.View(), id) }

// Blocked reports whether an account is that of a disabled user, whose keys are refused.
func (a *Access) Blocked(account string) bool {
	u := a.roster.find(account)
	return u != nil && !u.Active()
}

// UserPermits returns nil if the ceilings of an account's user and of the user's group permit scope and model, and else
// an error that wraps ErrScopeForbidden or ErrModelForbidden. An empty scope or model is not checked.
func (a *Access) UserPermits(account, scope, model string) error {
	u := a.roster.find(account)
	if u == nil {
		return nil
	}
	if err := u.Ceiling.permits(scope, model); err != nil {
		return &CeilingError{owner: "user", cause: err}
	}
	if g := a.roster.groupOf(u); g != nil {
		if err := g.Ceiling.permits(scope, model); err != nil {
			return &CeilingError{owner: "group", cause: err}
		}
	}
	return nil
}

// BudgetScopes returns the scopes whose budgets bound the requests of a key that are charged to account, beside the
// user's: the key's own and the group's. What a request costs is counted for each.
func (a *Access) BudgetScopes(key, account string) []budget.Scope {
	var all []budget.Scope
	if key != "" {
		all = append(all, budget.Scope{Kind: budget.KeyScope, ID: key})
	}
	if u := a.roster.find(account); u != nil {
		if g := a.roster.groupOf(u); g != nil {
			all = append(all, g.Scope())
		}
	}
	return all
}

// BudgetOf returns the budget of a scope as it is now. A key that is not in the store has none.
func (a *Access) BudgetOf(scope budget.Scope) budget.Budget {
	switch scope.Kind {
	case budget.UserScope:
		if u := a.roster.find(scope.ID); u != nil {
			return u.Ceiling.Limit()
		}
		return budget.Budget{}
	case budget.GroupScope:
		return a.groupBudget(scope.ID)
	}
	if r := keys.Get(a.state.View(), scope.ID); r != nil {
		return r.Rec.Limit()
	}
	return budget.Budget{}
}

func (a *Access) groupBudget(id string) budget.Budget {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return budget.Budget{}
	}
	if g := a.roster.groupOf(&User{Group: n}); g != nil {
		return g.Ceiling.Limit()
	}
	return budget.Budget{}
}

// KeyEra changes with every change of a key, a user or a group. What was read of scopes and budgets is valid until
// then. A caller that keeps such a value reads the era first.
func (a *Access) KeyEra() uint64 { return a.era.Load() }

// WatchAccess returns a channel that is closed by the next change of KeyEra. Take it before reading what is to be
// watched.
func (a *Access) WatchAccess() <-chan struct{} { return *a.changed.Load() }
