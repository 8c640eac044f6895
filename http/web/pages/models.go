package pages

import (
	"net/url"
	"strconv"
)

// Models lists the models that a user may use.
type Models struct {
	Desk
	Query    string
	Models   []ModelRow
	Patterns []string // names with a *, whose every match is served
}

func (m *Models) frame() frame { return m.models("models.html", "Models") }

// ModelRow is a model in a list. Zero limits are unknown.
type ModelRow struct {
	Name               string
	Providers          []string // in the sequence in which they are tried
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

// Path is the address of the model's own page.
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
	Desk
	Model   ModelRow
	Clients []ClientSetting
}

func (m *OneModel) frame() frame { return m.models("model.html", m.Model.Name) }

// models returns the frame of a page about models.
func (d *Desk) models(template, title string) frame {
	f := d.at(placeModels, template, title)
	f.style, f.width = "models.css", full
	return f
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
