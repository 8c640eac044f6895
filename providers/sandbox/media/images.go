package media

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// imagesShape is what requests of the images routes come in.
const imagesShape dialogue.Shape = "images"

func (s *server) generateImages(w http.ResponseWriter, r *http.Request) error {
	return s.images(w, r, picture.Generate)
}

func (s *server) editImages(w http.ResponseWriter, r *http.Request) error {
	return s.images(w, r, picture.Edit)
}

func (s *server) images(w http.ResponseWriter, r *http.Request, op picture.Operation) error {
	in, err := readInput(w, r)
	defer in.close()
	if err != nil {
		return err
	}
	req, err := imagesRequest(in, op)
	if err != nil {
		return err
	}
	j := &imagesReply{server: s, w: w, r: r, req: req}
	err = s.model.Picture(r.Context(), req, r.Header, j.event)
	if failure, ok := err.(*dialogue.Error); ok && j.began {
		return j.sse("error", plain(failure))
	}
	return err
}

// imagesRequest reads what the routes know (wire/images.md 1 and 4).
func imagesRequest(in *input, op picture.Operation) (*picture.Request, error) {
	v := in.values
	req := &picture.Request{Inbound: imagesShape, Operation: op, Model: v["model"], Prompt: v["prompt"], Quality: v["quality"],
		OutputFormat: v["output_format"], Background: v["background"], Style: v["style"], Moderation: v["moderation"],
		Stream: v["stream"] == "true", Inline: v["response_format"] != "url"}
	if req.Prompt == "" {
		return nil, dialogue.Missing("prompt")
	}
	legacy := strings.HasPrefix(req.Model, "dall-e") || strings.HasPrefix(req.Model, "legacy-image")
	if legacy && v["response_format"] == "" {
		req.Inline = false
	}
	if size := v["size"]; size != "" && size != "auto" {
		var ok bool
		if req.Size, ok = picture.ParseSize(size); !ok {
			return nil, dialogue.Invalid("size", "must be WIDTHxHEIGHT or auto")
		}
	}
	n, _, err := in.number("n", 1, 10)
	if err != nil {
		return nil, err
	}
	req.N = max(int(n), 1)
	partials, _, err := in.number("partial_images", 0, 3)
	if err != nil {
		return nil, err
	}
	req.Partials = int(partials)
	if req.Compression, err = in.optional("output_compression", 0, 100); err != nil {
		return nil, err
	}
	return req, imagesFiles(in, req)
}

func imagesFiles(in *input, req *picture.Request) error {
	if req.Operation != picture.Edit {
		return nil
	}
	for _, v := range gjson.Parse(in.values["images"]).Array() {
		if err := in.addData("image", v.Get("image_url").String()); err != nil {
			return err
		}
	}
	if url := in.values["mask[image_url]"]; url != "" {
		if err := in.addData("mask", url); err != nil {
			return err
		}
	}
	if req.Sources = in.files["image"]; len(req.Sources) == 0 {
		return dialogue.Missing("image")
	}
	if masks := in.files["mask"]; len(masks) > 0 {
		req.Mask = masks[0]
	}
	return nil
}

// imagesReply writes a reply, whole or as events (wire/images.md 2 and 3).
type imagesReply struct {
	*server
	w     http.ResponseWriter
	r     *http.Request
	req   *picture.Request
	began bool
}

func (j *imagesReply) event(ev *picture.Event) error {
	kind := "image_generation"
	if j.req.Operation == picture.Edit {
		kind = "image_edit"
	}
	switch {
	case ev.Partial != nil:
		like := &picture.Reply{Created: j.model.Env.Now(), Background: j.req.Background, OutputFormat: j.req.OutputFormat, Quality: j.req.Quality,
			Size: picture.Size{Width: ev.Partial.Image.Width, Height: ev.Partial.Image.Height}.String()}
		return j.shown(kind+".partial_image", like, &ev.Partial.Image, func(w *jsonw.Writer) { w.Key("partial_image_index").Int(int64(ev.Partial.Index)) })
	case j.req.Stream:
		for i := range ev.Done.Images {
			err := j.shown(kind+".completed", ev.Done, &ev.Done.Images[i], func(w *jsonw.Writer) { imagesUsage(w, ev.Done.Usage) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	return send(j.w, http.StatusOK, j.whole(ev.Done))
}

func (j *imagesReply) whole(reply *picture.Reply) []byte {
	w := jsonw.Writer{}
	w.Object().Key("created").Int(reply.Created.Unix())
	if j.req.Inline {
		about(&w, reply)
	}
	w.Key("data").Array()
	for i := range reply.Images {
		img := &reply.Images[i]
		w.Object()
		if j.req.Inline {
			base64Of(&w, img)
		} else {
			w.Key("url").String(j.shelf.put(j.r, img))
		}
		if img.Prompt != "" {
			w.Key("revised_prompt").String(img.Prompt)
		}
		w.End()
	}
	w.End()
	if j.req.Inline {
		imagesUsage(&w, reply.Usage)
	}
	w.End()
	return w.Buf
}

// shown is one event with one picture in it.
func (j *imagesReply) shown(name string, reply *picture.Reply, img *picture.Image, more func(*jsonw.Writer)) error {
	w := jsonw.Writer{}
	w.Object().Key("type").String(name)
	base64Of(&w, img)
	w.Key("created_at").Int(reply.Created.Unix())
	about(&w, reply)
	more(&w)
	w.End()
	return j.sse(name, w.Buf)
}

func (j *imagesReply) sse(name string, data []byte) error {
	if !j.began {
		j.began = true
		j.w.Header().Set("Content-Type", "text/event-stream")
		j.w.Header().Set("Cache-Control", "no-cache")
	}
	for _, piece := range [][]byte{[]byte("event: " + name + "\ndata: "), data, []byte("\n\n")} {
		if _, err := j.w.Write(piece); err != nil {
			return gone(err)
		}
	}
	return gone(http.NewResponseController(j.w).Flush())
}

// about is what a reply says of its pictures.
func about(w *jsonw.Writer, reply *picture.Reply) {
	or := func(s, standard string) string {
		if s == "" || s == "auto" {
			return standard
		}
		return s
	}
	w.Key("background").String(or(reply.Background, "opaque")).Key("output_format").String(or(reply.OutputFormat, "png")).
		Key("size").String(reply.Size).Key("quality").String(or(reply.Quality, "medium"))
}

func base64Of(w *jsonw.Writer, img *picture.Image) {
	w.Key("b64_json").Raw(append(img.AppendBase64([]byte{'"'}), '"'))
}

func imagesUsage(w *jsonw.Writer, u *picture.Usage) {
	if u == nil {
		return
	}
	w.Key("usage").Object().Key("total_tokens").Int(u.Input() + u.Output()).Key("input_tokens").Int(u.Input()).Key("output_tokens").Int(u.Output()).
		Key("input_tokens_details").Object().Key("text_tokens").Int(u.InputText).Key("image_tokens").Int(u.InputImage).End().
		Key("output_tokens_details").Object().Key("text_tokens").Int(u.OutputText).Key("image_tokens").Int(u.OutputImage).End().End()
}
