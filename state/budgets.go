package state

import (
	"fmt"
	"time"
)

// Budget is what a key may spend and hold in a window. The zero Budget, one
// without an amount, bounds nothing.
type Budget struct {
	Amount int64 // micro-dollars
	Window Window
}

// Left is what a key can still hold at now that has spent s and holds held:
// MaxCredits if nothing bounds it, and never below zero.
func (b Budget) Left(s *KeySpend, held int64, now time.Time) int64 {
	if b.Amount <= 0 {
		return MaxCredits
	}
	return max(b.Amount-s.In(b.Window, now)-held, 0)
}

// BudgetError says that a key's budget does not cover what is asked.
type BudgetError struct {
	Key    string // its id
	Budget Budget
	Left   int64 // of the budget
	Asked  int64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("%d asked, %d left of the budget of %d (%s) of key %s", e.Asked, e.Left, e.Budget.Amount, e.Budget.Window.Name(), e.Key)
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

// KeyBudget is a key's budget as it is now. A key that is not in the store has
// none.
func (s *State) KeyBudget(key string) Budget {
	if r := keys.get(s.snapshot(), key); r != nil {
		return r.rec.Limit()
	}
	return Budget{}
}

// KeyEra changes with every change of a key: what was read of keys counts until
// then. Whoever keeps such a thing reads the era first.
func (s *State) KeyEra() uint64 { return s.keyEra.Load() }

// KeySpent is what a key has spent, as far as it is durable.
func (s *State) KeySpent(key string) KeySpend { return s.View().KeySpend(key) }
