package ledger_test

import (
	"context"
	"os"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

func TestMain(m *testing.M) {
	if !statetest.Child(moveMoney) {
		os.Exit(m.Run())
	}
}

var ctx = context.Background()

func open(tb testing.TB, store journal.Store) *state.State {
	tb.Helper()
	s, err := schema.Open(statetest.DecideTwice(store), time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func start(tb testing.TB, sys *kit.System, s *state.State) *ledger.Client {
	tb.Helper()
	c, err := ledger.New(sys, s)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// run runs body with a ledger in a bubble of fake time and checks the ledger afterwards.
func run(t *testing.T, body func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty)) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := statetest.NewFaulty()
		s := open(t, store)
		c := start(t, sys, s)
		body(t, c, s, store)
		kittest.Pass(time.Second)
		if _, err := money.CheckLedger(ctx, s); err != nil {
			t.Error(err)
		}
		stop, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := sys.Stop(stop); err != nil {
			t.Error(err)
		}
		s.Close()
	})
}

func credit(tb testing.TB, c *ledger.Client, account string, amount int64) {
	tb.Helper()
	if err := c.Credit(ctx, account, amount, "test"); err != nil {
		tb.Fatal(err)
	}
}

func hold(tb testing.TB, c *ledger.Client, account, request string, amount int64) *ledger.Hold {
	tb.Helper()
	h, err := c.Hold(ctx, ledger.Ask{Account: account, RequestID: request, Amount: amount, Key: "key_1", Model: "m"})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func balance(tb testing.TB, c *ledger.Client, account string) ledger.Balance {
	tb.Helper()
	b, err := c.Balance(ctx, account)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
