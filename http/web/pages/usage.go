package pages

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// Usage shows use as a plot and as a table with the same figures.
type Usage struct {
	Plot     *Plot
	Rows     []money.UsageRow // by day and model, the newest first
	Total    money.UsageRow
	Measures []Link // other plots of it
	Ranges   []Link // other times
	// From and To are the first and the last day, for a form that asks for others;
	// Action is that form's address, "" without a form.
	From, To, Action string
	Measure          string
}

// measures lists the quantities that a plot can show. The first one is the default.
var measures = []struct {
	name, label, unit string
	of                func(*money.UsageRow) int64
	tick              func(int64) string
}{
	{"cost", "Cost", "dollars", func(u *money.UsageRow) int64 { return u.Amount },
		func(n int64) string { return "$" + Dollars(n) }},
	{"tokens", "Tokens", "tokens", func(u *money.UsageRow) int64 { return u.InputTokens + u.OutputTokens },
		formatCompact},
	{"requests", "Requests", "requests", func(u *money.UsageRow) int64 { return u.Requests }, formatCompact},
}

// UsageOptions say what of the usage is wanted, and where to ask for the rest.
type UsageOptions struct {
	From, To time.Time // the first and the last day
	Measure  string    // cost, tokens or requests; others are cost
	Path     string    // of the page
	Ranges   []int     // numbers of days until today that are offered
	Today    time.Time
	Form     bool // offer any two days
}

// NewUsage draws rows by day and model.
func NewUsage(rows []money.UsageRow, o UsageOptions) Usage {
	m := 0
	for i := range measures {
		if measures[i].name == o.Measure {
			m = i
		}
	}
	u := Usage{
		Plot:    plot(rows, o, m),
		Measure: measures[m].name,
		From:    o.From.UTC().Format(time.DateOnly),
		To:      o.To.UTC().Format(time.DateOnly),
	}
	for i := range measures {
		u.Measures = append(u.Measures, Link{measures[i].label, o.address(measures[i].name, u.From, u.To), i == m})
	}
	for _, days := range o.Ranges {
		from, to := o.Today.AddDate(0, 0, 1-days).UTC().Format(time.DateOnly), o.Today.UTC().Format(time.DateOnly)
		u.Ranges = append(u.Ranges,
			Link{strconv.Itoa(days) + " days", o.address(u.Measure, from, to), from == u.From && to == u.To})
	}
	if o.Form {
		u.Action = o.Path
	}
	for _, r := range slices.Backward(rows) {
		u.Rows = append(u.Rows, r)
	}
	slices.SortStableFunc(u.Rows, func(a, b money.UsageRow) int {
		return cmp.Or(strings.Compare(b.Day, a.Day), cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Model, b.Model))
	})
	for i := range rows {
		u.Total.Add(&rows[i])
	}
	return u
}

func (o *UsageOptions) address(measure, from, to string) string {
	return o.Path + "?" + url.Values{"show": {measure}, "from": {from}, "to": {to}}.Encode() + "#usage"
}

// Plot is bars by day, each of parts by model. It is a drawing without words, so
// that it can be stretched; what is written beside it is HTML.
type Plot struct {
	Title, Description string
	Width              int // of the drawing, in its own units; its height is plotHeight
	Bars               []Bar
	Models             []Model
	Ticks              []string // of the vertical axis, from the top
	Days               []string // of the horizontal axis
}

// Bar is a part of a bar.
type Bar struct {
	X, Y, Height string
	Class        string
	Text         string
}

// Model is an entry of the legend.
type Model struct{ Name, Class, Total string }

const (
	plotHeight = 100
	dayWidth   = 10 // of which a bar has barWidth
	barWidth   = 7
	// maxModels limits the models with a colour of their own, since more could not be distinguished.
	maxModels   = 6
	otherModels = "other models"
)

// plot draws measure m of rows.
func plot(rows []money.UsageRow, o UsageOptions, m int) *Plot {
	measure := &measures[m]
	days := daysOf(o.From, o.To)
	classes, totals, order := rank(rows, measure.of)
	sums := map[string]map[string]int64{}
	most := int64(0)
	for i := range rows {
		r := &rows[i]
		day := sums[r.Day]
		if day == nil {
			day = map[string]int64{}
			sums[r.Day] = day
		}
		day[shown(classes, r.Model)] += max(measure.of(r), 0)
	}
	for _, day := range sums {
		sum := int64(0)
		for n := range maps.Values(day) {
			sum += n
		}
		most = max(most, sum)
	}
	top := round(most)
	p := &Plot{
		Width: dayWidth * len(days),
		Ticks: []string{measure.tick(top), measure.tick(top / 2), measure.tick(0)},
		Days:  axis(days),
	}
	for i, day := range days {
		sum := int64(0)
		for _, model := range order {
			n := sums[day][model]
			if n == 0 {
				continue
			}
			sum += n
			p.Bars = append(
				p.Bars,
				Bar{
					X:      coordinate(float64(i*dayWidth) + (dayWidth-barWidth)/2.0),
					Y:      coordinate(plotHeight - height(sum, top)),
					Height: coordinate(height(n, top)),
					Class:  classes[model],
					Text:   day + ", " + model + ": " + measure.tick(n),
				},
			)
		}
	}
	all := int64(0)
	for _, model := range order {
		p.Models = append(p.Models, Model{model, classes[model], measure.tick(totals[model])})
		all += totals[model]
	}
	p.Title = measure.label + " by day and model"
	p.Description = fmt.Sprintf("Bars for %d days from %s to %s, %s in all. The table below has the numbers.",
		len(days), days[0], days[len(days)-1], measure.tick(all)+" "+measure.unit)
	if measure.name == "cost" {
		p.Description = strings.Replace(p.Description, " dollars", "", 1)
	}
	return p
}

func shown(classes map[string]string, model string) string {
	if _, ok := classes[model]; ok {
		return model
	}
	return otherModels
}

// rank gives the models with most of the measure a class each, and tells their
// order from the bottom of a bar.
func rank(rows []money.UsageRow, of func(*money.UsageRow) int64) (classes map[string]string, totals map[string]int64,
	order []string) {
	by := map[string]int64{}
	for i := range rows {
		by[rows[i].Model] += max(of(&rows[i]), 0)
	}
	names := slices.SortedFunc(maps.Keys(by),
		func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b)) })
	classes, totals = map[string]string{}, map[string]int64{}
	for i, name := range names {
		if i < maxModels {
			classes[name] = "m" + strconv.Itoa(i+1)
			totals[name] = by[name]
			order = append(order, name)
			continue
		}
		totals[otherModels] += by[name]
	}
	if len(names) > maxModels {
		classes[otherModels] = "m0"
		order = append(order, otherModels)
	}
	return classes, totals, order
}

func daysOf(from, to time.Time) []string {
	var days []string
	for d := from.UTC(); len(days) == 0 ||
		(!d.After(to.UTC()) && len(days) < money.MaxUsageDays); d = d.AddDate(0, 0, 1) {
		days = append(days, d.Format(time.DateOnly))
	}
	return days
}

// axis is the first day, those between at even distances, and the last.
func axis(days []string) []string {
	const marks = 4
	last := len(days) - 1
	var all []string
	for i := range min(marks, last) + 1 {
		day := days[i*last/max(min(marks, last), 1)]
		if t, err := time.Parse(time.DateOnly, day); err == nil {
			day = t.Format("2 Jan")
		}
		all = append(all, day)
	}
	return all
}

// round is the next number that reads well, also when halved.
func round(n int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, digit := range []int64{2, 4, 10} {
			if n <= digit*unit || unit > budget.MaxCredits {
				return digit * unit
			}
		}
	}
}

func height(n, top int64) float64 { return float64(n) / float64(top) * plotHeight }

func coordinate(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

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
