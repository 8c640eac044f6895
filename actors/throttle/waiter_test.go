package throttle

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What operators see of the queue is what would happen.
func TestWaitersAreListedInTheOrderTheyAreServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		now := time.Now()
		push := func(n int) {
			for i := range n {
				tk := &ticket{
					id:    fmt.Sprint(q.total, "-", i),
					owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
					class: rapid.IntRange(Interactive, Background).
						Draw(t, "class"),
					cost:  rapid.IntRange(1, maxCost).Draw(t, "cost"),
					asked: now,
					index: -1,
				}
				tk.rank = rankOf(tk.class)
				q.push(tk)
			}
		}
		push(rapid.IntRange(0, 30).Draw(t, "first"))
		for range rapid.IntRange(0, 10).Draw(t, "served") {
			if tk := q.peek(nil); tk != nil {
				q.serve(tk)
			}
		}
		push(rapid.IntRange(0, 5).Draw(t, "later"))
		listed := q.waiters(now)
		for i, w := range listed {
			tk := q.peek(nil)
			if tk == nil || tk.id != w.ID || w.Position != i+1 {
				t.Fatalf("position %d is listed as %s, was %+v", i+1, w.ID, tk)
			}
			q.serve(tk)
		}
		if q.total != 0 {
			t.Fatalf("%d were not listed", q.total)
		}
	})
}
