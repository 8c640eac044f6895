package state

import "stagedoor/state/budget"

// Key returns the key with a hash; see Access.
func (s *State) Key(hash Hash) (Key, bool) { return AccessOf(s).Key(hash) }

// Blocked reports whether an account is blocked; see Access.
func (s *State) Blocked(account string) bool { return AccessOf(s).Blocked(account) }

// UserPermits checks ceilings; see Access.
func (s *State) UserPermits(account, scope, model string) error {
	return AccessOf(s).UserPermits(account, scope, model)
}

// BudgetScopes returns scopes; see Access.
func (s *State) BudgetScopes(key, account string) []budget.Scope {
	return AccessOf(s).BudgetScopes(key, account)
}

// BudgetOf returns a budget; see Access.
func (s *State) BudgetOf(scope budget.Scope) budget.Budget { return AccessOf(s).BudgetOf(scope) }

// KeyEra returns the era; see Access.
func (s *State) KeyEra() uint64 { return AccessOf(s).KeyEra() }

// WatchAccess returns the channel of the next era; see Access.
func (s *State) WatchAccess() <-chan struct{} { return AccessOf(s).WatchAccess() }
