package main

import "testing"

func TestSmallHeapsAreCollectedSeldom(t *testing.T) {
	for live, want := range map[uint64]int{0: mostGC, 1 << 20: mostGC, 8 << 20: 1500, 16 << 20: 700, 32 << 20: 300, 64 << 20: usualGC, 1 << 30: usualGC} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB live: GOGC %d, want %d", live>>20, got, want)
		}
	}
}
