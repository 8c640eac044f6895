package imagegen

import (
	"net/http"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// moderation has the vendor's form of the error for a prompt or a picture that it refused as unsafe.
var moderation = &dialogue.Moderation{Status: http.StatusUnprocessableEntity, Type: dialogue.TypeInvalidRequest,
	Code: "content_policy_violation"}

// Decode returns the neutral form of an Input for which Check found no error. The Request has the
// files from then on.
// A field that is not known, or is not one of the route, goes to Extra as it was sent, so that a
// client of this shape can use what the vendor has added since.
func (r *Route) Decode(in *Input) *picture.Request {
	req := &picture.Request{
		Inbound:       Name,
		Operation:     r.Operation,
		Model:         r.model(in),
		Version:       r.version(in),
		N:             1,
		MaskKeeps:     true,
		ShowsWithheld: true,
		Refusal:       moderation,
		Body:          in.body,
	}
	for i := range in.fields {
		f := &in.fields[i]
		if take, ok := takers[f.name]; !ok || r.foreign(f.name) || !take(req, f) {
			req.Extra = append(req.Extra, picture.Field{Name: f.name, Value: f.raw()})
		}
	}
	for _, f := range in.files {
		switch f.Name {
		case r.image:
			req.Sources = append(req.Sources, f.File)
		case "mask":
			req.Mask = f.File
		case "style_reference_images":
			req.Styles = append(req.Styles, f.File)
		default:
			req.Others = append(req.Others, f)
		}
	}
	return req
}

// foreign reports whether the route does not have a field. Check has not checked its value.
func (r *Route) foreign(name string) bool {
	for i := range r.rules {
		if r.rules[i].name == name {
			return false
		}
	}
	return true
}

// model returns the name to look up in the catalogue. Requests to describe and upscale name no
// model and are served by any generation.
func (r *Route) model(in *Input) string {
	switch {
	case r.V3,
		in.word("describe_model_version") == "V_3",
		r.Operation == picture.Describe && !in.has("describe_model_version"):
		return modelV3
	case in.has("model"):
		return in.word("model")
	}
	return defaultModel
}

// version returns the generation whose form the request has: "V1", "V2" or "V3".
func (r *Route) version(in *Input) string {
	switch {
	case r.V3:
		return "V3"
	case strings.HasPrefix(in.word("model"), "V_1"):
		return "V1"
	}
	return "V2"
}

// takers copies fields to the neutral form. Each function reports whether it could.
var takers = map[string]func(req *picture.Request, f *field) bool{
	"model":               func(*picture.Request, *field) bool { return true }, // see Route.model
	"prompt":              word(func(r *picture.Request) *string { return &r.Prompt }),
	"negative_prompt":     word(func(r *picture.Request) *string { return &r.NegativePrompt }),
	"magic_prompt_option": word(func(r *picture.Request) *string { return &r.MagicPrompt }),
	"magic_prompt":        word(func(r *picture.Request) *string { return &r.MagicPrompt }),
	"style_type":          word(func(r *picture.Request) *string { return &r.StyleType }),
	"rendering_speed":     word(func(r *picture.Request) *string { return &r.RenderingSpeed }),
	"image_weight":        number(func(r *picture.Request) **int { return &r.ImageWeight }),
	"resemblance":         number(func(r *picture.Request) **int { return &r.Resemblance }),
	"detail":              number(func(r *picture.Request) **int { return &r.Detail }),
	"num_images": func(r *picture.Request, f *field) bool {
		n, ok := f.whole()
		r.N = int(n)
		return ok
	},
	"seed": func(r *picture.Request, f *field) bool {
		n, ok := f.whole()
		r.Seed = &n
		return ok
	},
	"resolution": func(r *picture.Request, f *field) (ok bool) {
		r.Size, ok = resolution(f.value.Str)
		return ok
	},
	"aspect_ratio": func(r *picture.Request, f *field) (ok bool) {
		read := aspectV2
		if r.Version == "V3" {
			read = aspectV3
		}
		r.Aspect, ok = read(f.value.Str)
		return ok
	},
}

// word returns a function that copies a text to a place of the request.
func word(place func(*picture.Request) *string) func(*picture.Request, *field) bool {
	return func(r *picture.Request, f *field) bool {
		*place(r) = f.value.Str
		return true
	}
}

// number returns a function that copies a whole number to a place of the request.
func number(place func(*picture.Request) **int) func(*picture.Request, *field) bool {
	return func(r *picture.Request, f *field) bool {
		n, ok := f.whole()
		*place(r) = new(int(n))
		return ok
	}
}
