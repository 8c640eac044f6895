package imagegen

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// maxReplied bounds the images or descriptions in one reply of an upstream, each of which is
// fetched or kept.
const maxReplied = 64

// Body implements picture.Codec.
func (shape) Body(r *picture.Request, body []byte) (*picture.Reply, error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	v := fields.View(body)
	if e := v.Get("error"); e.Exists() && e.Type != gjson.Null {
		return nil, chunks.DecodeFailure(e)
	}
	if r.Operation == picture.Describe {
		return descriptions(v)
	}
	data := v.Get("data")
	if !data.IsArray() {
		return nil, dialogue.BadUpstream("the reply has no data")
	}
	reply := &picture.Reply{Created: created(v.Get("created"))}
	for _, d := range data.Array() {
		if len(reply.Images) == maxReplied {
			return nil, dialogue.BadUpstream("the reply has too many images")
		}
		reply.Images = append(reply.Images, readImage(d))
	}
	return reply, nil
}

// readImage reads one image. It ignores the address of an image that is marked unsafe, and marks an
// image without an address as unsafe, because it was withheld.
func readImage(d gjson.Result) picture.Image {
	i := picture.Image{
		Prompt:    strings.Clone(d.Get("prompt").String()),
		StyleType: strings.Clone(d.Get("style_type").String()),
	}
	if d.Get("is_image_safe").Type != gjson.False {
		i.URL = strings.Clone(d.Get("url").String())
	}
	i.Unsafe = i.URL == ""
	if s, ok := picture.ParseSize(d.Get("resolution").String()); ok {
		i.Width, i.Height = s.Width, s.Height
	}
	i.Upscaled, _ = picture.ParseSize(d.Get("upscaled_resolution").String())
	if s := d.Get("seed"); s.Type == gjson.Number {
		i.Seed = new(s.Int())
	}
	return i
}

// created returns the time of a reply, or the zero time if it has none that can be read.
func created(v gjson.Result) time.Time {
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if err != nil {
		return time.Time{}
	}
	return t
}

// descriptions returns the reply to a request to describe a picture.
func descriptions(v gjson.Result) (*picture.Reply, error) {
	reply := new(picture.Reply)
	for _, d := range v.Get("descriptions").Array() {
		if text := d.Get("text"); text.Type == gjson.String && len(reply.Descriptions) < maxReplied {
			reply.Descriptions = append(reply.Descriptions, strings.Clone(text.Str))
		}
	}
	if len(reply.Descriptions) == 0 {
		return nil, dialogue.BadUpstream("the reply has no descriptions")
	}
	return reply, nil
}

// timeLayout is the vendor's format of times.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// AppendReply appends the reply to a request of this shape. The caller must have replaced the addresses in reply by the
// gateway's own.
func AppendReply(dst []byte, r *picture.Request, reply *picture.Reply) []byte {
	w := jsonw.Writer{Buf: dst}
	w.Object()
	if r.Operation == picture.Describe {
		w.Key("descriptions").Array()
		for _, text := range reply.Descriptions {
			w.Object().Key("text").String(text).End()
		}
		w.End().End()
		return w.Buf
	}
	w.Key("created").String(reply.Created.UTC().Format(timeLayout))
	w.Key("data").Array()
	for i := range reply.Images {
		appendImage(&w, r, &reply.Images[i])
	}
	w.End().End()
	return w.Buf
}

// appendImage writes all fields of the documents, without style_type for models of the first generation, which have no
// styles. A value that an upstream of another shape does not report is taken from the request.
func appendImage(w *jsonw.Writer, r *picture.Request, i *picture.Image) {
	prompt, style := i.Prompt, i.StyleType
	prompt = cmp.Or(prompt, r.Prompt)
	if style == "" {
		style = cmp.Or(r.StyleType, "AUTO") // the documents' default
	}
	w.Object().Key("prompt").String(prompt).Key("resolution").String(resolutionOf(r, i).String())
	if i.Upscaled != (picture.Size{}) {
		w.Key("upscaled_resolution").String(i.Upscaled.String())
	}
	w.Key("is_image_safe").Bool(!i.Unsafe).Key("seed").Int(seedOf(r, i))
	w.Key("url").StringOrNull(i.URL)
	if r.Version != "V1" { // models of the first generation have no styles
		w.Key("style_type").String(style)
	}
	w.End()
}

// defaultResolution is the resolution of a picture if the request has none.
var defaultResolution = picture.Size{Width: 1024, Height: 1024}

// resolutionOf returns the size of a picture: that reported, else that asked for, else the vendor's
// default. Clients require the field.
func resolutionOf(r *picture.Request, i *picture.Image) picture.Size {
	switch {
	case i.Width > 0 && i.Height > 0:
		return picture.Size{Width: i.Width, Height: i.Height}
	case r.Size != (picture.Size{}):
		return r.Size
	}
	return defaultResolution
}

// seedOf returns the seed of a picture, which clients require, or 0 if it is not known.
func seedOf(r *picture.Request, i *picture.Image) int64 {
	switch {
	case i.Seed != nil:
		return *i.Seed
	case r.Seed != nil:
		return *r.Seed
	}
	return 0
}
