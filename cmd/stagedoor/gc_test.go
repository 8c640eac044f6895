package main

import "testing"

func TestSmallHeapsAreCollectedSeldom(t *testing.T) {
	for live, want := range map[uint64]int{
		0: mostGC, 1 << 20: mostGC, 4 << 20: 1600, 8 << 20: 800, 12 << 20: 533, 32 << 20: 200, 64 << 20: usualGC,
		1 << 30: usualGC,
	} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB live: GOGC %d, want %d", live>>20, got, want)
		}
	}
}

// TestMemoryIsReleasedWhenALoadHasEnded: once for each load, and never during one.
func TestMemoryIsReleasedWhenALoadHasEnded(t *testing.T) {
	var q idleDetector
	allocated, inFlight := uint64(0), 0
	looks := func(n int, each uint64) (released int) {
		for range n {
			if allocated += each; q.begins(allocated, inFlight) {
				released++
			}
		}
		return released
	}
	for i, c := range []struct {
		looks int
		each  uint64 // bytes allocated between two looks
		want  int
	}{
		{60, 100 << 20, 0},           // a load
		{quietLooks - 1, 1 << 10, 0}, // a pause
		{1, 100 << 20, 0},
		{quietLooks, 1 << 10, 1}, // its end
		{3600, 1 << 10, 0},       // nothing more to release
		{1, worthRelease, 0},     // one large request
		{quietLooks, 0, 1},
		{300, quietRate, 9}, // a trickle of requests: every half a minute
	} {
		if got := looks(c.looks, c.each); got != c.want {
			t.Fatalf("step %d: memory was released %d times, want %d", i, got, c.want)
		}
	}
	inFlight = quietFlight + 1
	if got := looks(1, worthRelease) + looks(3600, 1<<10); got != 0 {
		t.Errorf("memory was released %d times while streams were held", got)
	}
	inFlight = 1
	if got := looks(quietLooks, 1<<10); got != 1 {
		t.Errorf("memory was released %d times after the streams", got)
	}
}
