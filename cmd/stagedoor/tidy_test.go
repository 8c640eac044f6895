package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTidyingTakesBatchesUntilOneIsNotFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, began := 3*tidyBatch+7, time.Now()
		err := tidy(t.Context(), func() bool { return false }, func() (int, error) {
			time.Sleep(10 * time.Millisecond)
			n := min(left, tidyBatch)
			left -= n
			return n, nil
		})
		if took := time.Since(began); err != nil || left != 0 || took != 70*time.Millisecond {
			t.Errorf("%d left after %v, %v; want 4 batches and 3 rests of 10ms", left, took, err)
		}
	})
}

func TestTidyingStepsAsideForWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(time.Second)
		batches := 0
		err := tidy(t.Context(), func() bool { return time.Now().Before(until) }, func() (int, error) {
			if batches++; batches == 2 && time.Now().Before(until) {
				t.Error("a batch while writers waited")
			}
			return []int{tidyBatch, 0}[batches-1], nil
		})
		if err != nil || batches != 2 {
			t.Errorf("%d batches, %v", batches, err)
		}
	})
}

func TestTidyingEnds(t *testing.T) {
	full := errors.New("full")
	if err := tidy(t.Context(), nil, func() (int, error) { return 0, full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tidy(ctx, func() bool { return true }, func() (int, error) { return tidyBatch, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
