package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// scopedBudgets give every key the budgets of its user and of one group.
type scopedBudgets map[budget.Scope]int64

func (scopedBudgets) AccessVersion() uint64 { return 0 }

func (scopedBudgets) BudgetScopes(key, account string) []budget.Scope {
	return []budget.Scope{{ID: key}, {Kind: budget.GroupScope, ID: "g"}}
}

func (b scopedBudgets) BudgetOf(s budget.Scope) budget.Budget { return budget.Budget{Amount: b[s]} }

func (scopedBudgets) SpentBy(s budget.Scope) money.KeySpend { return money.KeySpend{Key: s.Name()} }

// The budgets of the key, its user and its group all apply. Two accounts share the group. A refusal
// by one budget leaves the others unchanged.
func TestEveryBudgetOfAHoldCounts(t *testing.T) {
	budgets := scopedBudgets{
		{ID: "k1"}:                         50,
		{Kind: budget.UserScope, ID: "a"}:  70,
		{Kind: budget.GroupScope, ID: "g"}: 100,
	}
	now, group := time.Now(), new(shared)
	a := newCore(money.Account{ID: "a", Credits: 1000}, nil, budgets, group)
	b := newCore(money.Account{ID: "b", Credits: 1000}, nil, budgets, group)
	steps := []struct {
		core    *core
		key     string
		amount  int64
		refused budget.ScopeKind // "none": granted
	}{
		{a, "k1", 51, budget.KeyScope},
		{a, "k1", 50, "none"},
		{a, "k1", 1, budget.KeyScope},
		{a, "k2", 21, budget.UserScope},
		{a, "k2", 20, "none"},
		{b, "k3", 31, budget.GroupScope},
		{b, "k3", 30, "none"},
		{b, "k3", 1, budget.GroupScope},
	}
	var last *hold
	for i, step := range steps {
		receipt := money.Receipt{Request: fmt.Sprint(i), Key: step.key}
		h, err := step.core.beginHold(now, step.amount, receipt, false, nil)
		var over *budget.Error
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
