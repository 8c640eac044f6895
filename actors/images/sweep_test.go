package images_test

import (
	"errors"
	"testing"
	"time"

	"stagedoor/actors/images"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
)

// Whatever a sweep does, the next one follows five minutes after its end, and never before.
func TestExpiredPicturesAreSweptAgainAndAgain(t *testing.T) {
	kittest.Run(t, func(t *testing.T, system *kit.System) {
		var began []time.Duration
		start := time.Now()
		err := images.StartSweeper(system, func() error {
			began = append(began, time.Since(start))
			switch len(began) {
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
		if len(began) != 3 || began[0] != 5*time.Minute || began[1] != 10*time.Minute || began[2] != 15*time.Minute {
			t.Errorf("swept after %v", began)
		}
		kittest.Pass(12 * time.Minute)
		if len(began) != 4 || began[3] != 80*time.Minute {
			t.Errorf("swept after %v, and the third sweep takes an hour", began)
		}
	})
}
