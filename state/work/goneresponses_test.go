package work_test

import (
	"testing"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// Ids of removed responses are known in the next process. Each owner has as many as it may keep
// responses, and the sweep removes their records.
func TestIdsOfRemovedResponsesAreBoundedForEachOwner(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	work.SetResponseQuota(s, work.Quota{Responses: 5})
	remove := func(owner state.Owner, from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			r := newResponse(n, "completed")
			r.Owner = owner
			put(t, s, r)
			if err := work.DeleteResponse(ctx, s, r.ID, owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	known := func(first, last int) {
		t.Helper()
		for n := range 30 {
			want := n == 0 || first <= n && n <= last
			if got := work.KnowsResponse(s.View(), newResponse(n, "").ID); got != want {
				t.Errorf("response %d is known: %v, want %v", n, got, want)
			}
		}
	}
	remove(other, 0, 1)
	remove(me, 1, 13)
	known(8, 12)
	s.Close()
	s = open(t, store, clock.Now)
	known(8, 12)
	work.SetResponseQuota(s, work.Quota{Responses: 2}) // is reached by and by
	remove(me, 13, 14)
	known(10, 13)
	remove(me, 14, 17)
	known(15, 16)
	if n, err := s.Sweep(ctx, 0); n != 0 || err != nil {
		t.Errorf("early: swept %d, %v", n, err)
	}
	clock.Add(work.GoneResponseFor)
	if work.KnowsResponse(s.View(), newResponse(16, "").ID) {
		t.Error("an id is known after its time")
	}
	if n, err := s.Sweep(ctx, 0); n != 3 || err != nil {
		t.Errorf("in time: swept %d, %v", n, err)
	}
	_, err := store.Load(ctx, []journal.Table{journal.Gone}, func(_ journal.Table, r journal.Record) error {
		t.Errorf("left behind: %s", r.Key)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
