package state

import (
	"context"
	"testing"
	"time"

	"stagedoor/state/journal"
)

// A file of an older version has receipts and nothing else: what they add up to
// must be what would have been counted. Those that entries carry count, too.
func TestOldReceiptsAreCounted(t *testing.T) {
	t.Run("old", func(t *testing.T) { recounts(t, func(*Entry) bool { return true }) })
	t.Run("mixed", func(t *testing.T) { recounts(t, func(e *Entry) bool { return e.Sequence%2 == 0 }) })
}

func recounts(t *testing.T, old func(*Entry) bool) {
	ctx := context.Background()
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	store := journal.NewMemory()
	s := ledgerState(t, store, &now)
	mustPost(t, s, "anna", Posting{Kind: Credit, Amount: 1_000_000})
	for range 3 {
		mustPost(t, s, "anna", settle("r1", "key_a", "m1", 100), settle("r2", "key_b", "m\x00", 20), settle("r3", "", "m1", 3))
		now = now.Add(24 * time.Hour)
	}
	now = now.Add(-24 * time.Hour)
	from := now.AddDate(0, 0, -5)
	per := PerDay | PerAccount | PerKey | PerModel
	want, err := s.Usage(ctx, UsageQuery{From: from, To: now, Per: per})
	if err != nil {
		t.Fatal(err)
	}
	wantA, wantB := s.KeySpent("key_a"), s.KeySpent("key_b")
	s.Close()
	asBefore(t, store, old)

	var ops []journal.Op
	for _, table := range []journal.Table{journal.Usage, journal.Spend} {
		if err := store.Range(ctx, table, nil, nil, 0, func(rec journal.Record) error {
			ops = append(ops, journal.Op{Kind: journal.Delete, Table: table, Key: append([]byte(nil), rec.Key...)})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	commitAll(t, store, ops)
	for range 2 { // the second time there is nothing to count
		s = ledgerState(t, store, &now)
		got, err := s.Usage(ctx, UsageQuery{From: from, To: now, Per: per})
		if err != nil || len(got) != len(want) || len(got) != 9 {
			t.Fatalf("%d rows (%v), want %d", len(got), err, len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("got %+v, want %+v", got[i], want[i])
			}
		}
		if a, b := s.KeySpent("key_a"), s.KeySpent("key_b"); a != wantA || b != wantB {
			t.Errorf("got %+v and %+v, want %+v and %+v", a, b, wantA, wantB)
		}
		mustPost(t, s, "anna", settle("r9", "key_a", "m1", 0)) // it can be added to
		wantA = s.KeySpent("key_a")
		want, _ = s.Usage(ctx, UsageQuery{From: from, To: now, Per: per})
		s.Close()
	}
}
