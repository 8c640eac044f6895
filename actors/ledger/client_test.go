package ledger_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/journal"
)

func TestMain(m *testing.M) {
	if !child() {
		os.Exit(m.Run())
	}
}

var ctx = context.Background()

// faulty is a store that can be told to refuse writes.
type faulty struct {
	journal.Store
	full atomic.Bool
}

func (f *faulty) Commit(ctx context.Context, b []journal.Batch) (journal.LSN, error) {
	if f.full.Load() {
		return 0, journal.ErrReadOnly
	}
	return f.Store.Commit(ctx, b)
}

func open(tb testing.TB, store journal.Store) *state.State {
	tb.Helper()
	s, err := state.Open(store, time.Now)
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

// run runs body with a ledger in a bubble of fake time and checks the books.
func run(t *testing.T, body func(t *testing.T, c *ledger.Client, s *state.State, store *faulty)) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := &faulty{Store: journal.NewMemory()}
		s := open(t, store)
		c := start(t, sys, s)
		body(t, c, s, store)
		kittest.Pass(time.Second)
		if _, err := s.CheckBooks(ctx); err != nil {
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

func TestHoldSettleRelease(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *faulty) {
		_, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_0", Amount: 1})
		var e *dialogue.Error
		if !errors.Is(err, state.ErrInsufficient) || !errors.As(err, &e) || e.Status != 429 || e.Type != "insufficient_quota" || e.Code != "insufficient_quota" || !e.NoRetry {
			t.Fatalf("an empty account: got %v, want a 429 insufficient_quota", err)
		}
		credit(t, c, "7", 100)
		a, b := hold(t, c, "7", "req_a", 60), hold(t, c, "7", "req_b", 40)
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_c", Amount: 1}); !errors.Is(err, state.ErrInsufficient) {
			t.Fatalf("all is held: got %v", err)
		}
		if err := a.Extend(ctx, 1); !errors.Is(err, state.ErrInsufficient) || a.Amount() != 60 {
			t.Fatalf("extended what is not there: %v, %d", err, a.Amount())
		}
		b.Release("refused", nil)
		if err := a.Extend(ctx, 5); err != nil || a.Amount() != 65 {
			t.Fatalf("extend: %v, %d", err, a.Amount())
		}
		if err := a.Settle(ctx, ledger.Settlement{Amount: 33, Reason: "finished", Receipt: &state.Receipt{Provider: "p", Attempts: 2}}); err != nil {
			t.Fatal(err)
		}
		if got := s.Account("7"); got.Spent != 33 || got.Held != 0 {
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
		r, err := s.Receipts(ctx, "7", "req_a")
		if err != nil || len(r) != 1 || r[0].Charged != 33 || r[0].Held != 65 || r[0].Reason != "finished" || r[0].Key != "key_1" || r[0].Model != "m" || r[0].Provider != "p" || r[0].Attempts != 2 {
			t.Errorf("receipt of a: %+v, %v", r, err)
		}
		r, err = s.Receipts(ctx, "7", "req_b")
		if err != nil || len(r) != 1 || r[0].Charged != 0 || r[0].Held != 40 || r[0].Reason != "refused" {
			t.Errorf("receipt of b: %+v, %v", r, err)
		}
	})
}

func TestMoneyThatComesInIsThereAtOnce(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *faulty) {
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
		if _, err := c.Redeem(ctx, "8", codes[1]); !errors.Is(err, state.ErrRedeemed) {
			t.Errorf("a second time: %v", err)
		}
		if err := c.Adjust(ctx, "7", -8, "too much"); !errors.Is(err, state.ErrInsufficient) {
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
		for _, amount := range []int64{0, -1, state.MaxCredits} {
			if err := c.Credit(ctx, "7", amount, ""); !errors.Is(err, state.ErrInvalid) {
				t.Errorf("a credit of %d: %v", amount, err)
			}
		}
		if _, _, err := c.Mint(ctx, 0, 7, "", time.Time{}, rand.NewChaCha8([32]byte{})); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("no codes: %v", err)
		}
	})
}

// TestJournalOfAHold: a short hold is one entry, a long one is there to be found
// after a crash, a durable one at once.
func TestJournalOfAHold(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *faulty) {
		credit(t, c, "7", 100)
		short := hold(t, c, "7", "req_short", 10)
		kittest.Pass(10 * time.Millisecond)
		if err := short.Settle(ctx, ledger.Settlement{Amount: 4, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		entries, err := s.History(ctx, "7", 0, 10)
		if err != nil || len(entries) != 2 || entries[0].Kind != state.Settle || entries[0].Hold != entries[0].Sequence || entries[0].Held != 10 {
			t.Fatalf("short: got %+v, %v", entries, err)
		}
		long := hold(t, c, "7", "req_long", 10)
		if len(s.Holds("7")) != 0 {
			t.Error("a text hold is not waited for")
		}
		kittest.Pass(time.Second)
		if err := long.Extend(ctx, 5); err != nil {
			t.Fatal(err)
		}
		long.Progress(6)
		kittest.Pass(time.Second)
		if open := s.Holds("7"); len(open) != 1 || open[0].Amount != 15 || open[0].Progress != 6 || open[0].Receipt.Request != "req_long" {
			t.Errorf("long: got %+v", open)
		}
		durable, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_video", Amount: 20, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		if open := s.Holds("7"); len(open) != 2 || open[1].Amount != 20 {
			t.Errorf("durable: got %+v", open)
		}
		for _, h := range []*ledger.Hold{long, durable} {
			if err := h.Settle(ctx, ledger.Settlement{Amount: 7, Reason: "finished"}); err != nil {
				t.Fatal(err)
			}
		}
		if open := s.Holds(""); len(open) != 0 {
			t.Errorf("left: %+v", open)
		}
	})
}

func TestFullDiskChargesNobodyAndForgetsNothing(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, store *faulty) {
		credit(t, c, "7", 100)
		a, b := hold(t, c, "7", "req_a", 40), hold(t, c, "7", "req_b", 40)
		kittest.Pass(time.Second)
		store.full.Store(true)
		err := a.Settle(ctx, ledger.Settlement{Amount: 30, Reason: "finished"})
		var e *dialogue.Error
		if !errors.Is(err, state.ErrUnavailable) || !errors.As(err, &e) || e.Status != 503 {
			t.Fatalf("got %v, want a 503", err)
		}
		if got := balance(t, c, "7"); got.Spent != 0 || got.Held != 80 {
			t.Errorf("what is not written is not charged, and still held: %+v", got)
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "req_c", Amount: 1}); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("a hold while the journal fails: %v", err)
		}
		b.Release("refused", nil)
		kittest.Pass(10 * time.Second)
		store.full.Store(false)
		kittest.Pass(2 * time.Second)
		if open := s.Holds(""); len(open) != 1 {
			t.Errorf("the release was not tried again: %+v", open)
		}
		if err := a.Settle(ctx, ledger.Settlement{Amount: 30, Reason: "finished"}); err != nil {
			t.Errorf("again: %v", err)
		}
		if got := s.Account("7"); got.Spent != 30 || got.Held != 0 {
			t.Errorf("got %+v", got)
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

// TestStopJournalsWhatIsDecided: whoever waits is answered, and what nobody
// waits for is written.
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
		for _, h := range holds[:9] {
			h.Release("end", nil)
		}
		kittest.Quiesce()
		if err := sys.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		if open := s.Holds(""); len(open) != 1 {
			t.Errorf("left open: %+v, want the one that is", open)
		}
		if err := holds[9].Settle(ctx, ledger.Settlement{Amount: 1}); !errors.Is(err, state.ErrUnavailable) && err == nil {
			t.Error("settled by nobody")
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "x", Amount: 1}); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("a hold after the end: %v", err)
		}
	})
}

func TestRecoverEndsTheHoldsOfTheDead(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store)
	about := func(r string) *state.Receipt { return &state.Receipt{Request: r, Model: "m", Key: "key_1"} }
	_, posted, err := s.Post(ctx, "7", []state.Posting{{Kind: state.Credit, Amount: 100}, {Kind: state.Begin, Amount: 10, Receipt: about("told")},
		{Kind: state.Begin, Amount: 20, Receipt: about("silent")}, {Kind: state.Begin, Amount: 30, Receipt: about("video")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Post(ctx, "7", []state.Posting{{Kind: state.Progress, Hold: posted[1].Sequence, Amount: 4}}); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = open(t, store)
	video := func(h state.Hold) bool { return h.Receipt.Request == "video" }
	for range 2 { // a second crash does nothing twice
		if _, err := ledger.Recover(ctx, s, video); err != nil {
			t.Fatal(err)
		}
		if got := s.Account("7"); got.Spent != 4 || got.Held != 30 {
			t.Errorf("got %+v, want what was told spent and the video held", got)
		}
	}
	for request, charged := range map[string]int64{"told": 4, "silent": 0} {
		r, err := s.Receipts(ctx, "7", request)
		if err != nil || len(r) != 1 || r[0].Charged != charged || r[0].Reason != ledger.ReasonCrash {
			t.Errorf("receipt of %s: %+v, %v", request, r, err)
		}
	}
	sys := kittest.Start(t)
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	if _, err := c.Resume(ctx, "7", "told"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("resumed what has ended: %v", err)
	}
	h, err := c.Resume(ctx, "7", "video")
	if err != nil || h.Amount() != 30 {
		t.Fatalf("resume: %v", err)
	}
	if err := h.Settle(ctx, ledger.Settlement{Amount: 25, Reason: "finished"}); err != nil {
		t.Fatal(err)
	}
	if books, err := s.CheckBooks(ctx); err != nil || books.Spent != 29 || books.Held != 0 {
		t.Errorf("books: %+v, %v", books, err)
	}
}

// TestThousandsOfHoldsOnOneBalance: callers who hold, extend, settle, release
// and leave, some in the middle, on a few accounts; money comes in meanwhile.
// Nothing is overdrawn at any moment, nothing stays held, every sum is exact.
func TestThousandsOfHoldsOnOneBalance(t *testing.T) {
	const accounts, callers, each = 3, 64, 120
	sys := kittest.Start(t)
	s := open(t, journal.NewMemory())
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	var credited [accounts]int64
	for i := range accounts {
		credited[i] = 100_000
		credit(t, c, fmt.Sprint(i), credited[i])
	}
	var wg sync.WaitGroup
	var charged, refused, left [accounts]atomic.Int64
	watch, stop := context.WithCancel(ctx)
	for i := range accounts {
		wg.Go(func() {
			for watch.Err() == nil {
				if b := balance(t, c, fmt.Sprint(i)); b.Available() < 0 || b.Held < 0 {
					t.Errorf("account %d is overdrawn: %+v", i, b)
				}
				if a := s.Account(fmt.Sprint(i)); a.Available() < 0 || a.Held < 0 {
					t.Errorf("account %d is overdrawn on disk: %+v", i, a)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	var work sync.WaitGroup
	for n := range callers {
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for k := range each {
				i := random.IntN(accounts)
				ask := ledger.Ask{Account: fmt.Sprint(i), RequestID: fmt.Sprintf("req_%d-%d", n, k), Amount: random.Int64N(4000), Durable: random.IntN(4) == 0}
				patience, cancel := context.WithCancel(ctx)
				if random.IntN(10) == 0 {
					time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
				}
				h, err := c.Hold(patience, ask)
				cancel()
				switch {
				case errors.Is(err, state.ErrInsufficient):
					refused[i].Add(1)
					continue
				case errors.Is(err, context.Canceled):
					left[i].Add(1)
					continue
				case err != nil:
					t.Error(err)
					return
				}
				if random.IntN(8) == 0 {
					time.Sleep(60 * time.Millisecond) // lives long enough to be journaled
				}
				if random.IntN(3) == 0 {
					if err := h.Extend(ctx, random.Int64N(500)); err != nil && !errors.Is(err, state.ErrInsufficient) {
						t.Error(err)
					}
				}
				h.Progress(random.Int64N(h.Amount() + 1))
				if random.IntN(3) == 0 {
					h.Release("end", nil)
					continue
				}
				amount := random.Int64N(h.Amount() + 1)
				if err := h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished"}); err != nil {
					t.Error(err)
				}
				charged[i].Add(amount)
				if random.IntN(20) == 0 { // give some of it back, so that there is more to do
					credit(t, c, fmt.Sprint(i), amount+1)
					atomic.AddInt64(&credited[i], amount+1)
				}
			}
		})
	}
	work.Wait()
	stop()
	wg.Wait()
	for i := range accounts {
		settled(t, c, s, fmt.Sprint(i))
		want := ledger.Balance{Credits: credited[i], Spent: charged[i].Load()}
		if got := balance(t, c, fmt.Sprint(i)); got != want {
			t.Errorf("account %d: got %+v, want %+v", i, got, want)
		}
		t.Logf("account %d: %+v, %d refused, %d left while waiting", i, want, refused[i].Load(), left[i].Load())
	}
	if err := sys.Stop(ctx); err != nil { // releases are journaled late
		t.Error(err)
	}
	books, err := s.CheckBooks(ctx)
	if err != nil || books.Open != 0 || books.Held != 0 {
		t.Errorf("books: %+v, %v", books, err)
	}
	if s := s.Stats(); s.Groups >= s.Commands {
		t.Logf("%d commits for %d commands", s.Groups, s.Commands)
	}
}

// settled waits until what nobody waits for is journaled.
func settled(tb testing.TB, c *ledger.Client, s *state.State, account string) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if b := balance(tb, c, account); b.Held == 0 && len(s.Holds(account)) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("account %s: still held: %+v, %+v", account, balance(tb, c, account), s.Holds(account))
		}
		time.Sleep(time.Millisecond)
	}
}

// TestParallelCallsCannotOverdraw: a thousand calls at once with balance for ten
// (faults.md S16).
func TestParallelCallsCannotOverdraw(t *testing.T) {
	sys := kittest.Start(t)
	s := open(t, journal.NewMemory())
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	credit(t, c, "7", 1000)
	var granted atomic.Int32
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: fmt.Sprint("req_", i), Amount: 100, Durable: i%2 == 0}); err == nil {
				granted.Add(1)
			} else if !errors.Is(err, state.ErrInsufficient) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if granted.Load() != 10 {
		t.Errorf("got %d calls admitted, want 10", granted.Load())
	}
}

// crashDir tells a test binary that it is the process that is killed.
const crashDir = "STAGEDOOR_TEST_LEDGER_CRASH_DIR"

// child recovers what the one before it left, holds and settles until it is
// killed, and prints every acknowledged settlement.
func child() bool {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return false
	}
	if err := moveMoney(dir); err != nil {
		fmt.Println("error", err)
	}
	return true
}

func moveMoney(dir string) error {
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		return err
	}
	s, err := state.Open(store, time.Now)
	if err != nil {
		return err
	}
	if _, err := ledger.Recover(ctx, s, nil); err != nil {
		return err
	}
	sys := kit.NewSystem(kit.Options{Logger: quiet})
	c, err := ledger.New(sys, s)
	if err != nil {
		return err
	}
	if err := c.Credit(ctx, "7", 1_000_000, "cycle"); err != nil {
		return err
	}
	var out sync.Mutex // one line is one write
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	say("credit 1000000")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(w)))
			for n := 0; ; n++ {
				id := fmt.Sprintf("req_%d-%d-%d", os.Getpid(), w, n)
				h, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: id, Amount: 100, Durable: n%2 == 0})
				if errors.Is(err, state.ErrInsufficient) {
					continue
				}
				if err != nil {
					say("error %v", err)
					return
				}
				switch random.IntN(8) {
				case 0:
					h.Progress(random.Int64N(100)) // and leaves it for Recover
				case 1:
					h.Release("end", nil)
				default:
					amount := random.Int64N(150)
					if err := h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished"}); err != nil {
						say("error %v", err)
						return
					}
					say("settle %s %d", id, amount)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

func TestKilledLedgerBalances(t *testing.T) {
	dir, cycles := t.TempDir(), 6
	if testing.Short() {
		cycles = 2
	}
	settled := map[string]int64{}
	credits := int64(0)
	for range cycles {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		for n := 0; lines.Scan(); n++ {
			var id string
			var amount int64
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "error"):
				t.Error("child:", line)
			case strings.HasPrefix(line, "credit"):
				credits += 1_000_000
			default:
				if _, err := fmt.Sscanf(line, "settle %s %d", &id, &amount); err != nil {
					t.Fatalf("child: %q", line)
				}
				settled[id] = amount
			}
			if n == 300 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child ended by itself")
		}
		checkKilled(t, dir, settled, credits)
	}
	t.Logf("%d acknowledged settlements survived %d kills", len(settled), cycles)
}

func checkKilled(t *testing.T, dir string, settled map[string]int64, credits int64) {
	t.Helper()
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := open(t, store)
	defer s.Close()
	if _, err := s.CheckBooks(ctx); err != nil {
		t.Errorf("as the kill left it: %v", err)
	}
	for range 2 {
		if _, err := ledger.Recover(ctx, s, nil); err != nil {
			t.Fatal(err)
		}
		books, err := s.CheckBooks(ctx)
		if err != nil || books.Open != 0 || books.Held != 0 || books.Credits != credits {
			t.Errorf("recovered: %+v, %v, want %d credited", books, err, credits)
		}
	}
	for id, amount := range settled {
		r, err := s.Receipts(ctx, "7", id)
		if err != nil || len(r) != 1 || r[0].Charged != amount || r[0].Reason != "finished" {
			t.Fatalf("%s was settled at %d: got %+v, %v", id, amount, r, err)
		}
	}
}
