package work_test

import (
	"slices"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

func changed(v state.View, after int64) (ids []string, last int64) {
	work.VideosChanged(v, me, after, func(r *work.Video) bool {
		ids, last = append(ids, r.ID), r.Changed
		return true
	})
	return ids, last
}

// A client that knows the number of the last change gets all later changes: each job once, deleted
// ones included, and none of other owners.
func TestChangesOfVideosAreFoundByNumber(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	var all []work.Video
	for i := range 5 {
		all = append(all, putVideo(t, s, newVideo(i, work.VideoQueued)))
	}
	foreign := newVideo(9, work.VideoQueued)
	foreign.Owner = other
	putVideo(t, s, foreign)

	ids, seen := changed(s.View(), 0)
	if len(ids) != 5 || seen != work.LastVideoChange(s.View(), me) {
		t.Fatalf("%d changes up to %d, want 5 up to %d", len(ids), seen, work.LastVideoChange(s.View(), me))
	}
	for _, progress := range []int{10, 20, 30} {
		all[1].Phase, all[1].Progress = work.VideoInProgress, progress
		all[1] = putVideo(t, s, all[1])
	}
	all[3].Phase = work.VideoFailed
	all[3] = putVideo(t, s, all[3])
	all[3].Deleted = start.Add(time.Hour)
	all[3] = putVideo(t, s, all[3])
	if ids, _ := changed(s.View(), seen); !slices.Equal(ids, []string{all[1].ID, all[3].ID}) {
		t.Errorf("after %d: %v", seen, ids)
	}
	if all[1].Moved <= seen || all[1].Moved >= all[1].Changed {
		t.Errorf("status changed with %d, the last change is %d", all[1].Moved, all[1].Changed)
	}
	all[0].Attempts++ // nothing that a client sees
	if v := putVideo(t, s, all[0]); v.Changed != all[0].Changed {
		t.Errorf("an invisible change was numbered %d", v.Changed)
	}
	// The last two that are there: 1, changed last, and 4.
	after := work.VideoChangesOf(s.View(), me, 2)
	if ids, _ := changed(s.View(), after); !slices.Equal(ids, []string{all[4].ID, all[1].ID, all[3].ID}) {
		t.Errorf("the changes of two jobs are %v", ids)
	}
	if after := work.VideoChangesOf(s.View(), me, 100); after != 0 {
		t.Errorf("all changes begin after %d", after)
	}
}

func TestNumbersOfChangesRiseAcrossRestarts(t *testing.T) {
	store, clock := journal.NewMemory(), newClock()
	s := open(t, store, clock.Now)
	before := putVideo(t, s, newVideo(1, work.VideoQueued))
	s.Close()
	s = open(t, store, newClock().Now) // the same time again
	if v := putVideo(t, s, newVideo(2, work.VideoQueued)); v.Changed <= before.Changed {
		t.Errorf("%d after %d", v.Changed, before.Changed)
	}
}
