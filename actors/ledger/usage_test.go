package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/statetest"
)

func used(t *testing.T, s *state.State) (rows int, total money.UsageRow) {
	t.Helper()
	all, err := money.QueryUsage(ctx, s,
		money.UsageQuery{From: time.Now(), To: time.Now(), Per: money.PerAccount | money.PerKey | money.PerModel},
	)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		total.Add(&all[i])
	}
	return len(all), total
}

// The usage of many requests is one commit, within a second. Usage that could not be written is
// written later.
func TestUsageWithoutAPriceIsCountedInBatches(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		count := func() {
			for i := range 1000 {
				c.CountUsage(
					money.UsageRow{
						Account:      "7",
						Key:          "key_1",
						Model:        fmt.Sprint("m", i%3),
						Requests:     1,
						InputTokens:  10,
						OutputTokens: 2,
					},
				)
			}
		}
		store.Refuse(journal.ErrReadOnly)
		count()
		kittest.Pass(2 * time.Second)
		if rows, _ := used(t, s); rows != 0 {
			t.Errorf("%d rows were written to a store that takes none", rows)
		}
		store.Refuse(nil)
		count()
		kittest.Pass(2 * time.Second)
		if rows, total := used(t, s); rows != 3 || total.Requests != 2000 || total.InputTokens != 20_000 ||
			total.OutputTokens != 4000 {
			t.Errorf("got %d rows with %+v", rows, total)
		}
	})
}

// Names beyond the limit share one row of their key.
func TestUsageIsBoundedInMemory(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		for i := range 5000 {
			c.CountUsage(money.UsageRow{Account: "7", Key: "key_1", Model: fmt.Sprint("m", i), Requests: 1})
		}
		kittest.Pass(2 * time.Second)
		if rows, total := used(t, s); rows > 501 || total.Requests != 5000 {
			t.Errorf("got %d rows with %+v", rows, total)
		}
	})
}

func TestUsageOfOneAccountDoesNotTakeTheRowsOfOthers(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		store.Refuse(journal.ErrReadOnly) // so that the rows are gathered
		for i := range 2500 {
			c.CountUsage(
				money.UsageRow{Account: "7", Key: fmt.Sprint("key_", i%9), Model: fmt.Sprint("m", i), Requests: 1},
			)
		}
		for i := range 100 {
			c.CountUsage(money.UsageRow{Account: "8", Key: "key_ann", Model: fmt.Sprint("m", i), Requests: 1})
		}
		kittest.Pass(2 * time.Second)
		if own := c.UsageRows().Held("7"); own > 4096/2+9 {
			t.Errorf("one account has %d rows, want at most half of 4096, and one for each key", own)
		}
		store.Refuse(nil)
		kittest.Pass(2 * time.Second)
		rows, err := money.QueryUsage(t.Context(), s,
			money.UsageQuery{Account: "8", From: s.Now(), To: s.Now(), Per: money.PerModel},
		)
		if err != nil || len(rows) != 100 {
			t.Errorf("the other account has %d rows (%v), want one for each of 100 models", len(rows), err)
		}
		if used := c.UsageRows().Used(); used != 0 {
			t.Errorf("%d rows are still counted", used)
		}
	})
}

// Rows that are being written are still in memory, so the next write waits for the end of the one before.
func TestUsageIsWrittenOnceAtATime(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := statetest.NewFaulty()
		s := open(t, store)
		defer s.Close()
		c := start(t, sys, s)
		landing := make(chan struct{})
		store.Before(func([]journal.Batch) error { <-landing; return nil })
		for i := range 30 {
			c.CountUsage(money.UsageRow{Account: "7", Key: "key_1", Model: fmt.Sprint("m", i), Requests: 1})
			kittest.Pass(time.Second)
		}
		if running := sys.Stats().Goroutines; running != 1 {
			t.Errorf("%d writes of usage run at once, want 1", running)
		}
		close(landing)
		kittest.Pass(2 * time.Second)
		if rows, total := used(t, s); rows != 30 || total.Requests != 30 {
			t.Errorf("got %d rows with %+v, want 30", rows, total)
		}
		if used := c.UsageRows().Used(); used != 0 {
			t.Errorf("%d rows still wait to be written", used)
		}
	})
}

func TestUsageIsWrittenWhenTheLedgerStops(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := open(t, journal.NewMemory())
		defer s.Close()
		start(t, sys, s).CountUsage(money.UsageRow{Account: "7", Key: "key_1", Model: "m", Requests: 1})
		stop, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := sys.Stop(stop); err != nil {
			t.Fatal(err)
		}
		if _, total := used(t, s); total.Requests != 1 {
			t.Errorf("got %+v, want the one request", total)
		}
	})
}
