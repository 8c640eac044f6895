package state

import (
	"fmt"
	"strings"
	"time"
)

// A Scope is what a budget bounds: a key, a user or a group of users.
type Scope struct {
	Kind ScopeKind
	ID   string // the id of the key, the name of the user or of the group
}

// ScopeNamed returns the scope with a durable name.
func ScopeNamed(name string) Scope {
	if kind, id, found := strings.Cut(name, ":"); found {
		return Scope{ScopeKind(kind), id}
	}
	return Scope{KeyScope, name}
}

// ScopeKind says what a Scope names.
type ScopeKind string

// The kinds of scopes.
const (
	KeyScope   ScopeKind = ""
	UserScope  ScopeKind = "user"
	GroupScope ScopeKind = "group"
)

// Name is the durable name of a scope: the key of its KeySpend. No id of a key has a
// colon in it.
func (s Scope) Name() string {
	if s.Kind == KeyScope {
		return s.ID
	}
	return string(s.Kind) + ":" + s.ID
}

// Budget is what a key, a user or a group may spend and hold in a window. The zero Budget, one
// without an amount, bounds nothing.
type Budget struct {
	Amount int64 // micro-dollars
	Window Window
}

// Left is what a scope can still hold at now that has spent s and holds held:
// MaxCredits if nothing bounds it, and never below zero.
func (b Budget) Left(s *KeySpend, held int64, now time.Time) int64 {
	if b.Amount <= 0 {
		return MaxCredits
	}
	return max(b.Amount-s.In(b.Window, now)-held, 0)
}

// BudgetError says that the budget of a scope does not cover what is asked.
type BudgetError struct {
	Scope  Scope
	Budget Budget
	Left   int64 // of the budget
	Asked  int64
}

func (e *BudgetError) Error() string {
	what := string(e.Scope.Kind)
	if e.Scope.Kind == KeyScope {
		what = "key"
	}
	return fmt.Sprintf("%d asked, %d left of the budget of %d (%s) of %s %s", e.Asked, e.Left, e.Budget.Amount, e.Budget.Window.Name(), what, e.Scope.ID)
}

// Name is the window, WindowTotal for the empty one.
func (w Window) Name() Window {
	if w == "" {
		return WindowTotal
	}
	return w
}

// State is what a key is at now in a word: active, disabled, expired or revoked.
func (k *Key) State(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case k.expired(now):
		return "expired"
	case !k.Enabled:
		return "disabled"
	}
	return "active"
}

// Limit is the key's budget.
func (k *Key) Limit() Budget { return Budget{Amount: k.Budget, Window: k.Window} }

// KeySpent is what a key has spent, as far as it is durable.
func (s *State) KeySpent(key string) KeySpend { return s.View().KeySpend(key) }

// SpentBy returns what a scope has spent, as far as it is durable.
func (s *State) SpentBy(scope Scope) KeySpend { return s.View().SpentBy(scope) }

// SpentBy returns what a scope has spent. For a user it is the sum of what the user's keys have spent, so a
// budget counts what was spent before it was set, too.
func (v View) SpentBy(scope Scope) KeySpend {
	if scope.Kind != UserScope {
		return v.KeySpend(scope.Name())
	}
	sum := KeySpend{Key: scope.Name()}
	for _, s := range v.KeySpends(scope.ID) {
		sum.join(&s)
	}
	return sum
}
