package ledger

import (
	"testing"
	"time"

	"stagedoor/state"
)

// TestBatchDeparts pins when a batch leaves: at once where nobody else could come,
// after a wait that is bounded else.
func TestBatchDeparts(t *testing.T) {
	asked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name          string
		open, waiting int           // requests, and those of them that wait
		landed, took  time.Duration // the batch before: since when, and how long
		want          time.Duration // after the first of them asked
	}{
		{"all wait", 3, 3, 0, 5 * time.Millisecond, 0},
		{"one of two that just began", 2, 1, time.Second, time.Millisecond, -time.Second + time.Millisecond},
		{"half of them, the journal has rested", 10, 5, time.Second, 4 * time.Millisecond, -time.Second + 4*time.Millisecond},
		{"half of them, the journal was busy until now", 10, 5, 0, 4 * time.Millisecond, 4 * time.Millisecond},
		{"half of them, and the journal was very slow", 100, 50, 0, time.Minute, crowd * gatherEach},
		{"one of many", 100, 1, time.Second, time.Millisecond, gatherEach},
		{"a few of many", 100, 3, time.Second, time.Millisecond, 3 * gatherEach},
		{"a crowd of many", 1000, 100, time.Second, time.Millisecond, crowd * gatherEach},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCore(state.Account{}, nil, noBooks{})
			for i := range tt.open {
				h := &hold{}
				c.open[h] = struct{}{}
				if i < tt.waiting {
					h.phase = ending
					c.ending++
					c.waiting++
				}
			}
			a := account{core: c, asked: asked, landed: asked.Add(-tt.landed)}
			a.left = a.landed.Add(-tt.took)
			if got := a.departs().Sub(asked); got != tt.want {
				t.Errorf("departs %v after it was asked for, want %v", got, tt.want)
			}
		})
	}
}
