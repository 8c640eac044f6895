package images_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/images"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
)

// TestExpiredPicturesAreSweptAgainAndAgain lets sweeps fail, panic and last for an hour. The next one follows five
// minutes after the end of each.
func TestExpiredPicturesAreSweptAgainAndAgain(t *testing.T) {
	kittest.Run(t, func(t *testing.T, system *kit.System) {
		var mu sync.Mutex
		var began []time.Duration
		sweeps := func() []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(began)
		}
		start := time.Now()
		err := images.StartSweeper(system, func() error {
			mu.Lock()
			began = append(began, time.Since(start))
			n := len(began)
			mu.Unlock()
			switch n {
			case 1:
				return errors.New("disk full")
			case 2:
				panic("disk gone")
			case 3:
				time.Sleep(time.Hour)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		kittest.Pass(70 * time.Minute)
		if began := sweeps(); len(began) != 3 || began[0] != 5*time.Minute || began[1] != 10*time.Minute ||
			began[2] != 15*time.Minute {
			t.Errorf("swept after %v", began)
		}
		kittest.Pass(12 * time.Minute)
		if began := sweeps(); len(began) != 4 || began[3] != 80*time.Minute {
			t.Errorf("swept after %v, and the third sweep takes an hour", began)
		}
	})
}
