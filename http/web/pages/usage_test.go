package pages

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"stagedoor/state/money"
)

func TestPlotShowsTheMostUsedModelsAndTheRestTogether(t *testing.T) {
	to := time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)
	var rows []money.UsageRow
	for i := range 8 {
		rows = append(rows, money.UsageRow{Day: "2026-03-30", Model: fmt.Sprint("m", i), Requests: 1,
			Amount: int64(i+1) * 1_000_000})
	}
	u := NewUsage(rows, UsageOptions{From: to.AddDate(0, 0, -29), To: to, Today: to, Path: "/p", Ranges: []int{7, 30}})
	p := u.Plot
	if p.Width != 300 || len(p.Bars) != 7 || len(p.Models) != 7 || p.Models[0].Name != "m7" ||
		p.Models[0].Class != "m1" {
		t.Errorf("%d wide, bars %v, models %v", p.Width, p.Bars, p.Models)
	}
	if last := p.Models[6]; last.Name != otherModels || last.Class != "m0" || last.Total != "$3.00" {
		t.Errorf("the rest is %+v", last)
	}
	if u.Total.Amount != 36_000_000 || p.Ticks[0] != "$40.00" || p.Ticks[1] != "$20.00" || p.Ticks[2] != "$0.00" {
		t.Errorf("total %d, ticks %v", u.Total.Amount, p.Ticks)
	}
	sum := 0.0
	for _, b := range p.Bars {
		h, err := strconv.ParseFloat(b.Height, 64)
		if err != nil || b.X != "281.50" {
			t.Fatalf("%+v, %v", b, err)
		}
		sum += h
	}
	if math.Abs(sum-90) > 0.1 {
		t.Errorf("36 of 40 dollars are %f high", sum)
	}
	if got := u.Ranges[1]; got.Path != "/p?from=2026-03-02&show=cost&to=2026-03-31#usage" || !got.Current ||
		u.Ranges[0].Current {
		t.Errorf("ranges %+v", u.Ranges)
	}
}

func TestPlotOfNothingAndOfOneDay(t *testing.T) {
	day := time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
	for _, measure := range []string{"", "cost", "tokens", "requests", "none"} {
		u := NewUsage(nil, UsageOptions{From: day, To: day, Today: day, Measure: measure})
		if len(u.Plot.Bars) != 0 || len(u.Plot.Days) != 1 || u.Plot.Days[0] != "31 Mar" {
			t.Errorf("%q: %+v", measure, u.Plot)
		}
	}
}

func TestTicksReadWell(t *testing.T) {
	for n, want := range map[int64]int64{0: 2, 1: 2, 3: 4, 5: 10, 11: 20, 36_000_000: 40_000_000} {
		if got := round(n); got != want {
			t.Errorf("round(%d) = %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 2500: "2.5k", 1234: "1,234", 2_000_000: "2M",
		1_234_567: "1,234,567"} {
		if got := formatCompact(n); got != want {
			t.Errorf("formatCompact(%d) = %s, want %s", n, got, want)
		}
	}
}
