package ledger

import (
	"testing"
	"time"

	"stagedoor/state/money"
)

// A batch is committed at once if no other operation can arrive, and otherwise after a
// bounded wait.
func TestABatchIsCommittedAtOnceOrAfterABoundedWait(t *testing.T) {
	asked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name          string
		open, waiting int           // requests, and those of them that wait
		want          time.Duration // after the first of them asked
	}{
		{"all wait", 3, 3, 0},
		{"one of two", 2, 1, gatherEach},
		{"one of many", 100, 1, gatherEach},
		{"a few of many", 100, 3, 3 * gatherEach},
		{"a gatherMost of many", 1000, 100, gatherMost * gatherEach},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCore(money.Account{}, nil, noBudgets{}, new(shared))
			for i := range tt.open {
				h := &hold{}
				c.open[h] = struct{}{}
				if i < tt.waiting {
					h.phase = ending
					c.waiting++
				}
			}
			a := account{core: c, asked: asked}
			if got := a.commitTime().Sub(asked); got != tt.want {
				t.Errorf("departs %v after it was asked for, want %v", got, tt.want)
			}
		})
	}
}
