package pages

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

// pathRequests is the address of the log of requests.
const pathRequests = "/requests"

// Requests is the page of the log of requests, with a search.
type Requests struct {
	Viewer
	Query Asked
	// Kept says for how long requests are in the log.
	Kept string
	Rows []RequestRow
	Bars []requestlog.Bar
	Sum  requestlog.Counts // of all bars, whatever is searched for
	// Older is the address of the next page, or "".
	Older string
	// Off is set if there is no log, and Several if requests may be of several gateways.
	Off, Several bool
	// Group is the name of the group whose requests are shown, or "".
	Group string
}

// Asked has the parameters of the address.
type Asked struct {
	Text     string
	Range    string // one of Ranges
	Only     string // failed, slow, lossy or ""
	From, To time.Time
	Before   int64 // 0 on the first page
	// Group asks for the requests of the group that the user leads, in place of the user's own.
	Group bool
}

// requestRanges are the times that can be chosen.
var requestRanges = []struct {
	name, label string
	length      time.Duration
}{
	{"1h", "Last hour", time.Hour}, {"6h", "Last 6 hours", 6 * time.Hour}, {"24h", "Last 24 hours", 24 * time.Hour},
	{"7d", "Last 7 days", 7 * 24 * time.Hour}, {"30d", "Last 30 days", 30 * 24 * time.Hour},
}

// Days returns a time in days, or in hours if it is shorter than two days.
func Days(d time.Duration) string {
	if d < 48*time.Hour {
		return plural(int64(d/time.Hour), "hour")
	}
	return plural(int64(d/(24*time.Hour)), "day")
}

// RangeOf returns the time that a range of the address has. An unknown one is the last hour.
func RangeOf(name string) (string, time.Duration) {
	for _, r := range requestRanges {
		if r.name == name {
			return r.name, r.length
		}
	}
	return requestRanges[0].name, requestRanges[0].length
}

// Address returns the address of the page at path.
func (a *Asked) Address(path string) string {
	query := map[string]string{"q": a.Text, "only": a.Only, "range": a.Range, "before": place64(a.Before)}
	if a.Group {
		query["of"] = "group"
	}
	if a.Range == "" {
		query["from"], query["to"] = strconv.FormatInt(a.From.Unix(), 10), strconv.FormatInt(a.To.Unix(), 10)
	}
	return Address(path, query)
}

// Newest returns the address of the first page.
func (a Asked) Newest() string {
	a.Before = 0
	return a.Address(pathRequests)
}

// Export returns the address of what matches as a file.
func (r *Requests) Export(format string) string {
	a := r.Query
	a.Before = 0
	return a.Address(pathRequests + "." + format)
}

func (r *Requests) frame() frame {
	here := placeRequests
	if r.Query.Group {
		here = placeLedLog
	}
	return r.at(here, "requests.html", "Requests").with("requests.js", "requests.css", full)
}

// Ranges returns the times to choose from.
func (r *Requests) Ranges() (links []Link) {
	for _, o := range requestRanges {
		links = append(links, Link{o.label, o.name, o.name == r.Query.Range})
	}
	return links
}

// Chip is a common filter with the number of requests that it selects without a search.
type Chip struct {
	Link
	Count, Title string
}

// Chips returns the common filters.
func (r *Requests) Chips() (chips []Chip) {
	for _, c := range []struct {
		only, name, title string
		count             int64
	}{
		{"", "All", "", 0}, {"failed", "Failed", "", r.Sum.Failed},
		{"slow", "Slow", "The first token took 3 s or longer", r.Sum.Slow},
		{"lossy", "With losses", "The provider's API could not express all of the request", r.Sum.Lossy},
	} {
		a := r.Query
		a.Only, a.Before = c.only, 0
		chip := Chip{Link{c.name, a.Address(pathRequests), c.only == r.Query.Only}, "", c.title}
		if c.only != "" {
			chip.Count = formatCount(c.count)
		}
		chips = append(chips, chip)
	}
	return chips
}

// Minute is one bar of the strip, which leads to its requests. Numbers are per cent of the strip.
type Minute struct {
	Path, Text              string
	X, Width, Y, Height     string
	FailedY, FailedHeight   string
	HitX, HitWidth, Failing string
}

// Strip returns the bars of the requests per time.
func (r *Requests) Strip() (minutes []Minute) {
	most := int64(1)
	for _, b := range r.Bars {
		most = max(most, b.All)
	}
	width := 100 / float64(max(len(r.Bars), 1))
	for i, b := range r.Bars {
		if b.All == 0 {
			continue
		}
		to := r.Query.To
		if i+1 < len(r.Bars) {
			to = r.Bars[i+1].From
		}
		a := Asked{Text: r.Query.Text, Only: r.Query.Only, From: b.From, To: to, Group: r.Query.Group}
		all, failed := 100*float64(b.All)/float64(most), 100*float64(b.Failed)/float64(most)
		m := Minute{Path: a.Address(pathRequests), X: percent(float64(i) * width), Width: percent(width * .78),
			Y: percent(100 - all), Height: percent(all), FailedY: percent(100 - all), FailedHeight: percent(failed),
			HitX: percent(float64(i) * width), HitWidth: percent(width),
			Text: fmt.Sprintf("%s: %s, %s failed", b.From.UTC().Format("2 Jan 15:04 UTC"), plural(b.All, "request"),
				formatCount(b.Failed))}
		if b.Failed > 0 {
			m.Failing = "1"
		}
		minutes = append(minutes, m)
	}
	return minutes
}

// StripText says in words what the strip shows.
func (r *Requests) StripText() string {
	return fmt.Sprintf("Requests over time: %s, %s failed", plural(r.Sum.All, "request"), formatCount(r.Sum.Failed))
}

// Axis returns the times below the strip.
func (r *Requests) Axis() (times []string) {
	layout := "15:04"
	if r.Query.To.Sub(r.Query.From) > 25*time.Hour {
		layout = "2 Jan"
	}
	for i := range 4 {
		times = append(times, r.Query.From.Add(r.Query.To.Sub(r.Query.From)*time.Duration(i)/4).UTC().Format(layout))
	}
	end := "now"
	if r.Query.Range == "" {
		end = r.Query.To.UTC().Format(layout)
	}
	return append(times, end)
}

// plural returns a number with its noun.
func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatCount(n) + " " + what + "s"
}

// RequestRow is one request of the list.
type RequestRow struct {
	requestlog.Record
	scale time.Duration // of the waterfalls of the page
	Day   bool          // the time needs its day
}

// NewRequestRows returns rows with waterfalls on one scale.
func NewRequestRows(records []requestlog.Record, now time.Time) []RequestRow {
	scale := time.Millisecond
	for i := range records {
		scale = max(scale, records[i].Took)
	}
	rows := make([]RequestRow, len(records))
	for i, r := range records {
		rows[i] = RequestRow{r, scale, r.Began.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly)}
	}
	return rows
}

// Path returns the address of the request's own page.
func (r *RequestRow) Path() string { return pathRequests + "/" + strconv.FormatInt(r.At, 10) }

// Time returns when the request began.
func (r *RequestRow) Time() string {
	if r.Day {
		return r.Began.UTC().Format("2 Jan 15:04:05")
	}
	return r.Began.UTC().Format("15:04:05")
}

// Name returns the user, or the key if it has no user.
func (r *RequestRow) Name() string {
	switch {
	case r.User != "":
		return r.User
	case r.KeyName != "":
		return r.KeyName
	}
	return r.Key
}

// KeyLabel returns the name of the key beside that of the user.
func (r *RequestRow) KeyLabel() string {
	if r.User == "" {
		return ""
	}
	if r.KeyName != "" {
		return r.KeyName
	}
	if page := r.FromPage(); page != "" {
		return "page /" + page
	}
	return ShortID(r.Key)
}

// FromPage returns the page of the console that sent the request, or "" if a key did.
func (r *RequestRow) FromPage() string {
	switch page, _, _ := strings.Cut(r.Key, "_"); page {
	case "chat", "images", "live":
		return page
	}
	return ""
}

// ShortID returns the last characters of an id.
func ShortID(id string) string {
	if len(id) <= 12 {
		return id
	}
	return "…" + id[len(id)-8:]
}

// endings are the words of pages for the reasons for which replies end.
var endings = map[string]string{"stop": "end of turn", "length": "length limit", "tool_calls": "tool call"}

// Ending returns in words why the reply ended, or "" if no reason is known.
func (r *RequestRow) Ending() string { return cmp.Or(endings[r.Reason], r.Reason) }

// Result returns the result in a word, and its class.
func (r *RequestRow) Result() string {
	switch {
	case r.Status == requestlog.ClientLeft:
		return "disconnected"
	case !r.Failed():
		return "OK"
	}
	return strconv.Itoa(r.Status)
}

// Tone returns the class of the result.
func (r *RequestRow) Tone() string {
	switch {
	case r.Status == requestlog.ClientLeft:
		return "line"
	case !r.Failed():
		return "good"
	}
	return "bad"
}

// Lost returns the names of what got lost in translation.
func (r *RequestRow) Lost() []string {
	if r.Losses == "" {
		return nil
	}
	all := strings.Split(r.Losses, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Seconds writes a duration as pages show it.
func Seconds(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < 100*time.Millisecond:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	case d < 10*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(d.Minutes(), 'f', 0, 64) + " min"
}

// FirstText, TookText and QueuedText return the durations of the row as text.
func (r *RequestRow) FirstText() string  { return Seconds(r.First) }
func (r *RequestRow) TookText() string   { return Seconds(r.Took) }
func (r *RequestRow) QueuedText() string { return Seconds(r.Queued) }

// Part is one part of a bar: a phase.
type Part struct{ Class, X, Width string }

// phaseClasses are the classes and the words of phases.
var phaseClasses = map[string][2]string{"starting": {"fo", "gateway"}, "queued": {"fq", "queue"},
	"waiting": {"fw", "wait"}, "replying": {"fr", "reply"}, "in_progress": {"fr", "in progress"},
	"resting": {"ft", "backoff"}}

// Bar returns the waterfall of the whole request.
func (r *RequestRow) Bar() []Part { return r.parts(func(*requestlog.Step) bool { return true }) }

// parts returns the coloured parts of a request's bar, for the steps that wanted chooses. A short phase is drawn a
// little wider than it was, because it could not be seen.
func (r *RequestRow) parts(wanted func(*requestlog.Step) bool) (parts []Part) {
	for i := range r.Steps {
		s := &r.Steps[i]
		class, known := phaseClasses[s.Phase]
		if from, to := r.span(i); known && wanted(s) && to > from {
			parts = append(parts, Part{class[0], r.share(from), r.share(max(to-from, r.scale/250))})
		}
	}
	if n := len(parts); n > 0 && r.Failed() && wanted(&r.Steps[len(r.Steps)-1]) {
		parts = append(parts, Part{"ff", r.share(r.Took - min(r.scale/125, r.Took)), r.share(r.scale / 125)})
	}
	return parts
}

// span returns when a step began and ended.
func (r *RequestRow) span(i int) (from, to time.Duration) {
	from, to = time.Duration(r.Steps[i].AtUs)*time.Microsecond, r.Took
	if i+1 < len(r.Steps) {
		to = time.Duration(r.Steps[i+1].AtUs) * time.Microsecond
	}
	return from, to
}

// share returns a time as its part of the bar's width.
func (r *RequestRow) share(d time.Duration) string {
	return percent(100 * float64(d) / float64(r.scale))
}

func percent(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) + "%" }

// BarText says in words what the waterfall shows.
func (r *RequestRow) BarText() string {
	var words []string
	for i := range r.Steps {
		class, known := phaseClasses[r.Steps[i].Phase]
		if from, to := r.span(i); known && to-from >= time.Millisecond {
			words = append(words, class[1]+" "+Seconds(to-from))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "less than a millisecond")
}

// OneRequest is the page of one request.
type OneRequest struct {
	Viewer
	RequestRow
	Receipt *money.Receipt // nil if there is none, or none any more
	// The addresses of the pages about what the request names. One is "" if the reader has no such page.
	UserPath, KeyPath, ModelPath, ProviderPath string
	// Exchange has what was sent and answered, or nil if that was not recorded. RecordedAt names the gateway that keeps
	// it, if that does not answer, and RecordPath is the address where an administrator has the key recorded.
	Exchange               *Recorded
	RecordedAt, RecordPath string
	// FromPage is the address of the page of this site that sent the request, or "". No such request is recorded.
	FromPage        string
	RecordingBroken bool // what is kept cannot be read
}

// OneProviderPath returns the address of the page of providers with one of them open.
func OneProviderPath(name string) string {
	return string(placeProviders) + "?" + url.Values{"open": {name}}.Encode()
}

// Payer returns in words whose balance was charged, and the group whose budget the request counted towards if the user
// was in one.
func (o *OneRequest) Payer() string {
	payer := o.User
	switch {
	case payer == "" && o.KeyName != "":
		payer = "the key " + o.KeyName
	case payer == "":
		payer = "the key " + ShortID(o.Key)
	case payer == o.Username:
		payer = "you"
	}
	if o.Group != "" {
		payer += ", as a member of " + o.Group
	}
	return payer
}

// NewOneRequest returns the page of a record.
func NewOneRequest(d Viewer, r requestlog.Record, receipt *money.Receipt) *OneRequest {
	return &OneRequest{Viewer: d, RequestRow: RequestRow{r, max(r.Took, time.Millisecond), true}, Receipt: receipt}
}

func (o *OneRequest) frame() frame {
	return o.at(placeRequests, "request.html", "Request").with("", "requests.css", full)
}

// Rate returns the output tokens per second.
func (o *OneRequest) Rate() string {
	took := o.Took
	if o.Stream {
		took -= o.First
	}
	if o.First == 0 || took < time.Millisecond || o.Output == 0 {
		return "–"
	}
	return formatCount(int64(float64(o.Output)/took.Seconds() + .5))
}

// Lane is one line of the timeline.
type Lane struct {
	Name, Badge, Tone, Took, Text string
	Inner                         bool
	Parts                         []Part
}

// Lanes returns the timeline: the attempts with their phases.
func (o *OneRequest) Lanes() (lanes []Lane) {
	lanes = append(lanes, Lane{Name: "Total", Took: Seconds(o.Took), Parts: o.Bar(), Text: o.BarText()})
	for n := range o.Tries {
		t, number := &o.Tries[n], n+1
		if last := n == len(o.Tries)-1; last {
			number = max(number, o.Attempts)
		}
		lane := Lane{Name: fmt.Sprintf("Attempt %d, %s", number, t.Provider), Badge: "OK", Tone: "good"}
		switch {
		case t.Status == 0 && t.Failure != "": // a hedge, or the attempt that one has overtaken
			lane.Badge, lane.Tone = resultText(t.Failure), "line"
		case t.Status != 0:
			lane.Badge, lane.Tone = fmt.Sprintf("%d %s", t.Status, resultText(t.Failure)), "bad"
		}
		lane.Parts = o.parts(func(s *requestlog.Step) bool { return s.Attempt == number })
		took, inner := o.phases(number)
		lane.Took, lane.Text = Seconds(took), Seconds(took)
		lanes = append(append(lanes, lane), inner...)
	}
	return lanes
}

// phases returns a line for each phase of an attempt, and how long all took.
func (o *OneRequest) phases(attempt int) (all time.Duration, lanes []Lane) {
	for i := range o.Steps {
		s := &o.Steps[i]
		class, known := phaseClasses[s.Phase]
		from, to := o.span(i)
		if s.Attempt != attempt || !known {
			continue
		}
		all += to - from
		if to-from < 10*time.Microsecond {
			continue
		}
		name := class[1]
		switch s.Phase {
		case "waiting":
			name = "wait for the first token"
		case "resting":
			name = "backoff before a retry"
		case "replying":
			name = fmt.Sprintf("reply, %s", plural(o.Output, "token"))
		}
		lanes = append(lanes, Lane{Name: name, Took: Seconds(to - from), Text: Seconds(to - from), Inner: true,
			Parts: []Part{{class[0], o.share(from), o.share(max(to-from, o.scale/250))}}})
	}
	return all, lanes
}

// Ruler returns the times above the timeline.
func (o *OneRequest) Ruler() []string {
	marks := []string{"0"}
	for i := range 4 {
		marks = append(marks, Seconds(o.Took*time.Duration(i+1)/4))
	}
	return marks
}

// Released returns what was held and not charged.
func (o *OneRequest) Released() int64 { return o.Receipt.Held - o.Receipt.Charged }

// ChatPath returns the address of the chat with the model of the request, or "" if the reply had no words.
func (o *OneRequest) ChatPath() string {
	if o.Output == 0 {
		return ""
	}
	return "/chat?" + url.Values{"model": {o.Model}}.Encode()
}

// billed are the words of the rows of a receipt.
var billed = map[string]string{"input": "Input", "cached_input": "Cached input", "cache_write": "Cache write",
	"output": "Output", "images": "Images", "seconds": "Seconds"}

// BillRow is one row of the receipt.
type BillRow struct{ Name, Detail, Amount string }

// Bill returns the rows of the receipt.
func (o *OneRequest) Bill() (rows []BillRow) {
	for _, p := range o.Receipt.Prices {
		name, ok := billed[p.What]
		if !ok {
			name = strings.ReplaceAll(p.What, "_", " ")
		}
		unit := ""
		if p.Per == 1_000_000 {
			unit = " per million"
		}
		amount := int64(math.Round(float64(p.Quantity) * float64(p.Price) / float64(max(p.Per, 1))))
		rows = append(rows, BillRow{name, fmt.Sprintf("%s at $%s%s", formatCount(p.Quantity), Dollars(p.Price), unit),
			"$" + Dollars(amount)})
	}
	return rows
}
