package images

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/modelname"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
)

// Shape is the upstream side of the shape.
var Shape = &picture.Shape{Name: Name, MakesPictures: true, Codec: shape{}}

type shape struct{}

// Descriptor holds the facts about the shape.
var Descriptor = shapes.Descriptor{
	Name: Name, Scope: "images",
	Telemetry: shapes.Telemetry{Operation: "image_generation", Vendor: chunks.Vendor},
	Probe:     chunks.Probe,
}

// MaxImages implements picture.Codec.
func (shape) MaxImages(_ *picture.Request, model string) int { return familyOf(model).images }

// Authorize implements picture.Codec.
func (shape) Authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// DecodeError implements picture.Codec.
func (shape) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	e := chunks.DecodeError(status, header, body)
	if fields.ValidLenient(body) {
		e.ModerationDetails = moderation(gjson.GetBytes(body, "error.moderation_details"))
	}
	return e
}

// moderation returns a new object with the stage and the categories of an upstream's refusal, so
// that nothing else of it reaches the client.
func moderation(v gjson.Result) []byte {
	if !v.IsObject() {
		return nil
	}
	var w jsonw.Writer
	w.Object()
	if stage := v.Get("moderation_stage").Str; word(stage) {
		w.Key("moderation_stage").String(stage)
	}
	w.Key("categories").Array()
	for i, c := range v.Get("categories").Array() {
		if i < maxCategories && word(c.Str) {
			w.String(c.Str)
		}
	}
	w.End().End()
	return w.Buf
}

// Bounds of the categories of moderation that a client sees, in number and in bytes of each.
const (
	maxCategories = 32
	maxWord       = 64
)

// word reports whether s is a name such as sexual/minors or self-harm.
func word(s string) bool {
	return s != "" && len(s) <= maxWord &&
		strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-/") == ""
}

// nearest returns the size whose ratio is nearest to want.
func nearest(sizes []picture.Size, want float64) picture.Size {
	best := sizes[0]
	for _, s := range sizes[1:] {
		if distance(s, want) < distance(best, want) {
			best = s
		}
	}
	return best
}

// distance returns the factor, at least 1, between the ratio of s and another ratio.
func distance(s picture.Size, ratio float64) float64 {
	d := float64(s.Width) / float64(s.Height) / ratio
	return max(d, 1/d)
}

// sizesOfModels are the sizes to choose from for a request of another shape, by the beginning of
// the model's name.
var sizesOfModels = []struct {
	prefix string
	sizes  []picture.Size
}{
	{"legacy-image-2", []picture.Size{{Width: 1024, Height: 1024}}},
	{
		"legacy-image-3",
		[]picture.Size{{Width: 1024, Height: 1024}, {Width: 1792, Height: 1024}, {Width: 1024, Height: 1792}},
	},
	{"", []picture.Size{{Width: 1024, Height: 1024}, {Width: 1536, Height: 1024}, {Width: 1024, Height: 1536}}},
}

// sizeFor returns the size for a request to model. changed is true if the model does not make the
// client's size or ratio and gets the nearest one that it makes.
func sizeFor(r *picture.Request, model string) (size string, changed bool) {
	var ratio float64
	switch {
	case r.Size != (picture.Size{}):
		if familyOf(model).size(r.Size.String()) == "" {
			return r.Size.String(), false
		}
		ratio = float64(r.Size.Width) / float64(r.Size.Height)
	case r.Aspect != (picture.Aspect{}):
		ratio = float64(r.Aspect.Width) / float64(r.Aspect.Height)
	default:
		return "", false
	}
	name := modelname.Public(model)
	for _, m := range sizesOfModels {
		if strings.HasPrefix(name, m.prefix) {
			s := nearest(m.sizes, ratio)
			return s.String(), r.Size != (picture.Size{}) || distance(s, ratio) > 1
		}
	}
	return "", true
}
