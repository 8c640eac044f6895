package images

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

const (
	generations = "/images/generations"
	editing     = "/images/edits"
)

// Encode implements picture.Codec. The JSON of a client of this shape is patched. Any other request
// is written from the neutral form, and parameters that the model does not have are lost.
func (shape) Encode(ctx context.Context, r *picture.Request, model string,
	rep *dialogue.Report) (*picture.Call, error) {
	call := &picture.Call{Path: generations, Header: make(http.Header), Stream: r.Stream}
	switch {
	case r.Operation == picture.Generate:
	case r.Operation == picture.Describe, r.Operation == picture.Upscale:
		return nil, dialogue.Unsupported("model", "the provider of this model cannot "+string(r.Operation)+" pictures")
	case !familyOf(model).edits:
		return nil, dialogue.Unsupported("model", "the provider of this model cannot edit pictures")
	default:
		call.Path = editing
	}
	if r.Inbound == Name && r.Body != nil {
		body, err := patch(r, model)
		call.Body, call.Passthrough = picture.JSON(body), true
		return call, err
	}
	fields := encode(r, model, rep)
	if r.Operation == picture.Generate {
		call.Body = fields.json()
		return call, nil
	}
	var err error
	call.Body, err = fields.form(ctx, r)
	return call, err
}

// patch returns the client's JSON with the upstream's name of the model and, if the call is one of several,
// its share of n. What the gateway accepts for every model is removed where the upstream would refuse it. Everything
// else stays as the client wrote it, with members that the gateway does not know.
func patch(r *picture.Request, model string) ([]byte, error) {
	body := r.Body
	var err error
	f := familyOf(model)
	for name, foreign := range map[string]bool{
		"response_format": slices.Contains(f.refuses, "response_format"),
		"size":            gjson.GetBytes(body, "size").Str == "auto" && f.size("auto") != "",
	} {
		if !foreign || !gjson.GetBytes(body, name).Exists() {
			continue
		}
		if body, err = sjson.DeleteBytes(body, name); err != nil {
			return nil, fmt.Errorf("remove %s from the request: %w", name, err)
		}
	}
	if gjson.GetBytes(body, "model").Str != model {
		if body, err = sjson.SetBytes(body, "model", model); err != nil {
			return nil, fmt.Errorf("write the model into the request: %w", err)
		}
	}
	if n := gjson.GetBytes(body, "n"); n.Exists() && n.Type == gjson.Number && int(n.Num) != r.N {
		if body, err = sjson.SetBytes(body, "n", r.N); err != nil {
			return nil, fmt.Errorf("write n into the request: %w", err)
		}
	}
	return body, nil
}

// parameters are the fields of a request for an upstream.
type parameters []parameter

// parameter is a parameter of an upstream request, which may be JSON or a form. The same list of parameters
// becomes JSON for a generation and a form for an edit.
type parameter struct {
	name, value string
	bare        bool // written to JSON without quotes: a number, a boolean or the client's JSON
}

// word adds a text, unless it is empty.
func (p *parameters) word(name, value string) {
	if value != "" {
		*p = append(*p, parameter{name: name, value: value})
	}
}

// bare adds a value that JSON has without quotes.
func (p *parameters) bare(name, value string) {
	*p = append(*p, parameter{name, value, true})
}

// json returns the parameters as a JSON body.
func (p parameters) json() picture.Content {
	var w jsonw.Writer
	w.Object()
	for _, f := range p {
		w.KeyOf(f.name)
		if f.bare {
			w.RawString(f.value)
			continue
		}
		w.String(f.value)
	}
	w.End()
	return picture.JSON(w.Buf)
}

// form returns the parameters as a multipart form with the pictures, which are read when the form
// is sent. A mask of black and white is converted, because the vendor's masks mark the part to
// change by transparency.
func (p parameters) form(ctx context.Context, r *picture.Request) (picture.Content, error) {
	form := picture.NewForm()
	for _, f := range p {
		form.Field(f.name, f.value)
	}
	// All of the vendor's models take a single picture under the name image.
	name := "image"
	if len(r.Sources) > 1 {
		name = "image[]"
	}
	for _, f := range r.Sources {
		form.File(name, f)
	}
	if r.Mask == nil {
		return form, nil
	}
	mask := r.Mask
	if r.MaskKeeps {
		var err error
		if mask, err = toAlpha(ctx, r.Owner, r.Mask); err != nil {
			return nil, err
		}
	}
	form.File("mask", mask)
	return form, nil
}

// encode returns the parameters for a request of any shape, as far as the model has them.
func encode(r *picture.Request, model string, rep *dialogue.Report) parameters {
	f := familyOf(model)
	p := parameters{{name: "model", value: model}, {name: "prompt", value: prompt(r)}}
	if r.N > 1 {
		p.bare("n", strconv.Itoa(r.N))
	}
	size, changed := sizeFor(r, model)
	p.word("size", size)
	rep.LoseIf(changed, "size")
	p.word("quality", qualityFor(r, f))
	if f.legacy {
		// A reply with an address would have to be fetched and stored by the gateway.
		p.word("response_format", "b64_json")
		p.word("style", r.Style)
	} else {
		p.modern(r)
	}
	p.word("user", r.User)
	if r.Inbound == Name {
		for _, extra := range r.Extra {
			p.bare(extra.Name, extra.Text()) // only requests that were sent as forms reach this line
		}
		return p
	}
	lose(r, f, rep)
	return p
}

// modern adds the parameters that only gen-image models have.
func (p *parameters) modern(r *picture.Request) {
	p.word("output_format", r.OutputFormat)
	if r.Compression != nil {
		p.bare("output_compression", strconv.Itoa(*r.Compression))
	}
	p.word("background", r.Background)
	p.word("moderation", r.Moderation)
	if r.Operation != picture.Generate {
		p.word("input_fidelity", r.Fidelity)
	}
	if r.Stream {
		p.bare("stream", "true")
		if r.Partials > 0 {
			p.bare("partial_images", strconv.Itoa(r.Partials))
		}
	}
}

// prompt returns the prompt with the parameters that the shape can express only in words.
func prompt(r *picture.Request) string {
	text := r.Prompt
	if r.Operation == picture.ReplaceBackground {
		text = "Keep the subject as it is and replace the background: " + text
	}
	if r.Operation == picture.Reframe {
		text = "Extend the picture beyond its edges to fill the frame. " + text
	}
	if r.NegativePrompt != "" {
		text += "\nAvoid: " + r.NegativePrompt
	}
	return text
}

// speeds maps the image vendor's rendering speeds to qualities of this shape.
var speeds = map[string]string{"TURBO": "low", "DEFAULT": "medium", "QUALITY": "high"}

// qualityFor returns the quality, which may follow from a rendering speed of the image vendor.
func qualityFor(r *picture.Request, f *family) string {
	if r.Quality != "" {
		return r.Quality
	}
	if f.legacy {
		return ""
	}
	return speeds[r.RenderingSpeed]
}

// lose records the parameters that were left out for a model of f.
func lose(r *picture.Request, f *family, rep *dialogue.Report) {
	for _, l := range []struct {
		name string
		lost bool
	}{
		{"seed", r.Seed != nil}, {"style_type", r.StyleType != "" && r.StyleType != "AUTO"},
		{"magic_prompt", r.MagicPrompt == "OFF"}, {"image_weight", r.ImageWeight != nil},
		{"style_reference_images", len(r.Styles) > 0}, {"negative_prompt:prompt", r.NegativePrompt != ""},
		{"rendering_speed", f.legacy && r.RenderingSpeed != "" && r.RenderingSpeed != "DEFAULT"},
	} {
		if l.lost {
			rep.Lose(l.name)
		}
	}
	for _, f := range r.Extra {
		rep.Lose(f.Name)
	}
	for _, a := range r.Others {
		rep.Lose(a.Name)
	}
}
