package pages

import "testing"

func TestRunwaySaysHowLongTheMoneyLasts(t *testing.T) {
	for _, c := range []struct {
		available, perDay int64
		want              string
	}{
		{18_420_000, 790_000, "about 23 days at your current rate of $0.79 a day"},
		{1_000_000, 1_000_000, "about 1 day at your current rate of $1.00 a day"},
		{500_000, 1_000_000, "less than a day at your current rate of $1.00 a day"},
		{5_000_000_000, 1_000_000, "more than 999 days at your current rate of $1.00 a day"},
		{1_000_000, 0, ""},
		{-1, 1_000_000, ""},
	} {
		if got := (&Account{Available: c.available, PerDay: c.perDay}).Runway(); got != c.want {
			t.Errorf("%d left at %d: %q, want %q", c.available, c.perDay, got, c.want)
		}
	}
}
