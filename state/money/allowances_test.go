package money_test

import (
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// TestAllowancesOfOtherNodesCountForBudgets: a node holds of a budget only what no other node may hold. The second node
// has no allowance itself. For a group the allowance is another member's.
func TestAllowancesOfOtherNodesCountForBudgets(t *testing.T) {
	cluster, clock := statetest.NewCluster(), newClock()
	var nodes []*state.State
	for _, name := range []string{"a", "b"} {
		s, err := schema.Open(cluster.Join(name), clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		nodes = append(nodes, s)
	}
	post := func(s *state.State, account string, p money.Posting) error {
		_, results, err := money.CommitPostings(ctx, s, account, []money.Posting{p})
		return errors.Join(err, results[0].Err)
	}
	name := money.AllowanceName{Key: "key_1", Group: "group:staff"}
	grant := money.Posting{Kind: money.Grant, Amount: 60, Least: 60, Parts: 1, Allowance: &name}
	err := errors.Join(post(nodes[0], "7", money.Posting{Kind: money.Credit, Amount: 1000}),
		post(nodes[0], "8", money.Posting{Kind: money.Credit, Amount: 1000}), post(nodes[0], "7", grant))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind        budget.ScopeKind
		id, account string
	}{{budget.KeyScope, "key_1", "7"}, {budget.UserScope, "7", "7"}, {budget.GroupScope, "staff", "8"}} {
		limit := money.Limit{Scope: budget.Scope{Kind: tt.kind, ID: tt.id}, Budget: budget.Budget{Amount: 100}}
		begin := money.Posting{Kind: money.Begin, Amount: 41, Receipt: &money.Receipt{Request: "r"},
			Limits: func() []money.Limit { return []money.Limit{limit} }}
		err := post(nodes[1], tt.account, begin)
		if over, ok := errors.AsType[*budget.Error](err); !ok || over.Left != 40 || over.Scope != limit.Scope {
			t.Errorf("a budget of the %s of 100, of which another node has 60, held 41: %v", tt.kind, err)
		}
	}
}
