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
	Price              ModelPrice
}

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

// ChatPath returns the address of the chat with the model chosen.
func (m *ModelRow) ChatPath() string { return "/chat?" + url.Values{"model": {m.Name}}.Encode() }

// Text reports whether the model answers in words, so that it can be tried in the chat.
func (m *ModelRow) Text() bool { return m.Price.PerSecond == 0 && m.Price.PerImage == 0 }

// OneModel is the page of a model.
type OneModel struct {
	Desk
	Model   ModelRow
	Clients []ClientSetting
}

func (m *OneModel) frame() frame { return m.models("model.html", m.Model.Name) }

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
