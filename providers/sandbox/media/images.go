package media

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/images"
)

func (s *server) makeImages(op picture.Operation) handler {
	return func(w http.ResponseWriter, r *http.Request, in *input) error {
		req, err := imagesRequest(in, op)
		if err != nil {
			return err
		}
		out := &imagesReply{server: s, w: w, r: r, req: req}
		err = s.model.Picture(r.Context(), req, r.Header, out.send)
		if failure := new(dialogue.Error); out.began && errors.As(err, &failure) {
			return out.sendEvent("error", imagesError(failure))
		}
		return err
	}
}

// imagesRequest reads the fields of the routes (wire/images.md 1 and 4).
func imagesRequest(in *input, op picture.Operation) (*picture.Request, error) {
	v := in.values
	legacy := strings.HasPrefix(v["model"], "dall-e") || strings.HasPrefix(v["model"], "legacy-image")
	req := &picture.Request{
		Inbound:      images.Name,
		Operation:    op,
		Model:        v["model"],
		Prompt:       v["prompt"],
		Quality:      v["quality"],
		OutputFormat: v["output_format"],
		Background:   v["background"],
		Style:        v["style"],
		Stream:       v["stream"] == "true",
		Inline:       v["response_format"] == "b64_json" || v["response_format"] == "" && !legacy,
	}
	if req.Prompt == "" {
		return nil, dialogue.Missing("prompt")
	}
	if size := v["size"]; size != "" && size != "auto" {
		var ok bool
		if req.Size, ok = picture.ParseSize(size); !ok {
			return nil, dialogue.Invalid("size", "must be WIDTHxHEIGHT or auto")
		}
	}
	n, _, err := in.number("n", 1, 10)
	partials, _, err2 := in.number("partial_images", 0, 3)
	compression, err3 := in.optional("output_compression", 0, 100)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	req.N, req.Partials, req.Compression = max(int(n), 1), int(partials), compression
	if op != picture.Edit {
		return req, nil
	}
	for _, image := range in.body.Get("images").Array() {
		if err := in.addData("image", image.Get("image_url").String()); err != nil {
			return nil, err
		}
	}
	if url := v["mask[image_url]"]; url != "" {
		if err := in.addData("mask", url); err != nil {
			return nil, err
		}
	}
	if req.Sources = in.files["image"]; len(req.Sources) == 0 {
		return nil, dialogue.Missing("image")
	}
	req.Mask = in.mask()
	return req, nil
}

func (in *input) mask() *picture.File {
	if masks := in.files["mask"]; len(masks) > 0 {
		return masks[0]
	}
	return nil
}

// imagesReply writes a reply, whole or as events (wire/images.md 2 and 3).
type imagesReply struct {
	*server
	w     http.ResponseWriter
	r     *http.Request
	req   *picture.Request
	began bool // an event has been written
}

func (j *imagesReply) send(ev *picture.Event) error {
	name := "image_generation"
	if j.req.Operation == picture.Edit {
		name = "image_edit"
	}
	if p := ev.Partial; p != nil {
		name += ".partial_image"
		size := picture.Size{Width: p.Image.Width, Height: p.Image.Height}
		v := j.describe(&picture.Reply{Size: size.String(), OutputFormat: j.req.OutputFormat})
		v["type"], v["b64_json"], v["created_at"] = name, p.Image.Data, j.model.Env.Now().Unix()
		v["partial_image_index"] = p.Index
		return j.sendEvent(name, v)
	}
	reply := ev.Done
	if j.req.Stream {
		for i := range reply.Images {
			v := j.describe(reply)
			v["type"], v["b64_json"], v["created_at"] = name+".completed", content(
				&reply.Images[i],
			), reply.Created.Unix()
			v["usage"] = imagesUsage(reply.Usage)
			if err := j.sendEvent(name+".completed", v); err != nil {
				return err
			}
		}
		return nil
	}
	v := object{}
	if j.req.Inline {
		v = j.describe(reply)
		v["usage"] = imagesUsage(reply.Usage)
	}
	data := []object{}
	for i := range reply.Images {
		img := &reply.Images[i]
		item := object{}
		if j.req.Inline {
			item["b64_json"] = content(img)
		} else {
			item["url"] = j.pictures.put(j.r, img)
		}
		if img.Prompt != "" {
			item["revised_prompt"] = img.Prompt
		}
		data = append(data, item)
	}
	v["created"], v["data"] = reply.Created.Unix(), data
	return send(j.w, http.StatusOK, v)
}

// content returns the bytes of a picture, which encoding/json writes in base64, also if it was withheld.
func content(img *picture.Image) []byte { return append([]byte{}, img.Data...) }

// describe returns the members that say how pictures were made.
func (j *imagesReply) describe(reply *picture.Reply) object {
	or := func(s, standard string) string {
		if s == "" || s == "auto" {
			return standard
		}
		return s
	}
	return object{"background": or(j.req.Background, "opaque"), "output_format": or(reply.OutputFormat, "png"),
		"size": reply.Size, "quality": or(j.req.Quality, "medium")}
}

func imagesUsage(u *picture.Usage) object {
	return object{"total_tokens": u.Input() + u.Output(), "input_tokens": u.Input(), "output_tokens": u.Output(),
		"input_tokens_details":  object{"text_tokens": u.InputText, "image_tokens": u.InputImage},
		"output_tokens_details": object{"text_tokens": u.OutputText, "image_tokens": u.OutputImage}}
}

func (j *imagesReply) sendEvent(name string, v any) error {
	j.began = true
	j.w.Header().Set("Content-Type", "text/event-stream")
	j.w.Header().Set("Cache-Control", "no-cache")
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := j.w.Write([]byte("event: " + name + "\ndata: " + string(data) + "\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(j.w).Flush()
}

// vendorOperations maps the last elements of the image vendor's paths.
var vendorOperations = map[string]picture.Operation{
	"generate": picture.Generate, "edit": picture.Edit, "remix": picture.Remix, "reframe": picture.Reframe,
	"replace-background": picture.ReplaceBackground, "describe": picture.Describe, "upscale": picture.Upscale,
}

// makeVendorImages answers one of the image vendor's routes of a version.
func (s *server) makeVendorImages(op picture.Operation, version string) handler {
	return func(w http.ResponseWriter, r *http.Request, in *input) error {
		req, err := vendorRequest(in, op)
		if err != nil {
			return err
		}
		req.Version = version
		return s.model.Picture(r.Context(), req, r.Header, func(ev *picture.Event) error {
			return send(w, http.StatusOK, s.vendorReply(r, req, ev.Done))
		})
	}
}

// vendorRequest reads the fields of the routes (wire/imagegen.md 1 and 5). The older routes have their fields in an
// object, which forms send as JSON.
func vendorRequest(in *input, op picture.Operation) (*picture.Request, error) {
	if text := in.values["image_request"]; text != "" {
		if !fields.ValidLenientString(text) || !gjson.Parse(text).IsObject() {
			return nil, dialogue.Invalid("image_request", "must be a JSON object")
		}
		gjson.Parse(text).ForEach(func(name, v gjson.Result) bool {
			in.addValue(name.String(), v)
			return true
		})
	}
	for name, v := range in.values {
		if member, ok := strings.CutPrefix(name, "image_request["); ok {
			in.values[strings.TrimSuffix(member, "]")] = v
		}
	}
	v := in.values
	req := &picture.Request{Inbound: imagegen.Name, Operation: op, Model: v["model"], Prompt: v["prompt"],
		NegativePrompt: v["negative_prompt"], StyleType: v["style_type"], MaskKeeps: true,
		MagicPrompt: in.first("magic_prompt_option", "magic_prompt"),
		Sources:     append(in.files["image_file"], in.files["image"]...), Mask: in.mask()}
	resolution, aspect, ok := v["resolution"], v["aspect_ratio"], true
	if resolution != "" { // RESOLUTION_1024_768 or 1024x768
		req.Size, ok = picture.ParseSize(strings.Replace(strings.TrimPrefix(resolution, "RESOLUTION_"), "_", "x", 1))
	}
	if !ok || op == picture.Reframe && resolution == "" {
		return nil, dialogue.Invalid("resolution", "must be WIDTHxHEIGHT")
	}
	if aspect != "" { // ASPECT_16_9 or 16x9
		req.Aspect, ok = picture.ParseAspect(strings.Replace(strings.TrimPrefix(aspect, "ASPECT_"), "_", "x", 1))
	}
	if !ok || resolution != "" && aspect != "" {
		return nil, dialogue.Invalid("aspect_ratio", "must be a ratio, without a resolution beside it")
	}
	n, _, err := in.number("num_images", 1, 8)
	seed, given, err2 := in.number("seed", 0, 1<<31-1)
	weight, err3 := in.optional("image_weight", 1, 100)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	req.N, req.ImageWeight = max(int(n), 1), weight
	if given {
		req.Seed = &seed
	}
	switch {
	case op != picture.Generate && len(req.Sources) == 0:
		return nil, dialogue.Missing("image_file")
	case op == picture.Edit && req.Mask == nil:
		return nil, dialogue.Missing("mask")
	case op != picture.Describe && op != picture.Upscale && op != picture.Reframe && req.Prompt == "":
		return nil, dialogue.Missing("prompt")
	}
	return req, nil
}

func (s *server) vendorReply(r *http.Request, req *picture.Request, reply *picture.Reply) object {
	if req.Operation == picture.Describe {
		return object{"descriptions": []object{{"text": reply.Descriptions[0]}}}
	}
	data := []object{}
	for i := range reply.Images {
		img := &reply.Images[i]
		item := object{"prompt": img.Prompt, "resolution": picture.Size{Width: img.Width, Height: img.Height}.String(),
			"is_image_safe": !img.Unsafe, "seed": *img.Seed, "url": s.pictures.put(r, img)}
		if img.Upscaled != (picture.Size{}) {
			item["upscaled_resolution"] = img.Upscaled.String()
		}
		if !strings.HasPrefix(req.Model, "V_1") {
			item["style_type"] = img.StyleType
			if img.StyleType == "" || img.StyleType == "AUTO" {
				item["style_type"] = "GENERAL"
			}
		}
		data = append(data, item)
	}
	return object{"created": reply.Created.UTC().Format("2006-01-02T15:04:05.000000-07:00"), "data": data}
}
