package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"stagedoor/state"
)

// scopedBudgets give every key the budgets of its user and of one group.
type scopedBudgets map[state.Scope]int64

func (scopedBudgets) KeyEra() uint64 { return 0 }

func (scopedBudgets) BudgetScopes(key, account string) []state.Scope {
	return []state.Scope{{ID: key}, {Kind: state.GroupScope, ID: "g"}}
}

func (b scopedBudgets) BudgetOf(s state.Scope) state.Budget { return state.Budget{Amount: b[s]} }

func (scopedBudgets) SpentBy(s state.Scope) state.KeySpend { return state.KeySpend{Key: s.Name()} }

// TestEveryBudgetOfAHoldCounts: of its key, its user and its group, which two accounts
// share. A refusal by one leaves the others as they were.
func TestEveryBudgetOfAHoldCounts(t *testing.T) {
	budgets := scopedBudgets{
		{ID: "k1"}:                        50,
		{Kind: state.UserScope, ID: "a"}:  70,
		{Kind: state.GroupScope, ID: "g"}: 100,
	}
	now, group := time.Now(), new(shared)
	a := newCore(state.Account{ID: "a", Credits: 1000}, nil, budgets, group)
	b := newCore(state.Account{ID: "b", Credits: 1000}, nil, budgets, group)
	steps := []struct {
		core    *core
		key     string
		amount  int64
		refused state.ScopeKind // "none": granted
	}{
		{a, "k1", 51, state.KeyScope},
		{a, "k1", 50, "none"},
		{a, "k1", 1, state.KeyScope},
		{a, "k2", 21, state.UserScope},
		{a, "k2", 20, "none"},
		{b, "k3", 31, state.GroupScope},
		{b, "k3", 30, "none"},
		{b, "k3", 1, state.GroupScope},
	}
	var last *hold
	for i, step := range steps {
		h, err := step.core.beginHold(now, step.amount, state.Receipt{Request: fmt.Sprint(i), Key: step.key}, nil)
		var over *state.BudgetError
		switch {
		case err == nil && step.refused == "none":
			last = h
		case !errors.As(err, &over) || over.Scope.Kind != step.refused:
			t.Fatalf("step %d: got %v, want a refusal by %q", i, err, step.refused)
		}
	}
	b.release(last, "refused", nil, nil)
	if room := a.room(now, a.boundsOf("k9")); room != 0 {
		t.Errorf("user a can hold %d more, want 0", room)
	}
	if room := b.room(now, b.boundsOf("k3")); room != 30 {
		t.Errorf("user b can hold %d more, want the 30 that were released", room)
	}
	if got := fmt.Sprint(last.known.receipt().Scopes); got != "[group:g]" {
		t.Errorf("the receipt counts for %s", got)
	}
}
