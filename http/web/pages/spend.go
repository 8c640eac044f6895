package pages

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// Use counts the use of models in some time. Amount is in micro-dollars.
type Use struct{ Requests, Input, Output, Amount int64 }

// Add adds the numbers of another use.
func (u *Use) Add(o Use) {
	u.Requests, u.Input = u.Requests+o.Requests, u.Input+o.Input
	u.Output, u.Amount = u.Output+o.Output, u.Amount+o.Amount
}

// Tokens returns the tokens in and out.
func (u *Use) Tokens() int64 { return u.Input + u.Output }

// measures lists the quantities that a report can show. The first one is the default.
var measures = []struct {
	name, label string
	of          func(*Use) int64
	text        func(int64) string
}{
	{"cost", "Cost", func(u *Use) int64 { return u.Amount }, formatMoney},
	{"tokens", "Tokens", (*Use).Tokens, formatCompact},
	{"requests", "Requests", func(u *Use) int64 { return u.Requests }, formatCompact},
}

// Dimension names a property of requests by which spending is divided. Its name is in addresses.
type Dimension struct{ Name, Label string }

// The dimensions.
var (
	ByGroup    = Dimension{"group", "Group"}
	ByUser     = Dimension{"user", "User"}
	ByKey      = Dimension{"key", "Key"}
	ByModel    = Dimension{"model", "Model"}
	ByProvider = Dimension{"provider", "Provider"}
	ByApp      = Dimension{"app", "App"}
)

// Spender is one name of a dimension, and what it used.
type Spender struct {
	ID, Name, Note string
	Path           string // of the page about it, or ""
	// Term is the condition of the log of requests that selects its requests, or "" if there is none.
	Term string
	// Uses is by step, Total their sum and Before that of as many steps of the time before.
	Uses          []Use
	Total, Before Use
	Users         int64       // of a group, those with requests in this time
	Budget        *BudgetLine // nil without a budget
	Requests      string      // the address of its requests, set by Report.Finish
	Class         string      // of its colour, set by Report.Finish
}

// BudgetLine is a budget, and how far it will reach.
type BudgetLine struct {
	Name             string // whose it is, where several stand together
	Budget, InWindow int64
	Window           budget.Window
	// Forecast says when the budget will be used up, or is "" if it lasts for its window or nothing is known.
	Forecast string
}

// Percent returns how much of the budget is spent, at most 100.
func (b *BudgetLine) Percent() int64 { return percentOf(b.InWindow, b.Budget) }

// Level returns the class of the budget's meter.
func (b *BudgetLine) Level() string { return levelOf(b.Percent()) }

// Per returns the window in words.
func (b *BudgetLine) Per() string {
	switch b.Window {
	case budget.WindowDay:
		return " a day"
	case budget.WindowMonth:
		return " a month"
	}
	return " in all"
}

// RunsOut says when a budget of which so much is spent will be used up at perDay micro-dollars a day, or returns "" if
// it lasts until its window ends. Days and months are those of UTC, as the windows of budgets are.
func RunsOut(b budget.Budget, spent, perDay int64, now time.Time) string {
	now = now.UTC()
	left := b.Amount - spent
	switch {
	case b.Amount <= 0:
		return ""
	case left <= 0:
		return "used up"
	case perDay <= 0:
		return ""
	}
	midnight := now.Truncate(24 * time.Hour)
	days := float64(left) / float64(perDay)
	if days > 60 {
		return ""
	}
	at, end := now.Add(time.Duration(days*float64(24*time.Hour))), time.Time{}
	switch b.Window {
	case budget.WindowDay:
		end = midnight.AddDate(0, 0, 1)
	case budget.WindowMonth:
		end = time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	if !end.IsZero() && !at.Before(end) {
		return ""
	}
	switch n := int64(at.Truncate(24*time.Hour).Sub(midnight) / (24 * time.Hour)); n {
	case 0:
		return "will run out today"
	case 1:
		return "will run out tomorrow"
	default:
		return "will run out in " + plural(n, "day")
	}
}

// Report has what was used in a time, by the names of one dimension and by steps of that time.
type Report struct {
	By         Dimension
	Dimensions []Dimension // that are offered
	Measure    string      // cost, tokens or requests; others are cost
	From, To   time.Time   // To is excluded
	Step       time.Duration
	Elapsed    int // the number of steps that have begun
	// Rows are the names, of which Finish keeps those with most. Before is the time before, by step, in all of its
	// steps; Compared says which part of it is compared.
	Rows     []*Spender
	Before   []Use
	Compared string
	// Forecast is the amount at the end of the time, or 0. Budgets are those of all rows together in this time, or 0.
	Forecast, Budgets int64
	// Cause is the key behind the largest increase with the user behind it, both "" if unknown.
	Cause, CauseUser string
	// Path is the address of the page without parameters, Keep the parameters that all its links keep, and Scope the
	// condition of the log of requests for all that is on the page.
	Path  string
	Keep  url.Values
	Scope string
	// Logged is set if the figures are from the log of requests, Kept how long that keeps them, and Ledger what the
	// ledger charged in this time.
	Logged bool
	Kept   string
	Ledger int64
	// Led is set if the report is of the group that its reader leads.
	Led bool
	// Linked is set if there is a log of requests that figures can lead to.
	Linked bool

	Total, TotalBefore Use
	Increase           *Spender   // the row that grew most, or nil
	More               []*Spender // rows that are not shown
	Chart              *Chart
	measure            int
}

// maxSpenders bounds the rows of a report, and maxColours those of them with a colour of their own, since more could
// not be distinguished.
const (
	maxSpenders = 25
	maxColours  = 6
	otherNames  = "others"
)

// Finish sorts the rows, keeps those with most and draws the chart.
func (r *Report) Finish() {
	for i := range measures {
		if measures[i].name == r.Measure {
			r.measure = i
		}
	}
	of := measures[r.measure].of
	r.Measure = measures[r.measure].name
	for _, s := range r.Rows {
		r.Total.Add(s.Total)
		r.TotalBefore.Add(s.Before)
		if grown := of(&s.Total) - of(&s.Before); grown > 0 &&
			(r.Increase == nil || grown > of(&r.Increase.Total)-of(&r.Increase.Before)) {
			r.Increase = s
		}
	}
	slices.SortStableFunc(r.Rows, func(a, b *Spender) int {
		return cmp.Or(cmp.Compare(of(&b.Total), of(&a.Total)), strings.Compare(a.ID, b.ID))
	})
	r.Chart = r.draw()
	kept := min(len(r.Rows), maxSpenders)
	r.Rows, r.More = r.Rows[:kept], r.Rows[kept:]
}

// Link completes the rows that are shown, when their names are known.
func (r *Report) Link() {
	for i, s := range r.Rows {
		if s.Class = "m0"; i < maxColours {
			s.Class = "m" + strconv.Itoa(i+1)
		}
		if r.Linked && s.Term != "" {
			s.Requests = r.requests(s.Term, r.From, r.To)
		}
		if i < len(r.Chart.Names) && i < maxColours {
			r.Chart.Names[i].Name, r.Chart.Names[i].Class = s.Name, s.Class
		}
	}
}

// requests returns the address of requests in the log.
func (r *Report) requests(term string, from, to time.Time) string {
	a := Asked{Text: strings.TrimSpace(r.Scope + " " + term), From: from, To: to, Group: r.Led}
	return a.Address(pathRequests)
}

// Condition returns a condition of the log of requests, whose text may be anything.
func Condition(field, text string) string {
	return field + `:"` + strings.ReplaceAll(text, `"`, "") + `"`
}

// Chart is bars by step, each of parts by name, and the time before as a line. It is a drawing without words, so that
// it can be stretched; what is written beside it is HTML.
type Chart struct {
	Description string
	Width       int // of the drawing, in its own units; its height is chartHeight
	Bars        []ChartBar
	Before      string // the path of the line of the time before, or ""
	Names       []ChartName
	Ticks       []string // of the vertical axis, from the top
	Times       []string // of the horizontal axis
	BeforeLabel string
}

// ChartBar is one bar, which leads to its requests if Path is not "".
type ChartBar struct {
	X, Path, Text string
	Parts         []ChartPart
}

// ChartPart is a part of a bar.
type ChartPart struct{ Class, X, Y, Height string }

// ChartName is an entry of the legend.
type ChartName struct{ Name, Class, Total string }

const (
	chartHeight = 100
	barStep     = 10 // of which a bar has 7
)

// draw returns the chart of a report. The largest rows have colours of their own. All others together are one part
// with the rest of each sum, so that the chart and the table cannot differ.
func (r *Report) draw() *Chart {
	measure := &measures[r.measure]
	steps := int((r.To.Sub(r.From) + r.Step - 1) / r.Step)
	c := &Chart{Width: barStep * steps, BeforeLabel: r.Compared}
	sums, most := make([]int64, steps), int64(0)
	for _, s := range r.Rows {
		for i := range s.Uses {
			sums[i] += max(measure.of(&s.Uses[i]), 0)
			most = max(most, sums[i])
		}
	}
	all := int64(0)
	for _, n := range sums {
		all += n
	}
	for i := range r.Before {
		most = max(most, measure.of(&r.Before[i]))
	}
	top := round(most)
	c.Ticks = []string{measure.text(top), measure.text(top / 2), measure.text(0)}
	for i := range steps {
		from := r.From.Add(time.Duration(i) * r.Step)
		if sums[i] == 0 {
			continue
		}
		bar := ChartBar{X: strconv.Itoa(i * barStep), Text: r.when(from) + ": " + measure.text(sums[i]),
			Parts: r.parts(i, sums[i], top)}
		if r.Linked {
			bar.Path = r.requests("", from, from.Add(r.Step))
		}
		c.Bars = append(c.Bars, bar)
	}
	for k, s := range r.Rows {
		n := measure.of(&s.Total)
		if all -= n; k < maxColours {
			c.Names = append(c.Names, ChartName{Total: measure.text(n)})
		}
		if k == maxColours-1 {
			break
		}
	}
	if len(r.Rows) > maxColours {
		c.Names = append(c.Names, ChartName{otherNames, "m0", measure.text(max(all, 0))})
	}
	c.Before = r.line(steps, top)
	c.Times = r.axis(steps)
	c.Description = fmt.Sprintf("%s by %s from %s to %s: %s in all. The table below has the numbers.", measure.label,
		r.By.Name, r.when(r.From), r.when(r.To.Add(-time.Second)), measure.text(measure.of(&r.Total)))
	return c
}

// parts returns the parts of the bar of a step from the bottom up: one for each of the largest rows, and one for what
// is left of sum, the figure of all rows. top is the figure at the upper edge of the chart.
func (r *Report) parts(step int, sum, top int64) (parts []ChartPart) {
	at, left := int64(0), sum
	add := func(class string, n int64) {
		if at += n; n > 0 {
			parts = append(parts, ChartPart{class, coordinate(float64(step*barStep) + 1.5),
				coordinate(chartHeight - height(at, top)), coordinate(height(n, top))})
		}
	}
	for k, s := range r.Rows[:min(len(r.Rows), maxColours)] {
		n := max(measures[r.measure].of(&s.Uses[step]), 0)
		left -= n
		add("m"+strconv.Itoa(k+1), n)
	}
	add("m0", left)
	return parts
}

// line returns the path of the time before.
func (r *Report) line(steps int, top int64) string {
	var b strings.Builder
	used := false
	for i := range r.Before[:min(len(r.Before), steps)] {
		n := measures[r.measure].of(&r.Before[i])
		used = used || n > 0
		b.WriteString([]string{"L", "M"}[btoi(i == 0)])
		b.WriteString(coordinate(float64(i*barStep)+barStep/2) + " " + coordinate(chartHeight-height(max(n, 0), top)))
	}
	if !used {
		return ""
	}
	return b.String()
}

// btoi returns 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// when writes the beginning of a step.
func (r *Report) when(t time.Time) string {
	switch {
	case r.Step < 24*time.Hour:
		return t.UTC().Format("2 Jan 15:04 UTC")
	case r.Step > 24*time.Hour:
		return "week from " + t.UTC().Format("2 Jan")
	}
	return t.UTC().Format("2 Jan")
}

// axis returns the first step, those between at even distances, and the last.
func (r *Report) axis(steps int) []string {
	const marks = 4
	layout := "2 Jan"
	if r.Step < 24*time.Hour {
		layout = "15:04"
	}
	var all []string
	for i := range min(marks, steps-1) + 1 {
		n := i * (steps - 1) / max(min(marks, steps-1), 1)
		all = append(all, r.From.Add(time.Duration(n)*r.Step).UTC().Format(layout))
	}
	return all
}

// round returns the next number from n on that reads well, also when it is halved: 2, 4 or 10 times a power of ten.
func round(n int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, digit := range []int64{2, 4, 10} {
			if n <= digit*unit || unit > budget.MaxCredits {
				return digit * unit
			}
		}
	}
}

// height returns the height of an amount in the chart, whose upper edge is top.
func height(n, top int64) float64 { return float64(n) / float64(top) * chartHeight }

// coordinate formats a position in an SVG, with two decimals at most.
func coordinate(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// formatCompact writes a number that reads well.
func formatCompact(n int64) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + "M"
	case n >= 1000 && n%100 == 0:
		return strconv.FormatFloat(float64(n)/1e3, 'f', -1, 64) + "k"
	}
	return formatCount(n)
}

// Peopled reports whether a row has a number of users.
func (r *Report) Peopled() bool { return r.By == ByGroup }

// Budgeted reports whether a row has a budget.
func (r *Report) Budgeted() bool {
	return slices.ContainsFunc(r.Rows, func(s *Spender) bool { return s.Budget != nil })
}

// Sum writes the total of the measure that is shown.
func (r *Report) Sum() string { return measures[r.measure].text(measures[r.measure].of(&r.Total)) }

// Cost reports whether money is shown.
func (r *Report) Cost() bool { return r.measure == 0 }

// Change writes how much more or less was used than before, or "" if nothing was.
func (r *Report) Change(now, before *Use) string {
	of := measures[r.measure].of
	return change(of(now), of(before))
}

// Width returns how many steps have begun after the first one.
func (r *Report) Width() int { return r.Elapsed - 1 }

// Steps returns the length of a step as a word: hourly, daily or weekly.
func (r *Report) Steps() string {
	switch r.Step {
	case time.Hour:
		return "Hourly"
	case 24 * time.Hour:
		return "Daily"
	}
	return "Weekly"
}

// Spark returns the shape of a line through what a row has of the steps that have begun, as spark does.
func (r *Report) Spark(s *Spender) string {
	var numbers []int64
	for i := range s.Uses[:min(r.Elapsed, len(s.Uses))] {
		numbers = append(numbers, measures[r.measure].of(&s.Uses[i]))
	}
	return spark(numbers)
}

// ChangeOf returns the change of one row, as Change writes it.
func (r *Report) ChangeOf(s *Spender) string { return r.Change(&s.Total, &s.Before) }

// ChangeOfAll returns the change of all rows together, as Change writes it.
func (r *Report) ChangeOfAll() string { return r.Change(&r.Total, &r.TotalBefore) }

// change returns a change in per cent. What was nothing before is new, because no per cent says it.
func change(now, before int64) string {
	switch {
	case before <= 0 && now > 0:
		return "new"
	case before <= 0:
		return ""
	}
	n := int64(math.Round(100 * float64(now-before) / float64(before)))
	if n < 0 {
		return "−" + formatCount(-n) + " %"
	}
	return "+" + formatCount(n) + " %"
}

// Tone returns the class of a change.
func (r *Report) Tone(change string) string {
	switch {
	case strings.HasPrefix(change, "+") && change != "+0 %":
		return "bad"
	case strings.HasPrefix(change, "−"):
		return "good"
	}
	return "quiet"
}

// address returns the address of the page with some parameters changed.
func (r *Report) address(path string, changes ...string) string {
	v := url.Values{"by": {r.By.Name}, "show": {r.Measure}, "from": {r.From.UTC().Format(time.DateOnly)},
		"to": {r.last().Format(time.DateOnly)}}
	for name, values := range r.Keep {
		v[name] = values
	}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
	}
	return path + "?" + v.Encode()
}

// last returns the last moment of the time.
func (r *Report) last() time.Time { return r.To.Add(-time.Second).UTC() }

// During returns the address of the page for other days.
func (r *Report) During(from, last time.Time) string {
	return r.address(r.Path, "from", from.Format(time.DateOnly), "to", last.Format(time.DateOnly))
}

// Details returns the address of the page with all of the report.
func (r *Report) Details() string { return r.address(r.Path) }

// FromDay and ToDay are the first and the last day, for the form that asks for others.
func (r *Report) FromDay() string { return r.From.UTC().Format(time.DateOnly) }
func (r *Report) ToDay() string   { return r.last().Format(time.DateOnly) }

// File returns the address of what is shown as CSV.
func (r *Report) File() string { return r.address(r.Path + ".csv") }

// Older returns the address of the page with the receipts before a place.
func (r *Report) Older(before uint64) string {
	return r.address(r.Path, "receipts", strconv.FormatUint(before, 10)) + "#receipts"
}

// Measures returns the other quantities.
func (r *Report) Measures() (links []Link) {
	for i := range measures {
		links = append(links, Link{measures[i].label, r.address(r.Path, "show", measures[i].name), i == r.measure})
	}
	return links
}

// Tabs returns the other dimensions.
func (r *Report) Tabs() (links []Link) {
	for _, d := range r.Dimensions {
		links = append(links, Link{d.Label, r.address(r.Path, "by", d.Name), d == r.By})
	}
	return links
}

// Title names the time that is shown.
func (r *Report) Title() string {
	switch from, last := r.From.UTC(), r.last(); {
	case from.Day() == 1 && r.To.UTC().Day() == 1 && r.To.Sub(r.From) < 32*24*time.Hour:
		return from.Format("January 2006")
	case from.Format(time.DateOnly) == last.Format(time.DateOnly):
		return from.Format("2 January 2006")
	case from.Year() == last.Year():
		return from.Format("2 Jan") + " – " + last.Format("2 Jan 2006")
	default:
		return from.Format("2 Jan 2006") + " – " + last.Format("2 Jan 2006")
	}
}

// BudgetPercent returns the forecast as a part of the budgets, at most 100.
func (r *Report) BudgetPercent() int64 { return percentOf(r.Forecast, r.Budgets) }

// BudgetLevel returns the class of the meter of the budgets.
func (r *Report) BudgetLevel() string { return levelOf(r.BudgetPercent()) }

// Missing returns what the ledger charged in this time and the log of requests does not have.
func (r *Report) Missing() int64 { return max(r.Ledger-r.Total.Amount, 0) }

// Spend is the page of a report: of all users, of a group, or of one user's own usage.
type Spend struct {
	Viewer
	Name   string // of the page
	Own    bool   // the user's own
	Report *Report
	// Whose names the user or the group that the page is restricted to, or is "".
	Whose          string
	Previous, Next string // addresses of the times before and after, or ""
	Ranges         []Link
	Budgets        []BudgetLine // of the user and the user's group, on the user's own page
	// Receipts are the newest ones of the user, and OlderReceipts is the address of the next page of them.
	Receipts      []money.Receipt
	OlderReceipts string
	Alerts        *Alerts // for administrators
}

// Alerts names the host that alerts are posted to, or "" if none are.
type Alerts struct{ To string }

func (s *Spend) frame() frame {
	here := placeSpend
	if s.Own {
		here = placeUsage
	}
	if s.Report.Led {
		here = placeLedSpend
	}
	return s.at(here, "spend.html", s.Name).with("", "usage.css", full)
}

// percentOf returns a part of an amount in per cent, at most 100. It divides by a hundredth of the amount, so that
// large amounts do not overflow.
func percentOf(part, amount int64) int64 {
	if amount <= 0 {
		return 0
	}
	return min(max(part, 0)/max(amount/100, 1), 100)
}

// levelOf returns the class of a meter: warm from 90 per cent, bad when all is used up, else "".
func levelOf(percent int64) string {
	switch {
	case percent >= 100:
		return "bad"
	case percent >= 90:
		return "warm"
	}
	return ""
}
