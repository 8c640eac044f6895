package main

import "testing"

func TestSmallHeapsAreCollectedSeldom(t *testing.T) {
	for live, want := range map[uint64]int{0: mostGC, 1 << 20: mostGC, 8 << 20: 1600, 16 << 20: 800, 24 << 20: 533, 64 << 20: 200, 128 << 20: usualGC, 1 << 30: usualGC} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB live: GOGC %d, want %d", live>>20, got, want)
		}
	}
}
