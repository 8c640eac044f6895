package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/statetest"
)

func TestHoldSettleRelease(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		_, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_0", Amount: 1})
		var e *dialogue.Error
		if !errors.Is(err, money.ErrInsufficient) || !errors.As(err, &e) || e.Status != 429 ||
			e.Type != "insufficient_quota" ||
			e.Code != "insufficient_quota" ||
			!e.NoRetry {
			t.Fatalf("an empty account: got %v, want a 429 insufficient_quota", err)
		}
		credit(t, c, "7", 100)
		a, b := hold(t, c, "7", "req_a", 60), hold(t, c, "7", "req_b", 40)
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_c", Amount: 1}); !errors.Is(err,
			money.ErrInsufficient) {
			t.Fatalf("all is held: got %v", err)
		}
		if err := a.Extend(ctx, 1); !errors.Is(err, money.ErrInsufficient) || a.Amount() != 60 {
			t.Fatalf("extended what is not there: %v, %d", err, a.Amount())
		}
		b.Release("refused", nil)
		if err := a.Extend(ctx, 5); err != nil || a.Amount() != 65 {
			t.Fatalf("extend: %v, %d", err, a.Amount())
		}
		if err := a.Settle(ctx, ledger.Settlement{Amount: 33, Reason: "finished",
			Receipt: &money.Receipt{Provider: "p", Attempts: 2}}); err != nil {
			t.Fatal(err)
		}
		if got := money.FindAccount(s.View(), "7"); got.Spent != 33 || got.Held != 0 {
			t.Errorf("after the settlement was acknowledged: got %+v", got)
		}
		// Later ends change nothing.
		if err := a.Settle(ctx, ledger.Settlement{Amount: 50}); err != nil {
			t.Error(err)
		}
		a.Release("again", nil)
		b.Release("again", nil)
		if err := b.Settle(ctx, ledger.Settlement{Amount: 5}); err != nil {
			t.Error(err)
		}
		if err := a.Extend(ctx, 1); err == nil {
			t.Error("extended what has ended")
		}
		kittest.Pass(time.Second)
		if got := balance(t, c, "7"); got != (ledger.Balance{Credits: 100, Spent: 33}) || got.Available() != 67 {
			t.Errorf("got %+v", got)
		}
		r, err := money.Receipts(ctx, s, "7", "req_a")
		if err != nil || len(r) != 1 || r[0].Charged != 33 || r[0].Held != 65 || r[0].Reason != "finished" ||
			r[0].Key != "key_1" ||
			r[0].Model != "m" ||
			r[0].Provider != "p" ||
			r[0].Attempts != 2 {
			t.Errorf("receipt of a: %+v, %v", r, err)
		}
		r, err = money.Receipts(ctx, s, "7", "req_b")
		if err != nil || len(r) != 1 || r[0].Charged != 0 || r[0].Held != 40 || r[0].Reason != "refused" {
			t.Errorf("receipt of b: %+v, %v", r, err)
		}
	})
}

func TestMoneyThatComesInIsThereAtOnce(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 10)
		h := hold(t, c, "7", "req_a", 10) // the actor is up and knows of ten
		credit(t, c, "7", 5)
		if err := h.Extend(ctx, 5); err != nil {
			t.Errorf("after a credit: %v", err)
		}
		codes, _, err := c.Mint(ctx, 2, 7, "operator", time.Time{}, rand.NewChaCha8([32]byte{}))
		if err != nil {
			t.Fatal(err)
		}
		if amount, err := c.Redeem(ctx, "7", codes[1]); err != nil || amount != 7 {
			t.Fatalf("redeem: %d, %v", amount, err)
		}
		if _, err := c.Redeem(ctx, "8", codes[1]); !errors.Is(err, money.ErrRedeemed) {
			t.Errorf("a second time: %v", err)
		}
		if err := c.Adjust(ctx, "7", -8, "too much"); !errors.Is(err, money.ErrInsufficient) {
			t.Errorf("took what is held: %v", err)
		}
		if err := c.Adjust(ctx, "7", -7, "too much"); err != nil {
			t.Error(err)
		}
		if got := balance(t, c, "7"); got != (ledger.Balance{Credits: 15, Held: 15}) {
			t.Errorf("got %+v", got)
		}
		if err := c.Adjust(ctx, "7", 3, "sorry"); err != nil {
			t.Error(err)
		}
		if err := h.Extend(ctx, 3); err != nil {
			t.Error(err)
		}
		h.Release("end", nil)
		for _, amount := range []int64{0, -1, budget.MaxCredits} {
			if err := c.Credit(ctx, "7", amount, ""); !errors.Is(err, state.ErrInvalid) {
				t.Errorf("a credit of %d: %v", amount, err)
			}
		}
		if _, _, err := c.Mint(ctx, 0, 7, "", time.Time{}, rand.NewChaCha8([32]byte{})); !errors.Is(err,
			state.ErrInvalid) {
			t.Errorf("no codes: %v", err)
		}
	})
}

// A short hold is one entry, a long one can be found after a crash, and a durable one at once.
func TestJournalOfAHold(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 100)
		short := hold(t, c, "7", "req_short", 10)
		kittest.Pass(10 * time.Millisecond)
		if err := short.Settle(ctx, ledger.Settlement{Amount: 4, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		entries, err := money.History(ctx, s, "7", 0, 10)
		if err != nil || len(entries) != 2 || entries[0].Kind != money.Settle ||
			entries[0].Hold != entries[0].Sequence ||
			entries[0].Held != 10 {
			t.Fatalf("short: got %+v, %v", entries, err)
		}
		long := hold(t, c, "7", "req_long", 10)
		if len(money.ListHolds(s.View(), "7")) != 0 {
			t.Error("a text hold is not waited for")
		}
		kittest.Pass(time.Second)
		if err := long.Extend(ctx, 5); err != nil {
			t.Fatal(err)
		}
		long.Progress(6)
		kittest.Pass(time.Second)
		if open := money.ListHolds(s.View(), "7"); len(open) != 1 || open[0].Amount != 15 || open[0].Progress != 6 ||
			open[0].Receipt.Request != "req_long" {
			t.Errorf("long: got %+v", open)
		}
		durable, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_video", Amount: 20, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		if open := money.ListHolds(s.View(), "7"); len(open) != 2 || open[1].Amount != 20 {
			t.Errorf("durable: got %+v", open)
		}
		for _, h := range []*ledger.Hold{long, durable} {
			if err := h.Settle(ctx, ledger.Settlement{Amount: 7, Reason: "finished"}); err != nil {
				t.Fatal(err)
			}
		}
		if open := money.ListHolds(s.View(), ""); len(open) != 0 {
			t.Errorf("left: %+v", open)
		}
	})
}

func TestAFullDiskChargesNothingAndLosesNothing(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		credit(t, c, "7", 100)
		a, b := hold(t, c, "7", "req_a", 40), hold(t, c, "7", "req_b", 40)
		kittest.Pass(time.Second)
		store.Refuse(journal.ErrReadOnly)
		err := a.Settle(ctx, ledger.Settlement{Amount: 30, Reason: "finished"})
		var e *dialogue.Error
		if !errors.Is(err, state.ErrUnavailable) || !errors.As(err, &e) || e.Status != 503 {
			t.Fatalf("got %v, want a 503", err)
		}
		if got := balance(t, c, "7"); got.Spent != 0 || got.Held != 80 {
			t.Errorf("what is not written is not charged, and still held: %+v", got)
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_c", Amount: 1}); !errors.Is(err,
			state.ErrUnavailable) {
			t.Errorf("a hold while the journal fails: %v", err)
		}
		b.Release("refused", nil)
		kittest.Pass(10 * time.Second)
		store.Refuse(nil)
		kittest.Pass(2 * time.Second)
		if open := money.ListHolds(s.View(), ""); len(open) != 1 {
			t.Errorf("the release was not tried again: %+v", open)
		}
		if err := a.Settle(ctx, ledger.Settlement{Amount: 30, Reason: "finished"}); err != nil {
			t.Errorf("again: %v", err)
		}
		if got := money.FindAccount(s.View(), "7"); got.Spent != 30 || got.Held != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// A settlement that nothing waits for frees the rest of its hold at once, and is repeated until it is durable.
func TestASettlementWithoutAWaitIsRepeatedUntilItIsDurable(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		credit(t, c, "7", 100)
		first := hold(t, c, "7", "req_a", 90)
		first.SettleLater(ledger.Settlement{Amount: 30, Reason: "finished"})
		second := hold(t, c, "7", "req_b", 70) // which the rest of the first hold covers
		if got := balance(t, c, "7"); got.Available() != 0 || got.Spent != 0 {
			t.Errorf("got %+v, want nothing available and nothing written yet", got)
		}
		kittest.Pass(100 * time.Millisecond)
		if got := money.FindAccount(s.View(), "7"); got.Spent != 30 {
			t.Errorf("got %+v, want the settlement written", got)
		}
		store.Refuse(journal.ErrReadOnly)
		second.SettleLater(ledger.Settlement{Amount: 80, Reason: "finished"}) // more than its hold
		kittest.Pass(10 * time.Second)
		if got := balance(t, c, "7"); got.Spent != 30 || got.Available() != -10 {
			t.Errorf("got %+v while the disk is full, want the charge held", got)
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_c"}); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("a hold while a settlement cannot be written: %v", err)
		}
		if moving, err := c.Moving(ctx, "7", "req_b"); !moving || err != nil {
			t.Errorf("moving %v, %v: the receipt is not written yet", moving, err)
		}
		store.Refuse(nil)
		kittest.Pass(2 * time.Second)
		if got := money.FindAccount(s.View(), "7"); got.Spent != 110 || got.Held != 0 {
			t.Errorf("got %+v, want both charged", got)
		}
		second.SettleLater(ledger.Settlement{Amount: 80, Reason: "finished"})
		second.Release("end", nil)
		kittest.Pass(2 * time.Second)
		if got := money.FindAccount(s.View(), "7"); got.Spent != 110 || got.Held != 0 {
			t.Errorf("got %+v after a second end of the same hold", got)
		}
	})
}

func TestIdleAccountStopsAndComesBack(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := open(t, journal.NewMemory())
		defer s.Close()
		c := start(t, sys, s)
		running := func() int64 {
			for _, k := range sys.Stats().Kinds {
				if k.Kind == "account" {
					return k.Live()
				}
			}
			return 0
		}
		credit(t, c, "7", 100)
		h := hold(t, c, "7", "req_a", 10)
		kittest.Pass(time.Hour)
		if running() != 1 {
			t.Error("an account with an open hold stopped")
		}
		if err := h.Settle(ctx, ledger.Settlement{Amount: 1}); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(2 * time.Minute)
		if running() != 0 {
			t.Error("an idle account has an actor")
		}
		if got := balance(t, c, "7"); got != (ledger.Balance{Credits: 100, Spent: 1}) {
			t.Errorf("without an actor: %+v", got)
		}
		hold(t, c, "7", "req_b", 99).Release("end", nil)
		if running() != 1 {
			t.Error("it did not come back")
		}
	})
}

// A stopping ledger answers its waiters and journals the operations that have none.
func TestStopJournalsWhatIsDecided(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		s := open(t, journal.NewMemory())
		defer s.Close()
		c := start(t, sys, s)
		credit(t, c, "7", 1000)
		var holds []*ledger.Hold
		for i := range 10 {
			holds = append(holds, hold(t, c, "7", fmt.Sprint("req_", i), 10))
		}
		kittest.Pass(time.Second)
		for _, h := range holds[:8] {
			h.Release("end", nil)
		}
		holds[8].SettleLater(ledger.Settlement{Amount: 7})
		kittest.Quiesce()
		if err := sys.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		if open := money.ListHolds(s.View(), ""); len(open) != 1 || money.FindAccount(s.View(), "7").Spent != 7 {
			t.Errorf("left open: %+v, want the one that is; spent %d, want 7", open,
				money.FindAccount(s.View(), "7").Spent)
		}
		if err := holds[9].Settle(ctx, ledger.Settlement{Amount: 1}); !errors.Is(err, state.ErrUnavailable) &&
			err == nil {
			t.Error("settled although the ledger has stopped")
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "x", Amount: 1}); !errors.Is(err,
			state.ErrUnavailable) {
			t.Errorf("a hold after the end: %v", err)
		}
	})
}

// If the actor system has stopped when a commit ends, its waiters still get the outcome.
func TestAStoppedAccountAnswersTheWaitersOfItsBatch(t *testing.T) {
	for name, want := range map[string]error{"durable": nil, "refused": journal.ErrReadOnly} {
		t.Run(name, func(t *testing.T) {
			kittest.Run(t, func(t *testing.T, sys *kit.System) {
				store := statetest.NewFaulty()
				s := open(t, store)
				c := start(t, sys, s)
				credit(t, c, "a", 100)
				h := hold(t, c, "a", "r1", 10)
				landing := make(chan struct{})
				store.Before(func([]journal.Batch) error { <-landing; return want })
				settled, stopped := make(chan error, 1), make(chan error, 1)
				go func() { settled <- h.Settle(ctx, ledger.Settlement{Amount: 7, Reason: "done"}) }()
				synctest.Wait()
				go func() { stopped <- sys.Stop(ctx) }()
				synctest.Wait()
				close(landing)
				if err := <-settled; (err == nil) != (want == nil) {
					t.Errorf("got %v, want %v", err, want)
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
				s.Close()
			})
		})
	}
}

// A ledger that stops waits for the commit in flight, and repeats the charges of a commit that fails.
func TestAStoppingLedgerRepeatsTheChargesOfACommitThatFails(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := statetest.NewFaulty()
		s := open(t, store)
		defer s.Close()
		c := start(t, sys, s)
		credit(t, c, "a", 100)
		h := hold(t, c, "a", "r1", 10)
		landing := make(chan struct{})
		store.Before(func([]journal.Batch) error { <-landing; return journal.ErrReadOnly })
		h.SettleLater(ledger.Settlement{Amount: 7, Reason: "finished"})
		kittest.Pass(100 * time.Millisecond) // its commit has begun
		stopped := make(chan error, 1)
		go func() { stopped <- sys.Stop(ctx) }()
		synctest.Wait()
		close(landing)
		kittest.Pass(500 * time.Millisecond)
		store.Refuse(nil)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if got := money.FindAccount(s.View(), "a"); got.Spent != 7 || got.Held != 0 {
			t.Errorf("got %+v, want the charge of 7 written before the ledger has stopped", got)
		}
	})
}

// A charge that cannot be written before the process ends is in the log.
func TestAStoppingLedgerLogsTheChargesThatItCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		sys := kit.NewSystem(kit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxIdle: -1})
		store := statetest.NewFaulty()
		s := open(t, store)
		defer s.Close()
		c := start(t, sys, s)
		credit(t, c, "a", 100)
		h := hold(t, c, "a", "r1", 10)
		store.Refuse(journal.ErrReadOnly)
		h.SettleLater(ledger.Settlement{Amount: 7, Reason: "finished"})
		began := time.Now()
		if err := sys.Stop(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the stop took %s, want less than the 10 s that the process has", took)
		}
		time.Sleep(time.Second)
		if !strings.Contains(log.String(), `msg="request not charged" request_id=r1 amount=7`) {
			t.Errorf("the log does not name the request and its charge:\n%s", log.String())
		}
	})
}

// While a commit takes long, settlements gather in memory. So that they stay few, no hold is granted after a while.
func TestHoldsAreRefusedWhileACommitTakesTooLong(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		credit(t, c, "a", 1000)
		landing := make(chan struct{})
		store.Before(func([]journal.Batch) error { <-landing; return nil })
		granted := 0
		for range 60 {
			h, err := c.Hold(ctx, ledger.Ask{Account: "a", RequestID: "r", Amount: 10})
			switch {
			case err == nil:
				granted++
				h.SettleLater(ledger.Settlement{Amount: 1, Reason: "finished"})
			case !errors.Is(err, state.ErrUnavailable):
				t.Fatal(err)
			}
			kittest.Pass(time.Second)
		}
		if granted < 5 || granted > 15 {
			t.Errorf("%d holds were granted in the minute that a commit took, one a second, want those of about 10 s",
				granted)
		}
		store.Before(nil)
		close(landing)
		kittest.Pass(time.Second)
		if got := money.FindAccount(s.View(), "a"); got.Spent != int64(granted) || got.Held != 0 {
			t.Errorf("got %+v, want all %d settlements written", got, granted)
		}
		hold(t, c, "a", "r", 10).Release("end", nil)
	})
}

// A batch waits for a place in the writer's queue, and its account continues meanwhile.
func TestSettlesWhileTheJournalIsBusy(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *statetest.Faulty) {
		credit(t, c, "a", 100)
		h := hold(t, c, "a", "r1", 10)
		landing := make(chan struct{})
		store.Before(func([]journal.Batch) error { <-landing; return nil })
		post := func(tx *state.Tx) error {
			_, _, err := money.Post(tx, "b", []money.Posting{{Kind: money.Credit, Amount: 1}})
			return err
		}
		if err := state.Submit(s, post, func(error) {}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the writer hangs in its commit
		for !errors.Is(state.Submit(s, post, func(error) {}), state.ErrBusy) {
		}
		settled := make(chan error, 1)
		go func() { settled <- h.Settle(ctx, ledger.Settlement{Amount: 7, Reason: "done"}) }()
		synctest.Wait()
		if got, want := balance(t, c, "a"), (ledger.Balance{Credits: 100, Held: 10}); got != want {
			t.Errorf("meanwhile: %+v, want %+v", got, want)
		}
		close(landing)
		if err := <-settled; err != nil {
			t.Error(err)
		}
		if got, want := balance(t, c, "a"), (ledger.Balance{Credits: 100, Spent: 7}); got != want {
			t.Errorf("in the end: %+v, want %+v", got, want)
		}
	})
}
