package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/http/flow"
	"stagedoor/http/settings"
)

// Providers shows one row for each provider: its state, its speed and failures of the last hour, and what can be done
// with it. A script (assets/fresh.js) keeps the part of the page with data-fresh up to date.
type Providers struct {
	Viewer
	// Status is nil if the configuration cannot be changed here.
	Status *settings.Status
	Query  ProviderQuery
	All    int // providers, of which Rows has those that the query selects
	Rows   []ProviderRow
	// Attention says which providers cannot serve as they should.
	Attention []Attention
	// Open is the provider whose details are shown, or nil.
	Open *ProviderRow
	// Tested has what was found at the provider of this name; "": none was tested.
	Tested string
	Checks []settings.Check
	Silent []string // gateways that do not answer
}

// Attention is a sentence about a provider, with what can be done.
type Attention struct{ Name, Text, Path string }

// ProviderQuery has the parameters of the address.
type ProviderQuery struct {
	Text string // a part of the name, the shape or the state
	Sort string // one of the columns, behind a minus if it is reversed
	Open string // the provider whose details are shown
}

func (p *Providers) frame() frame {
	return p.at(placeProviders, "providers.html", "Providers").with("fresh.js", "providers.css", full)
}

// address returns the address of the page.
func (q ProviderQuery) address() string {
	return Address(string(placeProviders), map[string]string{"q": q.Text, "sort": q.Sort, "open": q.Open})
}

// Lead returns the sentence below the title, which says how many providers there are, how many need attention, and from
// when the figures are.
func (p *Providers) Lead() string {
	lead := plural(int64(p.All), "provider")
	if n := len(p.Attention); n == 1 {
		lead += ", one needs attention"
	} else if n > 1 {
		lead += fmt.Sprintf(", %d need attention", n)
	}
	return lead + ". Figures are of the last hour."
}

// Fresh returns the address at which the script finds the page as it is now.
func (p *Providers) Fresh() string { return p.Query.address() }

// OpenPath returns the address of the page with the details of a provider, or without them if they are shown.
func (p *Providers) OpenPath(name string) string {
	q := p.Query
	if q.Open == name {
		name = ""
	}
	q.Open = name
	return q.address()
}

// ProviderPath and ModelPath return the addresses of forms, for templates.
func (p *Providers) ProviderPath(name string) string { return ChangePath(settings.Providers, name) }

// ModelPath returns the address of the form for a model.
func (p *Providers) ModelPath(name string) string { return ChangePath(settings.Models, name) }

// providerColumns are the columns of the table, with their order. Where a column has numbers, the largest come first.
var providerColumns = []struct {
	key, name string
	number    bool
	compare   func(a, b *ProviderRow) int
}{
	{"name", "Provider", false, func(a, b *ProviderRow) int { return cmp.Compare(a.Name, b.Name) }},
	{"state", "Status", false, func(a, b *ProviderRow) int { return cmp.Compare(a.Word(), b.Word()) }},
	{"in_flight", "In flight", true, func(a, b *ProviderRow) int { return cmp.Compare(b.InFlight, a.InFlight) }},
	{"queued", "Queued", true, func(a, b *ProviderRow) int { return cmp.Compare(b.Queued, a.Queued) }},
	{"first", "First token, p95", true, func(a, b *ProviderRow) int {
		return cmp.Compare(b.Hour.First.P95, a.Hour.First.P95)
	}},
	{"took", "Whole, p95", true, func(a, b *ProviderRow) int { return cmp.Compare(b.Hour.Took.P95, a.Hour.Took.P95) }},
	{"", "Last hour", false, nil},
	{"requests", "Requests", true, func(a, b *ProviderRow) int {
		return cmp.Compare(b.Hour.Requests, a.Hour.Requests)
	}},
	{"failed", "Failed", true, func(a, b *ProviderRow) int { return cmp.Compare(b.failed(), a.failed()) }},
	{"", "Keys", false, nil},
	{"cost", "Cost today", true, func(a, b *ProviderRow) int { return cmp.Compare(b.cost(), a.cost()) }},
}

// ProviderSort returns sort if it names a column, and "" otherwise.
func ProviderSort(sort string) string {
	for _, c := range providerColumns {
		if c.key != "" && c.key == strings.TrimPrefix(sort, "-") {
			return sort
		}
	}
	return ""
}

// Column is a heading of the table. Path leads to the page sorted by it, or is "".
type Column struct {
	Name, Path, Sorted string
	Number             bool
	Whole              bool // left out on narrow screens
}

// Columns returns the headings.
func (p *Providers) Columns() (columns []Column) {
	for _, c := range providerColumns {
		column := Column{Name: c.name, Number: c.number, Whole: c.key == "took"}
		if c.key != "" {
			q, down := p.Query, c.number
			now := cmp.Or(q.Sort, "name")
			if q.Sort = c.key; now == c.key {
				q.Sort = "-" + c.key
			}
			if column.Path = q.address(); strings.TrimPrefix(now, "-") == c.key {
				if column.Sorted = "ascending"; down != strings.HasPrefix(now, "-") {
					column.Sorted = "descending"
				}
			}
		}
		columns = append(columns, column)
	}
	return columns
}

// Select fills in Rows with those of all that the query selects, in the order that it asks for. It also fills in All,
// Attention and Open, which are about all rows and do not depend on the text of the query.
func (p *Providers) Select(all []ProviderRow) {
	p.All = len(all)
	text := strings.ToLower(p.Query.Text)
	for i := range all {
		row := &all[i]
		if row.Name == p.Query.Open {
			p.Open = row
		}
		if a := row.attention(); a.Text != "" {
			if p.Status != nil && row.refused() {
				a.Path = p.ProviderPath(row.Name)
			}
			p.Attention = append(p.Attention, a)
		}
		if strings.Contains(strings.ToLower(row.Name+" "+row.Shape+" "+row.Word()), text) {
			p.Rows = append(p.Rows, *row)
		}
	}
	sort, reversed := strings.CutPrefix(p.Query.Sort, "-")
	for _, c := range providerColumns {
		if c.key == "" || c.key != cmp.Or(sort, "name") {
			continue
		}
		slices.SortStableFunc(p.Rows, func(a, b ProviderRow) int {
			if reversed {
				return c.compare(&b, &a)
			}
			return c.compare(&a, &b)
		})
	}
}

// ProviderRow is a provider of the table.
type ProviderRow struct {
	flow.Provider
	// LastTest is nil if no test is known.
	LastTest *ProviderTest
}

// ProviderTest says who tested a provider when, and with what outcome: ok, warning or failed.
type ProviderTest struct {
	At          time.Time
	By, Outcome string
	Today       bool // At is of this day
}

// Short returns the time of the day, or the day of an earlier test.
func (t *ProviderTest) Short() string {
	if t.Today {
		return t.At.UTC().Format("15:04")
	}
	return t.At.UTC().Format("2 Jan 2006")
}

// refused reports whether the provider refuses all of its keys.
func (r *ProviderRow) refused() bool {
	return len(r.Keys.States) > 0 &&
		!slices.ContainsFunc(r.Keys.States, func(k flow.KeyState) bool { return k.State != "refused" })
}

// Word returns the state.
func (r *ProviderRow) Word() string {
	if state := r.State(); state != "serving" || !r.refused() {
		return state
	}
	return "key refused"
}

// Where returns the names of the gateways on which the provider is in this state, or "" if that is all of them.
func (r *ProviderRow) Where() string {
	var names []string
	others := false
	for _, n := range r.Nodes {
		if n.State == r.State() {
			names = append(names, n.Node)
		} else {
			others = others || n.Answers
		}
	}
	if !others {
		return ""
	}
	return strings.Join(names, ", ")
}

// Tone returns the class of the state: good, warm, bad or off.
func (r *ProviderRow) Tone() string {
	switch r.Word() {
	case "serving":
		return "good"
	case "failing", "restarting", "key refused":
		return "bad"
	case "paused":
		return "off"
	}
	return "warm"
}

// attention returns what an operator should know about the provider, without a text if that is nothing.
func (r *ProviderRow) attention() Attention {
	a := Attention{Name: r.Name}
	switch r.Word() {
	case "key refused":
		a.Text = "refuses its key"
		if len(r.Keys.States) > 1 {
			a.Text = "refuses all of its keys"
		}
	case "failing":
		a.Text = "fails, and is tried again in " + Seconds(milliseconds(r.ReopensMs))
	case "restarting":
		a.Text = "has a limiter that restarts"
	}
	return a
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// Times returns a median and a 95th percentile as text, or nothing if there is none.
func (r *ProviderRow) Times(q flow.Quantiles) []string {
	if q.P50 == 0 && q.P95 == 0 {
		return nil
	}
	return []string{Seconds(milliseconds(q.P50)), Seconds(milliseconds(q.P95))}
}

// failed returns the per cent of requests that failed in the last hour.
func (r *ProviderRow) failed() float64 {
	return 100 * float64(r.Hour.Failed) / float64(max(r.Hour.Requests, 1))
}

// FailedText returns the failed attempts in per cent, or "–" without attempts.
func (r *ProviderRow) FailedText() string {
	switch f := r.failed(); {
	case r.Hour.Requests == 0:
		return "–"
	case f > 0 && f < 10:
		return strconv.FormatFloat(f, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(f, 'f', 0, 64) + " %"
	}
}

// Many reports whether so many attempts failed that the number stands out.
func (r *ProviderRow) Many() bool { return r.failed() >= 5 }

// cost returns what was spent today, or -1 if it is not known, so that such rows are sorted last.
func (r *ProviderRow) cost() int64 {
	if r.CostToday == nil {
		return -1
	}
	return *r.CostToday
}

// CostText returns the cost of the day, or "–" if it is unknown.
func (r *ProviderRow) CostText() string {
	if r.CostToday == nil {
		return "–"
	}
	return formatMoney(*r.CostToday)
}

// Full returns how much of its places is in use, in per cent, or "" without a limit.
func (r *ProviderRow) Full() string {
	if r.Places == 0 {
		return ""
	}
	return percent(min(100*float64(r.InFlight)/float64(r.Places), 100))
}

// Busy reports whether all places are in use.
func (r *ProviderRow) Busy() bool { return r.Places > 0 && r.InFlight >= r.Places }

// RequestsPath returns the address of the provider's requests of the last hour.
func (r *ProviderRow) RequestsPath() string {
	a := Asked{Text: `provider:"` + strings.ReplaceAll(r.Name, `"`, " ") + `"`, Range: requestRanges[0].name}
	return a.Address(pathRequests)
}

// KeyDot is the state of a key as a dot with a shape of its own.
type KeyDot struct{ Tone, Text string }

// KeyDots returns the states of the keys. Keys of a paused provider are not used.
func (r *ProviderRow) KeyDots() (dots []KeyDot) {
	for _, k := range r.Keys.States {
		dot := KeyDot{"good", "ok"}
		switch {
		case k.State == "refused":
			dot = KeyDot{"bad", "refused"}
		case k.State == "resting":
			dot = KeyDot{"warm", "cooling down, " + Seconds(milliseconds(k.RestsMs))}
		case r.Paused:
			dot = KeyDot{"off", "paused"}
		}
		dots = append(dots, dot)
	}
	return dots
}

// KeysText says in words what the dots show.
func (r *ProviderRow) KeysText() string {
	dots := r.KeyDots()
	words := make([]string, len(dots))
	for i, d := range dots {
		words[i] = d.Text
	}
	return plural(int64(len(dots)), "key") + ": " + strings.Join(words, ", ")
}

// Spark returns an SVG path of 60 bars in a box of 60 by 20, one for the mean time to the first token in each minute of
// the last hour. Minutes without a request are gaps. It returns "" if no minute has a request.
func (r *ProviderRow) Spark() string {
	most := int64(0)
	for _, m := range r.Hour.Minutes {
		most = max(most, m.FirstMs)
	}
	if most == 0 {
		return ""
	}
	var path strings.Builder
	for i, m := range r.Hour.Minutes {
		if m.FirstMs > 0 {
			fmt.Fprintf(&path, "M%d 20V%dh1V20z", i, 20-max(m.FirstMs*19/most, 1))
		}
	}
	return path.String()
}

// SparkText says in words what the bars of Spark show.
func (r *ProviderRow) SparkText() string {
	worst := int64(0)
	for _, m := range r.Hour.Minutes {
		worst = max(worst, m.FirstMs)
	}
	return "Mean time to the first token by minute of the last hour, at most " + Seconds(milliseconds(worst))
}

// Left returns what a limit per minute would let through at once.
func (r *ProviderRow) Left(b flow.Bucket) string {
	if b.Limit == 0 {
		return "no limit"
	}
	return formatCount(int64(b.Remaining)) + " of " + formatCount(int64(b.Limit))
}

// Waited returns how long the first request of a queue has waited.
func (r *ProviderRow) Waited(q flow.Queue) string { return Seconds(milliseconds(q.OldestMs)) }

// Counters returns counters as text in their order, which is the highest first, or "none".
func (r *ProviderRow) Counters(all []flow.Count) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = resultText(c.Name) + " " + formatCount(c.Count)
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

// resultWords has the kinds of results of attempts whose names are not plain words.
var resultWords = map[string]string{"success": "OK", "transient": "temporary failure", "not_sent": "not reached",
	"caller_fault": "client error", "credential": "key refused", "unused": "not sent"}

// resultText returns a kind of result, or another name of a counter, in words.
func resultText(name string) string {
	return cmp.Or(resultWords[name], strings.ReplaceAll(name, "_", " "))
}
