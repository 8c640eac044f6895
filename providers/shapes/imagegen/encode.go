package imagegen

import (
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// encoder encodes one request for the vendor.
type encoder struct {
	r     *picture.Request
	rep   *dialogue.Report
	model string
	v3    bool
	route *Route

	// The request's values, after convert has changed those that the vendor does not take.
	operation picture.Operation
	size      picture.Size
	aspect    picture.Aspect
	style     string
	speed     string
	sources   []*picture.File
	styles    []*picture.File
	mask      *picture.File
}

// own reports whether the client's request is of this shape and generation.
func (e *encoder) own() bool {
	return e.r.Inbound == Name && (e.r.Version == "V3") == e.v3
}

// passthrough reports whether the client's JSON can be sent after patch. It must be of this shape and generation, and
// the route must take JSON.
func (e *encoder) passthrough() bool { return e.own() && e.r.Body != nil && e.route.Encoding&JSON != 0 }

// patch replaces the values in the client's JSON that the gateway decides: the model, the number of
// images in one call, and words that the vendor spells differently. Everything else stays the
// same, byte for byte.
func (e *encoder) patch() ([]byte, error) {
	at := ""
	if e.route.document != "" {
		at = e.route.document + "."
	}
	type edit struct{ name, want, absent string }
	edits := []edit{{"num_images", strconv.Itoa(e.r.N), "1"}}
	if !e.v3 {
		edits = append(edits, edit{"model", quoted(e.model), quoted(defaultModel)},
			edit{"resolution", quoted(given(e.size, resolutionV2)), quoted("")},
			edit{"aspect_ratio", quoted(given(e.aspect, formatAspectV2)), quoted("")})
	}
	body, view := e.r.Body, fields.View(e.r.Body)
	for _, d := range edits {
		have := view.Get(at + d.name)
		if have.Type == gjson.Null && d.want == d.absent || have.Raw == d.want {
			continue
		}
		var err error
		if body, err = sjson.SetRawBytes(body, at+d.name, []byte(d.want)); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// quoted returns s as JSON.
func quoted(s string) string { return string(gjson.AppendJSONString(nil, s)) }

// member is a field for the vendor, with either a text or JSON.
type member struct {
	name string
	text string
	json []byte
}

// members returns the fields without files, in the vendor's order.
// They are made for both encodings of a body, so a field that is added here is sent in both.
func (e *encoder) members() []member {
	r := e.r
	var out []member
	word := func(name, value string) {
		if value != "" {
			out = append(out, member{name: name, text: value})
		}
	}
	number := func(name string, value *int) {
		if value != nil {
			out = append(out, member{name: name, json: strconv.AppendInt(nil, int64(*value), 10)})
		}
	}
	word("prompt", r.Prompt)
	if e.v3 {
		word("aspect_ratio", given(e.aspect, formatAspectV3))
		word("resolution", given(e.size, picture.Size.String))
		word("rendering_speed", e.speed)
		word("magic_prompt", r.MagicPrompt)
	} else {
		word("aspect_ratio", given(e.aspect, formatAspectV2))
		word("resolution", given(e.size, resolutionV2))
		if e.route.named("model") {
			word("model", e.model)
		}
		word("magic_prompt_option", r.MagicPrompt)
	}
	word("negative_prompt", r.NegativePrompt)
	word("style_type", e.style)
	number("image_weight", r.ImageWeight)
	number("resemblance", r.Resemblance)
	number("detail", r.Detail)
	if e.route.named("num_images") {
		number("num_images", &r.N)
	}
	if r.Seed != nil {
		out = append(out, member{name: "seed", json: strconv.AppendInt(nil, *r.Seed, 10)})
	}
	if e.own() {
		for i := range r.Extra {
			x := &r.Extra[i]
			if len(x.Value) > 0 && x.Value[0] == '"' {
				out = append(out, member{name: x.Name, text: x.Text()})
				continue
			}
			out = append(out, member{name: x.Name, json: x.Value})
		}
	}
	return out
}

// given returns the spelling of a value, or "" for the zero value, which means that it was not
// given.
func given[T comparable](value T, spell func(T) string) string {
	var none T
	if value == none {
		return ""
	}
	return spell(value)
}

// named reports whether the route has a field.
func (r *Route) named(field string) bool { return !r.foreign(field) }

// json returns the request as a JSON body, inside the document if the route has one.
func (e *encoder) json() []byte {
	if e.route.document == "" {
		return document(e.members())
	}
	w := jsonw.Writer{}
	w.Object().Key(e.route.document).Raw(document(e.members())).End()
	return w.Buf
}

// document returns the members as a JSON object.
func document(members []member) []byte {
	w := jsonw.Writer{Buf: make([]byte, 0, 512)}
	w.Object()
	for i := range members {
		m := &members[i]
		w.KeyOf(m.name)
		if m.json != nil {
			w.Raw(m.json)
		} else {
			w.String(m.text)
		}
	}
	w.End()
	return w.Buf
}

// form returns the request as a form. The files are not copied; they are read whenever the form is
// sent.
func (e *encoder) form() *picture.Form {
	f := picture.NewForm()
	if e.route.document != "" {
		f.Field(e.route.document, string(document(e.members())))
	} else {
		for _, m := range e.members() {
			text := m.text
			if m.json != nil {
				text = string(m.json)
			}
			f.Field(m.name, text)
		}
	}
	if e.route.image != "" && len(e.sources) > 0 {
		f.File(e.route.image, e.sources[0])
	}
	if e.mask != nil {
		f.File("mask", e.mask)
	}
	for _, style := range e.styles {
		f.File("style_reference_images", style)
	}
	if e.own() {
		for _, other := range e.r.Others {
			f.File(other.Name, other.File)
		}
	}
	return f
}
