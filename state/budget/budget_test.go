package budget_test

import (
	"testing"

	"stagedoor/state/budget"
)

// TestTheNameOfAScopeIsReadBack, because the state counts spending under names.
func TestTheNameOfAScopeIsReadBack(t *testing.T) {
	for name, scope := range map[string]budget.Scope{
		"key_1":      {Kind: budget.KeyScope, ID: "key_1"},
		"user:anna":  {Kind: budget.UserScope, ID: "anna"},
		"group:7":    {Kind: budget.GroupScope, ID: "7"},
		"user:a:b":   {Kind: budget.UserScope, ID: "a:b"},
		"user:group": {Kind: budget.UserScope, ID: "group"},
	} {
		if got := scope.Name(); got != name {
			t.Errorf("%+v is named %q, want %q", scope, got, name)
		}
		if got := budget.ScopeNamed(name); got != scope {
			t.Errorf("%q is %+v, want %+v", name, got, scope)
		}
	}
}

// TestWhatIsLeftOfABudget is never below zero, and without an amount all that an account can hold.
func TestWhatIsLeftOfABudget(t *testing.T) {
	for _, c := range []struct{ amount, spent, held, left int64 }{
		{0, 5, 5, budget.MaxCredits}, {-1, 0, 0, budget.MaxCredits}, {10, 0, 0, 10}, {10, 4, 5, 1}, {10, 4, 6, 0},
		{10, 11, 0, 0},
	} {
		if left := (budget.Budget{Amount: c.amount}).Left(c.spent, c.held); left != c.left {
			t.Errorf("of %d with %d spent and %d held %d is left, want %d", c.amount, c.spent, c.held, left, c.left)
		}
	}
}

// TestAnEmptyWindowIsTheTotal, as records of keys without a window have it.
func TestAnEmptyWindowIsTheTotal(t *testing.T) {
	for w, known := range map[budget.Window]bool{"": true, "total": true, "day": true, "month": true, "week": false,
		"Day": false} {
		if w.Known() != known {
			t.Errorf("%q is known: %v", w, !known)
		}
	}
	if budget.Window("").Name() != budget.WindowTotal || budget.WindowDay.Name() != budget.WindowDay {
		t.Error("the names of windows are wrong")
	}
	err := &budget.Error{Budget: budget.Budget{Amount: 10}, Scope: budget.Scope{ID: "key_1"}, Left: 1, Asked: 2}
	if want := "2 asked, 1 left of the budget of 10 (total) of key key_1"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
