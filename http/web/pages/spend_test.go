package pages

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"stagedoor/state/budget"
)

// monthReport is a report of November 2026, of which three days have begun, by users of whom each used a dollar more
// than the one before on the second day.
func monthReport(users int) *Report {
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := &Report{By: ByUser, From: from, To: from.AddDate(0, 1, 0), Step: 24 * time.Hour, Elapsed: 3, Path: "/p",
		Linked: true, Keep: url.Values{"group": {"7"}}, Scope: Condition("group", `a"b`), Compared: "1–3 October",
		Before: make([]Use, 30)}
	for i := range users {
		name := fmt.Sprint("u", i)
		s := &Spender{ID: name, Name: name, Term: Condition("user", name), Uses: make([]Use, 30)}
		s.Uses[1] = Use{Requests: 1, Amount: int64(i+1) * 1_000_000}
		s.Total, s.Before = s.Uses[1], Use{Amount: 1_000_000}
		r.Rows, r.Before[1].Amount = append(r.Rows, s), r.Before[1].Amount+1_000_000
	}
	r.Finish()
	r.Link()
	return r
}

func TestAChartShowsTheNamesWithMostAndTheRestTogether(t *testing.T) {
	r := monthReport(8)
	c := r.Chart
	if c.Width != 300 || len(c.Bars) != 1 || len(c.Bars[0].Parts) != 7 || len(c.Names) != 7 ||
		c.Names[0] != (ChartName{"u7", "m1", "$8.00"}) || c.Names[6] != (ChartName{otherNames, "m0", "$3.00"}) {
		t.Errorf("%+v", c)
	}
	if r.Total.Amount != 36_000_000 || c.Ticks[0] != "$40.00" || c.Ticks[1] != "$20.00" || c.Ticks[2] != "$0.00" {
		t.Errorf("total %d, ticks %v", r.Total.Amount, c.Ticks)
	}
	if line := r.Spark(r.Rows[0]); line != "M0 98L1 2L2 98" || r.Width() != 2 || r.Steps() != "Daily" {
		t.Errorf("%s line %q, %d wide", r.Steps(), line, r.Width())
	}
	sum := 0.0
	for _, p := range c.Bars[0].Parts {
		h, err := strconv.ParseFloat(p.Height, 64)
		if err != nil || p.X != "11.5" {
			t.Fatalf("%+v, %v", p, err)
		}
		sum += h
	}
	if math.Abs(sum-90) > 0.1 {
		t.Errorf("36 of 40 dollars are %f high", sum)
	}
	if !strings.HasPrefix(c.Before, "M5 100L15 80L25 100") || len(c.Times) != 5 || c.Times[4] != "30 Nov" {
		t.Errorf("before %q, times %v", c.Before, c.Times)
	}
	if r.Increase.Name != "u7" || r.ChangeOf(r.Increase) != "+700 %" || r.ChangeOfAll() != "+350 %" {
		t.Errorf("%+v grew most, all %s", r.Increase, r.ChangeOfAll())
	}
}

// A bar leads to the requests of its day, and a name to its requests of the whole time.
func TestEveryFigureLeadsToItsRequests(t *testing.T) {
	r := monthReport(2)
	for path, want := range map[string]url.Values{
		r.Chart.Bars[0].Path: {"q": {`group:"ab"`}, "from": {"1793577600"}, "to": {"1793664000"}},
		r.Rows[0].Requests: {"q": {`group:"ab" user:"u1"`}, "from": {"1793491200"},
			"to": {"1796083200"}},
	} {
		u, err := url.Parse(path)
		if err != nil || u.Path != "/requests" || u.Query().Encode() != want.Encode() {
			t.Errorf("%s, want %v", path, want)
		}
	}
	if want := "/p.csv?by=user&from=2026-11-01&group=7&show=cost&to=2026-11-30"; r.File() != want {
		t.Errorf("the file is at %s", r.File())
	}
}

func TestAReportOfNothingAndOfOneDay(t *testing.T) {
	day := time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
	for _, measure := range []string{"", "cost", "tokens", "requests", "none"} {
		r := &Report{By: ByModel, Measure: measure, From: day, To: day.AddDate(0, 0, 1), Step: time.Hour}
		r.Finish()
		r.Link()
		if len(r.Chart.Bars) != 0 || r.Chart.Before != "" || len(r.Chart.Times) != 5 || r.Chart.Times[0] != "00:00" ||
			r.Title() != "31 March 2026" || r.ChangeOfAll() != "" {
			t.Errorf("%q: %+v", measure, r.Chart)
		}
	}
}

func TestABudgetSaysWhenItWillRunOut(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		window        budget.Window
		spent, perDay int64
		want          string
	}{
		{budget.WindowTotal, 100, 5, "used up"}, {budget.WindowTotal, 120, 0, "used up"},
		{budget.WindowTotal, 50, 0, ""}, {budget.WindowTotal, 98, 10, "will run out today"},
		{budget.WindowMonth, 90, 10, "will run out tomorrow"}, {budget.WindowMonth, 70, 10, "will run out in 3 days"},
		{budget.WindowMonth, 10, 10, ""}, {budget.WindowTotal, 10, 10, "will run out in 9 days"},
		{budget.WindowDay, 90, 10, ""}, {budget.WindowDay, 90, 100, "will run out today"},
		{budget.WindowTotal, 10, 1, ""},
	} {
		if got := RunsOut(budget.Budget{Amount: 100, Window: c.window}, c.spent, c.perDay, now); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if RunsOut(budget.Budget{}, 5, 5, now) != "" {
		t.Error("no budget runs out")
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
