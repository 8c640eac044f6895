package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/statetest"
)

func TestOverrunLeavesADebtThatBlocksHoldsUntilItIsPaid(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 100)
		if err := hold(t, c, "7", "dear", 10).Settle(ctx,
			ledger.Settlement{Amount: 130, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		if b := balance(t, c, "7"); b.Available() != -30 || b.Spent != 130 {
			t.Errorf("got %+v, want a debt of 30", b)
		}
		r, err := money.Receipts(ctx, s, "7", "dear")
		if err != nil || r[0].Charged != 130 || !slices.Contains(r[0].Flags, ledger.FlagOverrun) {
			t.Errorf("got %+v, %v, want a charge of 130 that is flagged", r, err)
		}
		refused := func(amount int64) {
			t.Helper()
			if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "next", Amount: amount}); !errors.Is(err,
				money.ErrInsufficient) {
				t.Errorf("a hold of %d: got %v, want a refusal", amount, err)
			}
		}
		refused(0)
		credit(t, c, "7", 29)
		refused(0)
		credit(t, c, "7", 2)
		refused(2)
		hold(t, c, "7", "paid", 1).Release("refused", nil)
	})
}

// Such a key has no balance and needs none.
func TestKeyWithoutAUserIsBoundByItsBudget(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		key := identity.Key{ID: "key_1", Hash: state.HashSecret("key_1"), Enabled: true, Budget: 100}
		if err := identity.CreateKey(ctx, s, key); err != nil {
			t.Fatal(err)
		}
		ask := ledger.Ask{Account: identity.AccountOf(&key), RequestID: "r", Amount: 60, Key: key.ID}
		h, err := c.Hold(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		var over *budget.Error
		if _, err := c.Hold(ctx, ask); !errors.As(err, &over) {
			t.Errorf("a hold beyond the budget: got %v, want a refusal", err)
		}
		if err := h.Settle(ctx, ledger.Settlement{Amount: 110, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		if got := money.SpentByKey(s.View(), key.ID).Total; got != 110 {
			t.Errorf("the key has spent %d, want 110", got)
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: ask.Account, RequestID: "s", Amount: 1, Key: key.ID}); !errors.As(
			err,
			&over,
		) {
			t.Errorf("a hold with the budget used up: got %v, want a refusal", err)
		}
	})
}
