package work_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

func newVideo(n int, phase work.VideoPhase) work.Video {
	at := start.Add(time.Duration(n) * time.Second)
	id, _ := state.NewID("video_", at, seeded(uint64(n)))
	return work.Video{
		ID:        id,
		Owner:     me,
		Key:       "key_1",
		Operation: "create",
		Model:     "video-2",
		Prompt:    "a cat",
		Size:      "720x1280",
		Seconds:   4,
		Phase:     phase,
		Created:   at,
		Deadline:  at.Add(time.Hour),
	}
}

func putVideo(t *testing.T, s *state.State, v work.Video) work.Video {
	t.Helper()
	kept, err := tryVideo(s, v)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func tryVideo(s *state.State, v work.Video) (work.Video, error) {
	return state.Do(ctx, s, func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, v) })
}

func TestAJobIsChangedOnlyByTheProcessThatHasIt(t *testing.T) {
	cluster := statetest.NewCluster()
	node := func(name string) *state.State {
		s, err := schema.Open(cluster.Join(name), newClock().Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	a, b := node("a"), node("b")
	v := putVideo(t, a, newVideo(1, work.VideoAccepted))
	putVideo(t, b, newVideo(2, work.VideoAccepted)) // which b appends to a log that it has read to its end
	change := func(s *state.State, base work.Video) (work.Video, error) {
		next := base
		next.Phase, next.Attempts = work.VideoSubmitting, base.Attempts+1
		return state.Do(ctx, s, func(tx *state.Tx) (work.Video, error) { return work.ChangeVideo(tx, &base, next) })
	}
	taken, err := work.TakeOverVideos(ctx, b, func(n state.Node) bool { return n == v.Node })
	if err != nil || len(taken) != 1 || taken[0].Node != b.Node() || v.Node != a.Node() {
		t.Fatalf("taken %+v, %v", taken, err)
	}
	if _, err := change(a, v); !errors.Is(err, work.ErrVideoChanged) {
		t.Errorf("the process from which the job was taken changes it: %v", err)
	}
	if _, err := change(b, taken[0]); err != nil {
		t.Errorf("the process that has taken the job over: %v", err)
	}
	if _, err := change(b, taken[0]); !errors.Is(err, work.ErrVideoChanged) {
		t.Errorf("a second actor of the process submits the job again: %v", err)
	}
}

func TestAVideoIsFoundOnlyByItsOwner(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	v := putVideo(t, s, newVideo(1, work.VideoAccepted))
	s.Close()
	s = open(t, store, newClock().Now)
	if got, ok := work.FindVideo(s.View(), v.ID, me); !ok || got.Prompt != "a cat" || got.Revision != 1 ||
		got.Status() != "queued" {
		t.Fatalf("%+v, %v", got, ok)
	}
	if _, ok := work.FindVideo(s.View(), v.ID, other); ok {
		t.Error("others have it")
	}
	if _, _, ok := work.WatchVideo(s, v.ID, other); ok {
		t.Error("others may watch it")
	}
	if got := work.ListUnfinishedVideos(s.View()); len(got) != 1 || got[0].ID != v.ID {
		t.Errorf("unfinished: %v", got)
	}
}

// The visible state of a job only goes forward, and changes are counted.
func TestVideosGoForward(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	v := putVideo(t, s, newVideo(1, work.VideoAccepted))
	step := func(revision int64, change func(*work.Video)) {
		t.Helper()
		change(&v)
		if v = putVideo(t, s, v); v.Revision != revision {
			t.Errorf("revision %d, want %d", v.Revision, revision)
		}
	}
	step(1, func(v *work.Video) { v.Phase, v.Attempts = work.VideoSubmitting, 1 })
	step(1, func(v *work.Video) { v.Phase, v.UpstreamID = work.VideoQueued, "up_1" })
	step(2, func(v *work.Video) { v.Phase, v.Progress = work.VideoInProgress, 40 })
	for name, change := range map[string]func(*work.Video){
		"phase":       func(v *work.Video) { v.Phase = work.VideoQueued },
		"progress":    func(v *work.Video) { v.Progress = 39 },
		"upstream id": func(v *work.Video) { v.UpstreamID = "up_2" },
		"owner":       func(v *work.Video) { v.Owner = other },
		"phase word":  func(v *work.Video) { v.Phase = "paused" },
		"too much":    func(v *work.Video) { v.Progress = 101 },
	} {
		bad := v
		change(&bad)
		if _, err := tryVideo(s, bad); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	step(2, func(v *work.Video) { v.Phase, v.Completed = work.VideoFinalizing, start })
	step(3, func(v *work.Video) { v.Phase = work.VideoFailed })
	late := v
	late.Phase = work.VideoCompleted
	if _, err := tryVideo(s, late); !errors.Is(err, state.ErrFinished) {
		t.Errorf("a failed job completed: %v", err)
	}
	if got := work.ListUnfinishedVideos(s.View()); len(got) != 0 {
		t.Errorf("unfinished: %v", got)
	}
}

func TestVideosAreListedInPages(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	var ids []string
	for n := range 7 {
		v := newVideo(n, work.VideoCompleted)
		if n%2 == 1 {
			other := newVideo(n+100, work.VideoQueued)
			other.Owner = state.Owner(fmt.Sprintf("user:m%d", n)) // on both sides of mine
			putVideo(t, s, other)
		}
		ids = append(ids, putVideo(t, s, v).ID)
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	for _, c := range []struct {
		page work.VideoPage
		want []string
		more bool
	}{
		{work.VideoPage{Limit: 3}, newest[:3], true},
		{work.VideoPage{Limit: 7}, newest, false},
		{work.VideoPage{Limit: 3, After: newest[2]}, newest[3:6], true},
		{work.VideoPage{Limit: 3, After: newest[5]}, newest[6:], false},
		{work.VideoPage{Limit: 3, After: newest[6]}, nil, false},
		{work.VideoPage{Limit: 0}, nil, true},
		{work.VideoPage{Limit: 2, Ascending: true}, ids[:2], true},
		{work.VideoPage{Limit: 9, Ascending: true, After: ids[1]}, ids[2:], false},
	} {
		list, more := work.ListVideos(s.View(), me, c.page)
		var got []string
		for _, v := range list {
			got = append(got, v.ID)
		}
		if !slices.Equal(got, c.want) || more != c.more {
			t.Errorf("%+v: %v %v", c.page, got, more)
		}
	}
	gone, _ := work.FindVideo(s.View(), ids[3], me)
	gone.Deleted = start
	putVideo(t, s, gone)
	if list, _ := work.ListVideos(s.View(), me, work.VideoPage{Limit: 100}); len(list) != 6 {
		t.Errorf("%d after a deletion", len(list))
	}
	if list, _ := work.ListVideos(s.View(), me, work.VideoPage{Limit: 100, After: ids[3]}); len(list) != 3 {
		t.Errorf("%d behind what was deleted", len(list))
	}
	if _, ok := work.FindVideo(s.View(), ids[3], me); ok {
		t.Error("a deleted job is found")
	}
}

func TestWatchersSeeChangesOfTheirOwnVideos(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	mine, theirs := newVideo(1, work.VideoQueued), newVideo(2, work.VideoQueued)
	theirs.Owner = other
	mine, theirs = putVideo(t, s, mine), putVideo(t, s, theirs)
	closed := func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	_, one, ok := work.WatchVideo(s, mine.ID, me)
	_, all := work.WatchVideos(s, me)
	if !ok || closed(one) || closed(all) {
		t.Fatal("notified before anything happened")
	}
	theirs.Progress = 3
	putVideo(t, s, theirs)
	if closed(all) {
		t.Error("notified of another owner's")
	}
	mine.Progress = 5
	putVideo(t, s, mine)
	if !closed(one) || !closed(all) {
		t.Error("not notified")
	}
	_, all = work.WatchVideos(s, me)
	putVideo(t, s, newVideo(3, work.VideoAccepted))
	if !closed(all) {
		t.Error("not notified of a new one")
	}
}

func TestAClientsKeyFindsItsVideo(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	v := newVideo(1, work.VideoCompleted)
	v.Once, v.Asked = "again", hash(7)
	v = putVideo(t, s, v)
	if got, ok := work.FindVideoByOnce(s.View(), me, "again"); !ok || got.ID != v.ID || !got.Asked.Equal(v.Asked) {
		t.Errorf("%v %v", got, ok)
	}
	if _, ok := work.FindVideoByOnce(s.View(), other, "again"); ok {
		t.Error("another owner's key finds it")
	}
	v.Deleted = start
	putVideo(t, s, v)
	if _, ok := work.FindVideoByOnce(s.View(), me, "again"); ok {
		t.Error("a deleted job is found by its key")
	}
}

func TestVideosAreSweptAfterTheirTime(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	old, running := newVideo(1, work.VideoCompleted), newVideo(2, work.VideoQueued)
	old.Until = start.Add(time.Minute)
	old, running = putVideo(t, s, old), putVideo(t, s, running)
	clock.Add(2 * time.Minute)
	if n, err := s.Sweep(ctx, 0); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, ok := work.FindVideo(s.View(), old.ID, me); ok {
		t.Error("the old one is there")
	}
	if _, ok := work.FindVideo(s.View(), running.ID, me); !ok {
		t.Error("the unfinished job is gone")
	}
}

func TestVideosInProgressAreCountedByOwner(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	putVideo(t, s, newVideo(1, work.VideoAccepted))
	ended := putVideo(t, s, newVideo(2, work.VideoInProgress))
	if mine, others := work.CountVideosInProgress(s.View(), me), work.CountVideosInProgress(s.View(), other); mine != 2 ||
		others != 0 {
		t.Errorf("%d are mine, %d others", mine, others)
	}
	ended.Phase, ended.Completed = work.VideoFailed, ended.Created.Add(time.Minute)
	putVideo(t, s, ended)
	if n := work.CountVideosInProgress(s.View(), me); n != 1 {
		t.Errorf("%d are left after one has ended", n)
	}
}
