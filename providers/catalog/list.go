package catalog

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// builtinList is the list of models that is part of the program. NOTICE has the notices of its sources. Each figure has
// the date as_of at which its source stated it.
//
//go:embed list.json
var builtinList []byte

// Bounds of a list. The built-in one has about a hundred models.
const (
	MaxListBytes = 8 << 20
	maxListed    = 20_000
	maxListedID  = 200
)

// List says what vendors publish about their models: limits, kinds of input, prices. A list that was read from a file
// takes precedence over the built-in one, model by model. A List never changes.
//
// Lists are stacked: the configured file lies above the built-in list, and a model of the upper one hides
// that of the same vendor and id below, with all its aliases. below is the next one, or nil.
type List struct {
	// Version is the date of the list and the beginning of its SHA-256 checksum. Receipts name it.
	Version string
	// Date is the day on which the list was put together.
	Date   time.Time
	models []*Listed
	byName map[listedName]*Listed
	hosts  map[string]string
	tiers  map[string]map[string]dollars // factors by vendor and service tier
	below  *List
}

// listedName finds a model by its vendor. The vendor "" finds the first model of that name.
type listedName struct{ vendor, id string }

// Listed is a model of a List. Zero limits and absent lists are unknown. The tags are the names in the file
// (docs/catalog.md).
type Listed struct {
	Vendor    string   `json:"provider"`
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	Aliases   []string `json:"aliases"`
	Context   int64    `json:"context"`
	MaxInput  int64    `json:"max_input"`
	MaxOutput int64    `json:"max_output"`
	In        []string `json:"in"`
	Out       []string `json:"out"`
	Caps      []string `json:"caps"`
	Figures   *figures `json:"price"`
	Higher    *tier    `json:"above"`
	From      []dated  `json:"from"`
	Windows   []daily  `json:"windows"`
	// Tiers are factors of the prices at service tiers. They precede those of the vendor.
	Tiers   map[string]dollars `json:"service_tiers"`
	End     string             `json:"end"`
	Note    string             `json:"note"`
	AsOf    string             `json:"as_of"`
	Sources []string           `json:"src"`
	tariff  *tariff
	version string // the list's version
}

// figures are prices as the file writes them, in dollars for a million tokens if the name says nothing else.
// A model is free only if its input has the price 0: prices that the gateway does not charge by may be the only ones.
type figures struct {
	Input          *dollars `json:"input"`
	Output         dollars  `json:"output"`
	CacheRead      dollars  `json:"cache_read"`
	CacheWrite     dollars  `json:"cache_write"`
	CacheWrite1h   dollars  `json:"cache_write_1h"`
	Reasoning      dollars  `json:"reasoning"`
	AudioInput     dollars  `json:"audio_input"`
	AudioCacheRead dollars  `json:"audio_cache_read"`
	AudioOutput    dollars  `json:"audio_output"`
	ImageInput     dollars  `json:"image_input"`
	ImageCacheRead dollars  `json:"image_cache_read"`
	ImageOutput    dollars  `json:"image_output"`
	VideoInput     dollars  `json:"video_input"`
	WebSearch1k    dollars  `json:"web_search_1k"`
	Image          dollars  `json:"image"`
	Second         dollars  `json:"second"`
	Minute         dollars  `json:"minute"` // of sound; no route of the gateway is charged by it
}

// tier is a price for requests whose prompt has more than Tokens tokens.
type tier struct {
	Tokens int64 `json:"tokens"`
	figures
}

// dated is a price that holds from a date on.
type dated struct {
	Date  string   `json:"date"`
	Price *figures `json:"price"`
}

// daily is a price that holds at some hours of each day. UTC has ranges such as 16:30-24:00.
type daily struct {
	UTC   []string `json:"utc"`
	Price *figures `json:"price"`
}

// dollars is an amount in micro-dollars that the file writes in dollars, with at most six decimals. It never passes
// through a floating-point number.
type dollars int64

// maxDollars keeps sums of products of prices within 128 bits, and shows prices that are in the wrong unit.
const maxDollars = 1_000_000

// UnmarshalJSON implements json.Unmarshaler.
func (d *dollars) UnmarshalJSON(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	const decimals = "000000"
	if len(whole) > len(strconv.Itoa(maxDollars)) || len(fraction) > len(decimals) {
		return fmt.Errorf("%s is not a number of dollars with at most six decimals", text)
	}
	micros, err := strconv.ParseUint(whole+fraction+decimals[len(fraction):], 10, 63)
	if err != nil {
		return fmt.Errorf("%s is not a number of dollars with at most six decimals", text)
	}
	*d = dollars(micros)
	return nil
}

// complete reports whether a price says what a request costs: something, or by an input price of 0 that it is free.
func (f *figures) complete() bool {
	if f.Input != nil {
		return true
	}
	p := f.price("")
	return !p.Zero()
}

// price converts the figures of the file, which names some kinds that the gateway does not charge
// by.
func (f *figures) price(source string) Price {
	var input dollars
	if f.Input != nil {
		input = *f.Input
	}
	return Price{Input: int64(input), Output: int64(f.Output), CachedInput: int64(f.CacheRead),
		CacheWrite: int64(f.CacheWrite), CacheWrite1h: int64(f.CacheWrite1h), Reasoning: int64(f.Reasoning),
		AudioInput: int64(f.AudioInput), AudioCachedInput: int64(f.AudioCacheRead), AudioOutput: int64(f.AudioOutput),
		ImageInput: int64(f.ImageInput), ImageOutput: int64(f.ImageOutput), WebSearch: int64(f.WebSearch1k),
		PerImage: int64(f.Image), PerSecond: int64(f.Second), Source: source}
}

// Builtin returns the list that is part of the program.
var Builtin = sync.OnceValue(func() *List {
	l, err := ParseList(builtinList, nil)
	if err != nil {
		panic(fmt.Sprintf("catalog: list.json: %v", err))
	}
	return l
})

// ParseList reads a list. Models that it does not have are looked up in below, which may be nil. The error lists all
// mistakes.
func ParseList(text []byte, below *List) (*List, error) {
	var file struct {
		Notice   string                    `json:"notice"`
		Version  int                       `json:"version"`
		Date     string                    `json:"date"`
		Currency string                    `json:"currency"`
		Sources  map[string]map[string]any `json:"sources"`
		Hosts    map[string]string         `json:"hosts"`
		// Tiers are factors of the prices at the service tiers that replies name, by vendor.
		Tiers  map[string]map[string]dollars `json:"service_tiers"`
		Models []*Listed                     `json:"models"`
	}
	if len(text) > MaxListBytes {
		return nil, fmt.Errorf("the list is longer than %d MiB", MaxListBytes>>20)
	}
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	l := &List{below: below, hosts: file.Hosts, tiers: file.Tiers}
	l.byName = make(map[listedName]*Listed, 2*len(file.Models))
	var mistakes []error
	var err error
	if l.Date, err = time.Parse(time.DateOnly, file.Date); err != nil {
		mistakes = append(mistakes, errors.New("date: expected a day as 2026-11-22"))
	}
	if file.Version != 1 || file.Currency != "USD" {
		mistakes = append(mistakes, errors.New("expected version 1 and currency USD"))
	}
	if len(file.Models) == 0 || len(file.Models) > maxListed {
		mistakes = append(mistakes, fmt.Errorf("expected 1 to %d models", maxListed))
	}
	l.Version = file.Date + "-" + hex.EncodeToString(sum[:4])
	for i, m := range file.Models {
		if m == nil {
			mistakes = append(mistakes, fmt.Errorf("models[%d]: expected a model", i))
			continue
		}
		for _, problem := range l.add(m, file.Sources) {
			mistakes = append(mistakes, fmt.Errorf("models[%d] %.60q: %s", i, m.ID, problem))
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return l, nil
}

// add adds a model and returns what is wrong with it. A model with problems is added all the same, so that
// later ones are compared with it.
func (l *List) add(m *Listed, sources map[string]map[string]any) (problems []string) {
	say := func(broken bool, problem string) {
		if broken {
			problems = append(problems, problem)
		}
	}
	m.version = l.Version
	say(m.Vendor == "" || m.Vendor == "*", "provider: expected the name of a vendor")
	for _, id := range append([]string{m.ID}, m.Aliases...) {
		say(id == "" || len(id) > maxListedID, "id: expected 1 to 200 bytes")
		name := listedName{m.Vendor, id}
		say(l.byName[name] != nil, "id: is given twice")
		l.byName[name] = m
		if any := (listedName{"", id}); l.byName[any] == nil {
			l.byName[any] = m
		}
	}
	l.models = append(l.models, m)
	say(min(m.Context, m.MaxInput, m.MaxOutput) < 0, "limits must not be negative")
	say(m.Context > 0 && max(m.MaxInput, m.MaxOutput) > m.Context, "max_input and max_output: expected at most context")
	say(m.Figures == nil && m.Note == "", "expected a price, or a note that says why there is none")
	_, err := time.Parse(time.DateOnly, m.AsOf)
	say(err != nil, "as_of: expected a day as 2026-11-22")
	if m.End != "" {
		_, err = time.Parse(time.DateOnly, m.End)
		say(err != nil, "end: expected a day as 2026-11-22")
	}
	for _, s := range m.Sources {
		say(sources[s] == nil, "src: is not among the sources")
	}
	if m.Figures == nil {
		say(m.Higher != nil || m.From != nil || m.Windows != nil, "above, from and windows need a price")
		return problems
	}
	tiers := l.serviceTiers(m)
	for _, factor := range tiers {
		say(factor < million/100 || factor > 100*million, "service_tiers: expected factors from 0.01 to 100")
	}
	tariff, problem := newTariff(m, tiers)
	say(problem != "", problem)
	m.tariff = tariff
	return problems
}

// serviceTiers returns the factors of a model's prices at service tiers, in parts per million: its own ones, and those
// of its vendor in this list or else in the ones below it.
func (l *List) serviceTiers(m *Listed) map[string]int64 {
	all := make(map[string]int64)
	for at := l; at != nil && len(all) == 0; at = at.below {
		for name, factor := range at.tiers[m.Vendor] {
			all[name] = int64(factor)
		}
	}
	for name, factor := range m.Tiers {
		all[name] = int64(factor)
	}
	return all
}

// Models returns the models of the list and of all lists below it that no upper list replaces, by vendor and id.
func (l *List) Models() []*Listed {
	var all []*Listed
	for ; l != nil; l = l.below {
		for _, m := range l.models {
			taken := slices.ContainsFunc(all, func(o *Listed) bool { return o.Vendor == m.Vendor && o.ID == m.ID })
			if !taken {
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Listed) int {
		return cmp.Or(strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Vendor returns the vendor whose models a host serves: "*" for a cloud that serves those of several vendors, and "" if
// the list knows neither the host nor a domain above it.
func (l *List) Vendor(host string) string {
	for ; l != nil; l = l.below {
		for rest := strings.ToLower(host); rest != ""; _, rest, _ = strings.Cut(rest, ".") {
			if v := l.hosts[rest]; v != "" {
				return v
			}
		}
	}
	return ""
}

// regional is the price that clouds charge for a region, in parts per million of the price without one.
const regional = 1_100_000

// Find returns the model that a vendor, or a cloud, calls name, and the parts per million of the list's price that it
// costs there. It tries the exact id and the aliases in this list and all below it, then the name without a date or
// version at its end, then without what clouds put before it. It never takes a model whose name is only a part of the
// other.
func (l *List) Find(vendor, name string) (m *Listed, ppm int64) {
	if vendor == "*" {
		vendor = ""
	}
	name = strings.TrimPrefix(name, "models/")
	bare, place := withoutCloud(name)
	ppm = million
	if place != "" && place != "global" {
		ppm = regional
	}
	for _, id := range [...]string{name, withoutVersion(name, false), bare, withoutVersion(bare, bare != name)} {
		for at := l; at != nil; at = at.below {
			if m := at.byName[listedName{vendor, id}]; m != nil && !l.replaces(m, at) {
				if id == name {
					return m, million
				}
				return m, ppm
			}
		}
	}
	return nil, 0
}

// replaces reports whether a list above at has a model of the same vendor and id. Such a model takes the place of the
// other one with all its aliases.
func (l *List) replaces(m *Listed, at *List) bool {
	for ; l != at; l = l.below {
		if above := l.byName[listedName{m.Vendor, m.ID}]; above != nil && above.ID == m.ID {
			return true
		}
	}
	return false
}

// withoutVersion cuts what names one version of a model: -v1:0, then -2025-08-07, -20250929 or @20250929. A cloud also
// writes -v1. Elsewhere that is part of the name of another model.
func withoutVersion(name string, cloud bool) string {
	if at := strings.LastIndex(name, "-v"); at > 0 {
		major, minor, both := strings.Cut(name[at+2:], ":")
		if isNumber(major) && (isNumber(minor) || cloud && !both) {
			name = name[:at]
		}
	}
	for _, form := range [...]string{"-2006-01-02", "-20060102", "@20060102"} {
		if at := len(name) - len(form); at > 0 {
			if _, err := time.Parse(form, name[at:]); err == nil {
				return name[:at]
			}
		}
	}
	return name
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// withoutCloud cuts the region and the vendor that clouds put before a model's name, as in us.anthropic.claude-opus-5.
// place is the region, or "" if there is none. A name in which no vendor stands is returned whole.
func withoutCloud(name string) (bare, place string) {
	bare = name
	if first, rest, ok := strings.Cut(name, "."); ok && slices.Contains(places, first) {
		bare, place = rest, first
	}
	if first, rest, ok := strings.Cut(bare, "."); ok && slices.Contains(cloudVendors, first) {
		return rest, place
	}
	return name, ""
}

var (
	places       = []string{"us", "eu", "apac", "jp", "au", "global"}
	cloudVendors = []string{"anthropic", "openai", "google", "deepseek", "mistral", "meta", "qwen", "cohere", "xai"}
)

// tariff has the prices of a model over time. Times are in UTC.
type tariff struct {
	periods []period // by their beginning; the first one has none
}

// period is a price with the time from which it holds and with its exceptions by hour.
type period struct {
	since   time.Time
	price   Price
	windows []window
}

// window is a part of every day, in minutes since midnight in UTC.
type window struct {
	from, to int
	price    Price
}

const dayMinutes = 24 * 60

// newTariff returns the prices of a model, or what is wrong with them. It returns nil and no problem if the
// list does not say what a request to the model costs. Prices by prompt length cannot be combined with prices
// by hour or date.
func newTariff(m *Listed, tiers map[string]int64) (t *tariff, problem string) {
	if !m.Figures.complete() {
		if m.Higher != nil || len(m.Windows)+len(m.From) > 0 {
			return nil, "price: " + incomplete
		}
		return nil, "" // it is not free: the list has no price that the gateway charges by
	}
	first := period{price: m.Figures.price(m.version)}
	first.price.ServiceTiers = tiers
	if m.Higher != nil && len(m.Windows)+len(m.From) > 0 {
		return nil, "above: expected no windows and no from beside it"
	}
	if h := m.Higher; h != nil {
		if h.Tokens <= 0 || m.Context > 0 && h.Tokens > m.Context {
			return nil, "above: expected tokens within the context"
		}
		first.price.Above = &Tier{h.Tokens, h.price(m.version).inherit(&first.price)}
		if !first.price.Above.Price.notBelow(&first.price) {
			return nil, "above: expected prices that are not lower"
		}
	}
	for _, w := range m.Windows {
		for _, text := range w.UTC {
			from, to, ok := clockTimes(text)
			if !ok || w.Price == nil {
				return nil, "windows: expected a price and times as 01:00-04:00"
			}
			if !w.Price.complete() {
				return nil, "windows: " + incomplete
			}
			overlaps := func(o window) bool { return from < o.to && o.from < to }
			if slices.ContainsFunc(first.windows, overlaps) {
				return nil, "windows: two of them overlap"
			}
			first.windows = append(first.windows, window{from, to, w.Price.price(m.version).inherit(&first.price)})
		}
	}
	t = &tariff{periods: []period{first}}
	last := m.AsOf
	for _, d := range m.From {
		since, err := time.Parse(time.DateOnly, d.Date)
		if err != nil || d.Price == nil || d.Date <= last {
			return nil, "from: expected a price and a day after as_of and after the one before it"
		}
		if !d.Price.complete() {
			return nil, "from: " + incomplete
		}
		last = d.Date
		t.periods = append(t.periods, period{since: since, price: d.Price.price(m.version).inherit(&first.price)})
	}
	return t, ""
}

// incomplete is the error text for one of several prices that has no amount by which the gateway charges. Without this
// error, the model would be free as long as that price is in force.
const incomplete = "expected the price of the input, 0 if it is free, or another one that the gateway charges by"

// notBelow reports whether nothing is cheaper than at the other price.
func (p *Price) notBelow(o *Price) bool {
	a, b := p.whole(), o.whole()
	mine, theirs := a.amounts(), b.amounts()
	for i := range mine {
		if *mine[i] < *theirs[i] {
			return false
		}
	}
	return true
}

// clockTimes reads a range of hours into minutes after midnight. 24:00 is allowed as its end only,
// and a range does not pass midnight: the file has two ranges in that case.
func clockTimes(text string) (from, to int, ok bool) {
	first, second, _ := strings.Cut(text, "-")
	a, err1 := time.Parse("15:04", first)
	b, err2 := time.Parse("15:04", second)
	from, to = a.Hour()*60+a.Minute(), b.Hour()*60+b.Minute()
	if second == "24:00" {
		to, err2 = dayMinutes, nil
	}
	return from, to, err1 == nil && err2 == nil && from < to
}

// at returns the price at a time.
func (t *tariff) at(now time.Time) *Price {
	p := &t.periods[0]
	for i := range t.periods {
		if !now.Before(t.periods[i].since) {
			p = &t.periods[i]
		}
	}
	minute := now.UTC().Hour()*60 + now.UTC().Minute()
	for i := range p.windows {
		if w := &p.windows[i]; w.from <= minute && minute < w.to {
			return &w.price
		}
	}
	return &p.price
}

// Price returns the price of the model at a time, or nil if the list has none. ppm is the factor that Find returned.
func (m *Listed) Price(now time.Time, ppm int64) *Price {
	if m == nil || m.tariff == nil {
		return nil
	}
	p := m.tariff.at(now)
	if ppm == million {
		return p
	}
	return new(p.scaled(ppm))
}
