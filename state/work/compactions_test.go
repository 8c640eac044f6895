package work_test

import (
	"fmt"
	"testing"

	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// Only the maker of a compacted conversation can read it, so a restart must not forget the maker.
func TestMakersOfCompactionsSurviveARestart(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	if err := work.RememberCompaction(ctx, s, me, "opaque", "p/m"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, store, clock.Now)
	if got := work.CompactionMaker(s.View(), me, "opaque"); got != "p/m" {
		t.Errorf("after a restart: %q", got)
	}
	if got := work.CompactionMaker(s.View(), other, "opaque"); got != "" {
		t.Errorf("another owner finds it: %q", got)
	}
	clock.Add(work.CompactionFor)
	if got := work.CompactionMaker(s.View(), me, "opaque"); got != "" {
		t.Errorf("after its time: %q", got)
	}
	if n, err := s.Sweep(ctx, 0); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

func TestMakersOfCompactionsAreBoundedForEachOwner(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	if err := work.RememberCompaction(ctx, s, other, "theirs", "p/m"); err != nil {
		t.Fatal(err)
	}
	for n := range 1002 {
		clock.Add(1)
		if err := work.RememberCompaction(ctx, s, me, fmt.Sprint(n), "p/m"); err != nil {
			t.Fatal(err)
		}
	}
	for made, want := range map[string]string{"0": "", "1": "", "2": "p/m", "1001": "p/m"} {
		if got := work.CompactionMaker(s.View(), me, made); got != want {
			t.Errorf("%s: got %q, want %q", made, got, want)
		}
	}
	if got := work.CompactionMaker(s.View(), other, "theirs"); got != "p/m" {
		t.Errorf("another owner lost %q", got)
	}
	if left, err := work.EraseOwner(ctx, s, me); left != 0 || err != nil {
		t.Errorf("left %d, %v", left, err)
	}
	if got := work.CompactionMaker(s.View(), me, "1001"); got != "" {
		t.Errorf("after its owner was erased: %q", got)
	}
}
