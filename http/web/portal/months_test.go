package portal

import (
	"testing"

	"stagedoor/http/web/pages"
)

// February has fewer days than January, and its line shows those only.
func TestAWholeMonthIsComparedWithAllOfALongerOneBefore(t *testing.T) {
	for elapsed, want := range map[int]int64{28: 31, 10: 10} {
		s := newSpending(&spendScope{}, pages.ByModel, 28, elapsed, nil)
		for step := range 31 {
			s.add(origin{model: "m"}, step, true, pages.Use{Amount: 1})
		}
		if got := s.rows["m"].Before.Amount; got != want || len(s.before) != 28 || s.grown[[2]string{"m"}] != -want {
			t.Errorf("after %d days the time before has %d, want %d", elapsed, got, want)
		}
	}
}
