package ledger_test

import (
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

// An account handles a message on the goroutine of its sender, which may be a request or the writer of the state. So it
// must not wait in Receive, above all not for a commit.
func TestAnAccountAnswersWhileACommitTakesAnHour(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, _ *state.State, store *statetest.Faulty) {
		credit(t, c, "a", 1000)
		first, second := hold(t, c, "a", "r1", 100), hold(t, c, "a", "r2", 100)
		kittest.Quiesce()
		store.Before(func([]journal.Batch) error {
			time.Sleep(time.Hour)
			return nil
		})
		settled := make(chan error, 1)
		go func() { settled <- first.Settle(ctx, ledger.Settlement{Amount: 50, Reason: "finished"}) }()
		kittest.Quiesce()
		began := time.Now()
		third := hold(t, c, "a", "r3", 100)
		if err := second.Extend(ctx, 50); err != nil {
			t.Error(err)
		}
		second.Progress(60)
		if _, err := second.Room(ctx); err != nil {
			t.Error(err)
		}
		balance(t, c, "a")
		second.Release("refused", nil)
		third.Release("refused", nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("the account kept its callers for %s while a commit was in progress", took)
		}
		select {
		case err := <-settled:
			t.Errorf("settled before the commit: %v", err)
		default:
		}
		store.Before(nil)
		if err := <-settled; err != nil {
			t.Error(err)
		}
	})
}
