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

	"stagedoor/http/flow"
)

// Models lists the models that a user may use.
type Models struct {
	Viewer
	Query    ModelQuery
	All      int // models that the user may use, of which Models has those that the query selects
	Models   []ModelRow
	Patterns []string // names with a *, whose every match is served
	Add      string   // the address of the form for a new model; "": the user cannot add one
	counts   map[string]int
	Silent   []string // gateways that do not answer
}

func (m *Models) frame() frame { return m.models("models.html", "Models") }

// ModelQuery has the parameters of the address.
type ModelQuery struct {
	Text string // a part of the name, a provider, an API or an ability
	Kind string // text, image or video; "" for all
	Sort string // one of modelOrders
}

// modelOrders are the orders of the list. Models for which the figure is unknown come last.
var modelOrders = []struct {
	name, label string
	compare     func(a, b *ModelRow) int
}{
	{"", "As configured", nil},
	{"name", "Name", func(a, b *ModelRow) int { return strings.Compare(a.Name, b.Name) }},
	{"used", "Most used", func(a, b *ModelRow) int { return cmp.Compare(b.Speed.Requests, a.Speed.Requests) }},
	{"first", "First token", func(a, b *ModelRow) int {
		return cmp.Compare(cmp.Or(a.Speed.First, math.MaxInt64), cmp.Or(b.Speed.First, math.MaxInt64))
	}},
	{"rate", "Tokens per second", func(a, b *ModelRow) int { return cmp.Compare(b.Speed.Rate, a.Speed.Rate) }},
	{"price", "Price of output", func(a, b *ModelRow) int { return cmp.Compare(a.Price.order(), b.Price.order()) }},
}

// Select fills in Models with those of all that the query selects, in the order that it asks for. It also counts all
// models for Lead and Kinds.
func (m *Models) Select(all []ModelRow) {
	m.All, m.counts = len(all), map[string]int{}
	text := strings.ToLower(strings.TrimSpace(m.Query.Text))
	for i := range all {
		row := &all[i]
		m.counts[row.kind()]++
		if row.matches(text) && (m.Query.Kind == "" || m.Query.Kind == row.kind()) {
			m.Models = append(m.Models, *row)
		}
	}
	for _, o := range modelOrders {
		if o.name == m.Query.Sort && o.compare != nil {
			slices.SortStableFunc(m.Models, func(a, b ModelRow) int { return o.compare(&a, &b) })
		}
	}
}

// Lead returns the sentence below the title, which says how many models there are and from when the figures are.
func (m *Models) Lead() string {
	return plural(int64(m.All), "model") + ", measured in the last hour."
}

// Kinds returns the links to the models of each kind, with their number, if there are several kinds.
func (m *Models) Kinds() (links []CountedLink) {
	if len(m.counts) < 2 {
		return nil
	}
	for _, k := range []struct{ kind, name string }{{"", "All"}, {"text", "Text"}, {KindImage, "Images"},
		{KindVideo, "Videos"}} {
		n := m.counts[k.kind]
		if k.kind == "" {
			n = m.All
		}
		q := m.Query
		if q.Kind = k.kind; n > 0 {
			links = append(links, CountedLink{Link{k.name, q.address(), k.kind == m.Query.Kind}, n})
		}
	}
	return links
}

// CountedLink is a link with the number of what it leads to.
type CountedLink struct {
	Link
	Count int
}

// Orders returns the choices of the order.
func (m *Models) Orders() (orders []Labelled) {
	for _, o := range modelOrders {
		orders = append(orders, Labelled{ID: o.name, Label: o.label})
	}
	return orders
}

// address returns the address of the page with the query. Empty parameters are left out.
func (q ModelQuery) address() string {
	return Address(string(placeModels), map[string]string{"q": q.Text, "kind": q.Kind, "sort": q.Sort})
}

// matches reports whether the row has a text in lower case.
func (m *ModelRow) matches(text string) bool {
	words := slices.Concat([]string{m.Name}, m.Providers, m.Abilities)
	for _, api := range m.APIs {
		if api.Native {
			words = append(words, api.Name)
		}
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), text) })
}

func (m *ModelRow) kind() string { return cmp.Or(m.Kind, "text") }

// Class returns the class of the colour of the model's name.
func (m *ModelRow) Class() string { return nameClass(m.Name) }

// Serving is a provider of a model with its state.
type Serving struct{ Name, Word, Tone string }

// NewServing returns a provider with the state that the page of providers shows.
func NewServing(p flow.Provider) Serving {
	row := ProviderRow{Provider: p}
	return Serving{p.Name, row.Word(), row.Tone()}
}

// ModelSpeed has the figures of a model in the last hour. They are 0 if they are unknown.
type ModelSpeed struct {
	Requests    int64
	First, Slow time.Duration // until the first token: the median and the 95th percentile
	Rate        float64       // tokens per second
	Rates       []float64     // of each minute
}

// FirstText and SlowText return the times until the first token, or "" if they are unknown.
func (s *ModelSpeed) FirstText() string { return knownSeconds(s.First) }
func (s *ModelSpeed) SlowText() string  { return knownSeconds(s.Slow) }

// knownSeconds returns a time in seconds, or "" for 0, which stands for a time that was not measured.
func knownSeconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Seconds(d)
}

// RateText returns the tokens per second, or "" if they are unknown.
func (s *ModelSpeed) RateText() string {
	if s.Rate == 0 {
		return ""
	}
	return strconv.FormatFloat(s.Rate, 'f', 0, 64)
}

// Spark returns an SVG path of 60 bars in a box of 60 by 20, one for the tokens per second in each minute of the last
// hour. Minutes without any are gaps.
func (s *ModelSpeed) Spark() string {
	most := 1.0
	for _, r := range s.Rates {
		most = max(most, r)
	}
	var path strings.Builder
	for i, r := range s.Rates {
		if r > 0 {
			fmt.Fprintf(&path, "M%d 20V%sh1V20z", i, coordinate(20-max(r*19/most, 1)))
		}
	}
	return path.String()
}

// ModelRow is a model in a list. Zero limits are unknown.
type ModelRow struct {
	Name               string
	Providers          []string // in the sequence in which they are tried
	Served             []Serving
	Speed              ModelSpeed
	APIs               []API
	Abilities          []string // such as vision
	Context, MaxOutput int64    // tokens
	Kind               string   // KindImage, KindVideo, or another kind of the list of models
	Price              ModelPrice
	// ExactPrice says that what a picture or a video costs is known before it is made. It is not where tokens have a
	// price, or where the candidates have several prices.
	ExactPrice bool
}

// Kinds of models that have pages of their own.
const (
	KindImage = "image"
	KindVideo = "video"
)

// API is one in which a model is asked. Native says that a provider speaks it, so that nothing is translated.
type API struct {
	Letter, Name string
	Native       bool
}

// ModelPrice holds the price of a model in micro-dollars.
type ModelPrice struct {
	Known, Free         bool
	Estimate            bool // known from the list of models, and not charged
	Input, Output       int64
	PerSecond, PerImage int64
	Source              string // version of the list; "": the operator set it
}

// order returns what a model costs for lists by price. Unknown prices are above all others.
func (p *ModelPrice) order() int64 {
	switch {
	case !p.Known:
		return math.MaxInt64
	case p.PerSecond > 0 || p.PerImage > 0:
		return math.MaxInt64 - 1
	}
	return p.Output
}

// Path returns the address of the model's own page.
func (m *ModelRow) Path() string { return "/account/models/" + url.PathEscape(m.Name) }

// TryPath returns the address of the page on which the model can be tried, with the model chosen, or "" if there is no
// such page.
func (m *ModelRow) TryPath() string {
	var page place
	switch m.Kind {
	case "", "text":
		page = placeChat
	case KindImage:
		page = placeImages
	case KindVideo:
		page = placeLive
	default:
		return ""
	}
	return string(page) + "?" + url.Values{"model": {m.Name}}.Encode()
}

// PriceText returns the price in a few words, such as $0.04 a picture. Pages on which a model is chosen show it.
func (m *ModelRow) PriceText() string {
	p := &m.Price
	switch {
	case p.PerSecond > 0:
		return formatMoney(p.PerSecond) + " a second"
	case p.PerImage > 0:
		return formatMoney(p.PerImage) + " a picture"
	case p.Free:
		return "free"
	case !p.Known:
		return "no price"
	case p.Estimate:
		return "not charged here"
	}
	return formatMoney(p.Input) + " in, " + formatMoney(p.Output) + " out per 1M"
}

// OneModel is the page of a model.
type OneModel struct {
	Viewer
	Model   ModelRow
	Clients []ClientSetting
	Change  string   // the address of the form that changes the model; "": the user cannot
	Silent  []string // gateways that do not answer
}

// RequestsPath returns the address of the model's requests of the last hour.
func (m *OneModel) RequestsPath() string {
	a := Asked{Text: Condition("model", m.Model.Name), Range: requestRanges[0].name}
	return a.Address(pathRequests)
}

func (m *OneModel) frame() frame { return m.models("model.html", m.Model.Name) }

// models returns the frame of a page about models.
func (d *Viewer) models(template, title string) frame {
	return d.at(placeModels, template, title).with("", "models.css", full)
}

// formatTokens writes a limit in thousands or millions; "–" if it is not known.
func formatTokens(n int64) string {
	switch {
	case n <= 0:
		return "–"
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n/10_000)/100, 'f', -1, 64) + "M"
	case n >= 10_000:
		return strconv.FormatInt(n/1000, 10) + "K"
	}
	return formatCount(n)
}
