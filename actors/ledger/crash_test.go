package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/ondisk"
)

const crashWriters = 8

func TestRecoverEndsTheHoldsOfThePreviousProcess(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store)
	about := func(r string) *money.Receipt { return &money.Receipt{Request: r, Model: "m", Key: "key_1"} }
	_, posted, err := money.CommitPostings(ctx, s,
		"7",
		[]money.Posting{
			{Kind: money.Credit, Amount: 100},
			{Kind: money.Begin, Amount: 10, Receipt: about("progressed")},
			{
				Kind:    money.Begin,
				Amount:  20,
				Receipt: about("silent"),
			},
			{Kind: money.Begin, Amount: 30, Receipt: about("video")},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := money.CommitPostings(ctx, s, "7",
		[]money.Posting{{Kind: money.Progress, Hold: posted[1].Sequence, Amount: 4}}); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = open(t, store)
	video := func(_ state.View, h *money.Hold) bool { return h.Receipt.Request == "video" }
	for range 2 { // a second crash does nothing twice
		if _, err := ledger.Recover(ctx, s, video); err != nil {
			t.Fatal(err)
		}
		if got := money.FindAccount(s.View(), "7"); got.Spent != 4 || got.Held != 30 {
			t.Errorf("got %+v, want the progress spent and the video held", got)
		}
	}
	for request, charged := range map[string]int64{"progressed": 4, "silent": 0} {
		r, err := money.Receipts(ctx, s, "7", request)
		if err != nil || len(r) != 1 || r[0].Charged != charged || r[0].Reason != ledger.ReasonCrash {
			t.Errorf("receipt of %s: %+v, %v", request, r, err)
		}
	}
	sys := kittest.Start(t)
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	if _, err := c.Resume(ctx, "7", "progressed"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("resumed what has ended: %v", err)
	}
	h, err := c.Resume(ctx, "7", "video")
	if err != nil || h.Amount() != 30 {
		t.Fatalf("resume: %v", err)
	}
	if err := h.Settle(ctx, ledger.Settlement{Amount: 25, Reason: "finished"}); err != nil {
		t.Fatal(err)
	}
	if totals, err := money.CheckLedger(ctx, s); err != nil || totals.Spent != 29 || totals.Held != 0 {
		t.Errorf("ledger: %+v, %v", totals, err)
	}
}

// moveMoney recovers the holds of the previous process, holds and settles until it is killed, and
// prints every acknowledged settlement.
func moveMoney(dir string, say statetest.PrintLine) error {
	s, _, err := ondisk.Open(dir)
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
	say("credit 1000000")
	failures := make(chan error, crashWriters)
	for w := range crashWriters {
		go func() { failures <- settleMoney(c, w, say) }()
	}
	return <-failures
}

// settleMoney is one writer.
func settleMoney(c *ledger.Client, w int, say statetest.PrintLine) error {
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(w)))
	for n := 0; ; n++ {
		id := fmt.Sprintf("req_%d-%d-%d", os.Getpid(), w, n)
		h, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: id, Amount: 100, Durable: n%2 == 0})
		if errors.Is(err, money.ErrInsufficient) {
			continue
		}
		if err != nil {
			return err
		}
		switch random.IntN(8) {
		case 0:
			h.Progress(random.Int64N(100)) // and leaves it for Recover
		case 1:
			h.Release("end", nil)
		default:
			amount := random.Int64N(150)
			if err := h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished"}); err != nil {
				return err
			}
			say("settle", id, amount)
		}
	}
}

func TestKilledLedgerBalances(t *testing.T) {
	dir, cycles := t.TempDir(), 6
	if testing.Short() {
		cycles = 2
	}
	settled := map[string]int64{}
	credits := int64(0)
	for range cycles {
		statetest.Kill(t, dir, func(line string) {
			if strings.HasPrefix(line, "credit") {
				credits += 1_000_000
				return
			}
			var id string
			var amount int64
			if _, err := fmt.Sscanf(line, "settle %s %d", &id, &amount); err != nil {
				t.Fatalf("child: %q", line)
			}
			settled[id] = amount
		})
		checkKilled(t, dir, settled, credits)
	}
	t.Logf("%d acknowledged settlements survived %d kills", len(settled), cycles)
}

func checkKilled(t *testing.T, dir string, settled map[string]int64, credits int64) {
	t.Helper()
	s, end, err := ondisk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := money.CheckLedger(ctx, s); err != nil {
		t.Errorf("as the kill left it: %v", err)
	}
	for range 2 {
		if _, err := ledger.Recover(ctx, s, nil); err != nil {
			t.Fatal(err)
		}
		totals, err := money.CheckLedger(ctx, s)
		if err != nil || totals.Open != 0 || totals.Held != 0 || totals.Credits != credits {
			t.Errorf("recovered: %+v, %v, want %d credited", totals, err, credits)
		}
	}
	for id, amount := range settled {
		r, err := money.Receipts(ctx, s, "7", id)
		if err != nil || len(r) != 1 || r[0].Charged != amount || r[0].Reason != "finished" {
			t.Fatalf("%s was settled at %d: got %+v, %v", id, amount, r, err)
		}
	}
}
