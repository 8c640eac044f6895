package media

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// imagegenShape is what requests of the image vendor's routes come in.
const imagegenShape dialogue.Shape = "imagegen"

// vendorOperations are the last elements of the vendor's paths.
var vendorOperations = map[string]picture.Operation{
	"generate": picture.Generate, "edit": picture.Edit, "remix": picture.Remix, "reframe": picture.Reframe,
	"replace-background": picture.ReplaceBackground, "describe": picture.Describe, "upscale": picture.Upscale,
}

// vendorPictures answers one of the vendor's routes, of its third generation or
// of those before.
func (s *server) vendorPictures(name string, third bool) handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		in, err := readInput(w, r)
		defer in.close()
		if err != nil {
			return err
		}
		req, err := vendorRequest(in, vendorOperations[name], third)
		if err != nil {
			return err
		}
		return s.model.Picture(r.Context(), req, r.Header, func(ev *picture.Event) error {
			return send(w, http.StatusOK, s.vendorReply(r, req, ev.Done))
		})
	}
}

// vendorRequest reads what the routes know (wire/imagegen.md 1 and 5). The older
// ones have their fields in an object, which forms send as JSON.
func vendorRequest(in *input, op picture.Operation, third bool) (*picture.Request, error) {
	if text := in.values["image_request"]; text != "" {
		object := gjson.Parse(text)
		if !fields.ValidLenientString(text) || !object.IsObject() {
			return nil, dialogue.Invalid("image_request", "must be a JSON object")
		}
		in.addObject("image_request", object, 0)
	}
	get := func(names ...string) string {
		for _, name := range names {
			if v := in.first("image_request["+name+"]", name); v != "" {
				in.values[name] = v
				return v
			}
		}
		return ""
	}
	req := &picture.Request{Inbound: imagegenShape, Version: "V2", Operation: op, Model: get("model"), Prompt: get("prompt"),
		NegativePrompt: get("negative_prompt"), StyleType: get("style_type"), RenderingSpeed: get("rendering_speed"),
		MagicPrompt: get("magic_prompt_option", "magic_prompt"), MaskKeeps: true}
	if third {
		req.Version = "V3"
	}
	for _, name := range []string{"num_images", "seed", "image_weight", "resemblance", "detail"} {
		get(name)
	}
	if err := vendorSize(req, get("resolution"), get("aspect_ratio")); err != nil {
		return nil, err
	}
	if err := vendorNumbers(in, req); err != nil {
		return nil, err
	}
	return req, vendorFiles(in, req)
}

// vendorSize reads RESOLUTION_1024_768 or 1024x768, and ASPECT_16_9 or 16x9.
func vendorSize(req *picture.Request, resolution, aspect string) error {
	ok := true
	if resolution != "" {
		req.Size, ok = picture.ParseSize(strings.Replace(strings.TrimPrefix(resolution, "RESOLUTION_"), "_", "x", 1))
	}
	if !ok || req.Operation == picture.Reframe && resolution == "" {
		return dialogue.Invalid("resolution", "must be WIDTHxHEIGHT")
	}
	if aspect != "" {
		req.Aspect, ok = picture.ParseAspect(strings.Replace(strings.TrimPrefix(aspect, "ASPECT_"), "_", "x", 1))
	}
	if !ok || resolution != "" && aspect != "" {
		return dialogue.Invalid("aspect_ratio", "must be a ratio, without a resolution beside it")
	}
	return nil
}

func vendorNumbers(in *input, req *picture.Request) (err error) {
	n, _, err := in.number("num_images", 1, 8)
	if err != nil {
		return err
	}
	req.N = max(int(n), 1)
	seed, given, err := in.number("seed", 0, 1<<31-1)
	if err != nil {
		return err
	}
	if given {
		req.Seed = &seed
	}
	req.ImageWeight, err = in.optional("image_weight", 1, 100)
	return err
}

func vendorFiles(in *input, req *picture.Request) error {
	req.Sources = append(in.files["image_file"], in.files["image"]...)
	if masks := in.files["mask"]; len(masks) > 0 {
		req.Mask = masks[0]
	}
	switch op := req.Operation; {
	case op != picture.Generate && len(req.Sources) == 0:
		return dialogue.Missing("image_file")
	case op == picture.Edit && req.Mask == nil:
		return dialogue.Missing("mask")
	case op != picture.Describe && op != picture.Upscale && op != picture.Reframe && req.Prompt == "":
		return dialogue.Missing("prompt")
	}
	return nil
}

// createdForm is how the vendor writes times.
const createdForm = "2006-01-02T15:04:05.000000-07:00"

func (s *server) vendorReply(r *http.Request, req *picture.Request, reply *picture.Reply) []byte {
	w := jsonw.Writer{}
	w.Object()
	if req.Operation == picture.Describe {
		w.Key("descriptions").Array()
		for _, text := range reply.Descriptions {
			w.Object().Key("text").String(text).End()
		}
		w.End().End()
		return w.Buf
	}
	w.Key("created").String(reply.Created.UTC().Format(createdForm)).Key("data").Array()
	for i := range reply.Images {
		img := &reply.Images[i]
		w.Object().Key("prompt").String(img.Prompt).Key("resolution").String(picture.Size{Width: img.Width, Height: img.Height}.String()).
			Key("is_image_safe").Bool(!img.Unsafe).Key("seed").Int(*img.Seed)
		w.Key("url").StringOrNull(s.shelf.put(r, img))
		if img.Upscaled != (picture.Size{}) {
			w.Key("upscaled_resolution").String(img.Upscaled.String())
		}
		if !strings.HasPrefix(req.Model, "V_1") {
			style := img.StyleType
			if style == "" || style == "AUTO" {
				style = "GENERAL"
			}
			w.Key("style_type").String(style)
		}
		w.End()
	}
	w.End().End()
	return w.Buf
}
