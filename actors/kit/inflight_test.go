package kit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit"
)

func TestDrainWaitsForWhatIsUnderWayThenCutsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := kit.NewInFlight()
		for range 2 {
			if !f.Enter() {
				t.Fatal("refused before the drain")
			}
		}
		time.AfterFunc(time.Second, f.Leave)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began, cuts := time.Now(), 0
		left := f.Drain(ctx, time.Minute, func() {
			cuts++
			if f.Enter() {
				t.Error("taken on during the cut")
			}
			f.Leave()
			time.AfterFunc(time.Second, f.Leave)
		})
		if took := time.Since(began); left != 1 || cuts != 1 || took != 3*time.Second || f.Count() != 0 {
			t.Errorf("left %d, cut %d times, took %s, %d under way", left, cuts, took, f.Count())
		}
	})
}

func TestDrainOfNothingCutsNothing(t *testing.T) {
	f := kit.NewInFlight()
	if left := f.Drain(t.Context(), time.Minute, func() { t.Error("cut") }); left != 0 || f.Enter() {
		t.Errorf("left %d, or taken on afterwards", left)
	}
}
