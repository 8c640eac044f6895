package money

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// wantSound fails the test if Verify reports a problem.
func wantSound(t *testing.T, store journal.Store, when string) {
	t.Helper()
	if v, err := state.Verify(context.Background(), store, Module()); err != nil || !v.Sound() {
		t.Fatalf("%s: %q, %v", when, v.Problems, err)
	}
}

// Every reader finds the same entries in packs as in the pages before, also after a restart, in an
// export, and after folds.
func TestPackedLedgerReadsTheSame(t *testing.T) {
	for _, fill := range []int{1, 2, 5, 7, 18} {
		t.Run(fmt.Sprint(fill), func(t *testing.T) {
			ctx := context.Background()
			now := noon
			store, err := journal.OpenBolt(t.TempDir(), journal.Options{LowWater: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			s := ledgerState(t, store, &now)
			state.MemoryOf[*ledgerMemory](s).packEntries = fill
			trade(t, s)
			want := seen(t, s)
			for n := -1; n != 0; {
				if n, err = Pack(ctx, s, 3); err != nil {
					t.Fatal(err)
				}
				if got := seen(t, s); got != want {
					t.Fatalf("got\n%s, want\n%s", got, want)
				}
				wantSound(t, store, "packed")
			}
			s.Close()
			s = ledgerState(t, store, &now)
			defer s.Close()
			if got := seen(t, s); got != want {
				t.Errorf("after a restart: got\n%s, want\n%s", got, want)
			}
			var text bytes.Buffer
			if _, err := journal.Export(ctx, store, &text); err != nil {
				t.Fatal(err)
			}
			copied := journal.NewMemory()
			if _, err := journal.Fill(ctx, copied, &text); err != nil {
				t.Fatal(err)
			}
			wantSound(t, copied, "its copy")
			now = now.Add(time.Hour)
			for left := 18; left > 0; { // entries
				n, err := Fold(ctx, s, now, 3)
				if n < 1 || err != nil {
					t.Fatalf("%d left: folded %d, %v", left, n, err)
				}
				left -= n
				wantSound(t, store, fmt.Sprint(left, " left"))
			}
			if err := store.Range(ctx, journal.ByHash, nil, nil, 0,
				func(journal.Record) error { return errStop }); err != nil {
				t.Errorf("receipts are left (%v)", err)
			}
		})
	}
}

// Pages that do not fill a pack stay as they are, and packed pages are not packed again.
func TestPackWaitsForAWholePack(t *testing.T) {
	ctx := context.Background()
	store := journal.NewMemory()
	s := ledgerState(t, store, &noon)
	defer s.Close()
	trade(t, s) // pages that end with 1, 4, 7, 9, and as many of the other account
	pages := func() string {
		var b strings.Builder
		if err := store.Range(ctx, journal.Ledger, nil, nil, 0, func(rec journal.Record) error {
			fmt.Fprint(&b, state.SequenceOf(rec.Key), []string{"", "", "*"}[rec.Value[0]], " ")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	pack := func(fill, limit, want int, left string) {
		t.Helper()
		state.MemoryOf[*ledgerMemory](s).packEntries = fill
		if n, err := Pack(ctx, s, limit); n != want || err != nil || pages() != left {
			t.Errorf("packed %d, %v, so that there are %s, want %d and %s", n, err, pages(), want, left)
		}
	}
	pack(19, 0, 0, "1 4 7 9 10 13 16 18 ")
	pack(5, 1, 7, "7* 9 10 13 16 18 ")
	pack(7, 0, 9, "7* 16* 18 ")
	pack(3, 0, 0, "7* 16* 18 ")
	pack(1, 0, 2, "7* 16* 18* ")
	pack(1, 0, 0, "7* 16* 18* ")
}

// Lists are complete while their pages are packed.
func TestReadersDuringAPackSeeEveryEntry(t *testing.T) {
	ctx := context.Background()
	store := journal.NewMemory()
	s := ledgerState(t, store, &noon)
	defer s.Close()
	state.MemoryOf[*ledgerMemory](s).packEntries = 64
	mustPost(t, s, "anna", Posting{Kind: Credit, Amount: 1_000_000})
	const requests = 600
	for i := range requests {
		mustPost(t, s, "anna", settle(fmt.Sprint("r", i), "key_a", "m", 1))
	}
	done := make(chan error)
	go func() {
		var err error
		for n := -1; n != 0 && err == nil; {
			n, err = Pack(ctx, s, 64)
		}
		done <- err
	}()
	read := func() {
		for _, account := range []string{"", "anna"} {
			got, _, err := ListReceipts(ctx, s, ReceiptQuery{Account: account, Limit: requests + 1})
			if err != nil || len(got) != requests {
				t.Fatalf("%q: %d receipts, %v", account, len(got), err)
			}
		}
	}
	for {
		read()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			read()
			return
		default:
		}
	}
}
