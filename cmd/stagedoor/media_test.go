package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"stagedoor/state/blobs"
)

func TestContentIsBoundedBySettings(t *testing.T) {
	for mebibytes, want := range map[int]int64{0: math.MaxInt64, 1: 1 << 20, 4096: 4 << 30, math.MaxInt: math.MaxInt64} {
		if got := maxContent(mebibytes); got != want {
			t.Errorf("content_mib %d is %d bytes, want %d", mebibytes, got, want)
		}
	}
	s, err := openStorage(t.TempDir(), maxContent(1))
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20+1)
	if _, err := s.content.Put("a", strings.NewReader(large), "image/png", 1<<30, time.Now().Add(time.Hour)); !errors.Is(err, blobs.ErrFull) {
		t.Errorf("more than there may be: %v", err)
	}
}
