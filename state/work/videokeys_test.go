package work_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// The key of a video job stays known when a clock leaps forward, its record is swept, and the clock
// returns, also in the next process. Each owner keeps its latest keys.
func TestVideoKeyOutlivesAClockThatLeapsAndReturns(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	put := func(owner state.Owner, n int, deleted bool) work.Video {
		v := newVideo(n, work.VideoFailed)
		v.ID = fmt.Sprintf("video_%s%06d", strings.TrimPrefix(string(owner), "user:"), n)
		v.Owner, v.Once, v.Asked = owner, fmt.Sprint("once-", n), state.HashSecret("body")
		v.Created, v.Completed, v.Until = clock.Now(), clock.Now(), clock.Now().Add(30*24*time.Hour)
		if deleted {
			v.Deleted = clock.Now()
		}
		must(t, s, func(tx *state.Tx) error { _, err := work.PutVideo(tx, v); return err })
		return v
	}
	sweep := func() {
		clock.Add(40 * 24 * time.Hour)
		for n := 1; n > 0; {
			var err error
			if n, err = s.Sweep(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		clock.Add(-40 * 24 * time.Hour)
	}
	mine := put(me, 1, false)
	gone := put(me, 2, true)
	sweep()
	if _, ok := work.FindAnyVideo(s.View(), mine.ID); ok {
		t.Fatal("the record was not swept")
	}
	s.Close()
	s = open(t, store, clock.Now)
	if k, ok := work.FindVideoKey(s.View(), me, mine.Once); !ok || k.Video != mine.ID || k.Asked != mine.Asked {
		t.Errorf("the key is known as %+v, %v", k, ok)
	}
	if k, ok := work.FindVideoKey(s.View(), me, gone.Once); ok {
		t.Errorf("the key of a video that its client deleted is known as %+v", k)
	}
	for n := range 1001 {
		put(other, n, false)
	}
	sweep()
	for _, c := range []struct {
		owner state.Owner
		once  string
		want  bool
	}{{me, mine.Once, true}, {other, "once-0", false}, {other, "once-1", true}, {other, "once-1000", true}} {
		if _, ok := work.FindVideoKey(s.View(), c.owner, c.once); ok != c.want {
			t.Errorf("%s of %s is known: %v", c.once, c.owner, ok)
		}
	}
}
