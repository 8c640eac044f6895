package pages

import (
	"net/url"
	"slices"
	"strings"

	"stagedoor/http/settings"
)

// ChangePath returns the address of the form for a provider or a model.
func ChangePath(kind, name string) string {
	return "/flow/providers/change?" + url.Values{"kind": {kind}, "name": {name}}.Encode()
}

// NewProvider is the form for a new provider: the shape first, then the address and the key.
type NewProvider struct {
	Viewer
	Version string
	Shapes  []string
	// Shape is "" until one is chosen.
	Shape             string
	Name, URL, Serves string // as typed before
	Placeholder       string // for the address
	Recent            bool   // keys may be entered
}

func (n *NewProvider) frame() frame { return n.setup("newprovider.html", "Add a provider") }

// ShapePath returns the address of the form for a shape.
func (n *NewProvider) ShapePath(shape string) string {
	return "/flow/providers/new?" + url.Values{"shape": {shape}}.Encode()
}

// ChangeEntry is the form that changes a provider or a model.
type ChangeEntry struct {
	Viewer
	Version    string
	Kind, Name string
	Fields     []SettingField
	Recent     bool // keys may be entered
}

func (c *ChangeEntry) frame() frame { return c.setup("changeentry.html", c.Name) }

// One returns the word for the kind of entry.
func (c *ChangeEntry) One() string { return strings.TrimSuffix(c.Kind, "s") }

// SettingField is a setting in a form.
type SettingField struct {
	settings.Setting
	Input string // name of the form's field
}

// Label returns the name of the setting as the file has it.
func (f *SettingField) Label() string { return strings.Join(f.Path, ".") }

// Usual reports whether the setting is shown at once: those that most people set, and all that are set.
func (f *SettingField) Usual() bool {
	return f.Value != "" || slices.Contains([]string{"base_url", "limits.rpm", "limits.concurrency", "limits.queue",
		"retries", "price.input", "price.output", "max_output_tokens"}, f.Label())
}

// ReviewChange shows what a change would do, before it is saved.
type ReviewChange struct {
	Viewer
	Review settings.Review
	Draft  string // sealed
	Back   string
	// Tests has what was found at the changed providers.
	Tests []settings.Check
	// Recent is false if the user has to sign in again, because the change has keys.
	Recent bool
}

func (r *ReviewChange) frame() frame { return r.setup("reviewchange.html", "Review the change") }

// Savable reports whether the change can be saved.
func (r *ReviewChange) Savable() bool { return len(r.Review.Mistakes) == 0 && r.Recent }

// PlaceText returns a sentence that says where a change is kept.
func PlaceText(place, file string) string {
	switch place {
	case "file":
		return "Changes are written to " + file + ", with all comments."
	case "store":
		return "The configuration file is read-only, so changes are kept above it, in the data directory."
	}
	return "Changes are kept until the gateway ends, because it has no data directory."
}

// setup returns the frame of a page of the configuration.
func (d *Viewer) setup(template, title string) frame {
	return d.at(placeProviders, template, title).with("", "settings.css", "")
}
