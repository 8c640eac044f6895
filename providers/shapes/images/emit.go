package images

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
)

// Emitter encodes the reply to one request. It is not safe for concurrent use.
type Emitter struct {
	r      *picture.Request
	legacy bool
	kind   string // prefix of the names of its events
	now    func() time.Time
}

// NewEmitter returns an Emitter for r. now gives the time of replies for which the upstream
// reports none.
func NewEmitter(r *picture.Request, resolve Resolve, now func() time.Time) *Emitter {
	e := &Emitter{r: r, legacy: familyOf(resolve(r.Model)).legacy, kind: "image_generation", now: now}
	if r.Operation != picture.Generate {
		e.kind = "image_edit"
	}
	return e
}

// Reply returns the body of a whole reply: p.Raw if it is set, which is the upstream's body. The caller must have
// replaced the addresses in p by the gateway's own.
func (e *Emitter) Reply(p *picture.Reply) []byte {
	if p.Raw != nil {
		return p.Raw
	}
	w := jsonw.Writer{Buf: make([]byte, 0, sizeHint(p))}
	w.Object()
	w.Key("created").Int(e.created(p))
	if !e.legacy {
		e.about(&w, p, properties{})
	}
	w.Key("data").Array()
	for i := range p.Images {
		e.image(&w, &p.Images[i])
	}
	w.End()
	if !e.legacy && p.Usage != nil {
		usage(&w, p.Usage)
	}
	w.End()
	return w.Buf
}

// sizeHint returns about the size of a document, so that its buffer is allocated once.
func sizeHint(p *picture.Reply) int {
	n := 512
	for i := range p.Images {
		n += 256 + len(p.Images[i].Base64) + (len(p.Images[i].Data)+2)/3*4
	}
	return n
}

// image writes one picture, by its address or by value.
func (e *Emitter) image(w *jsonw.Writer, i *picture.Image) {
	w.Object()
	if i.URL != "" {
		w.Key("url").String(i.URL)
	} else {
		content(w, i)
	}
	if i.Prompt != "" {
		w.Key("revised_prompt").String(i.Prompt)
	}
	w.End()
}

// content writes the picture. Base64 needs no escaping.
func content(w *jsonw.Writer, i *picture.Image) {
	w.Key("b64_json").Raw([]byte(`"`))
	w.Buf = append(i.AppendBase64(w.Buf), '"')
}

// about writes the properties that all pictures of a reply share, as far as they are known. It writes the values of
// unknown for the others, and leaves those out that are "" there, too.
func (e *Emitter) about(w *jsonw.Writer, p *picture.Reply, unknown properties) {
	for _, f := range []struct{ name, reported, requested, unknown string }{
		{"background", p.Background, definite(e.r.Background), unknown.background},
		{"output_format", p.OutputFormat, e.r.OutputFormat, unknown.format},
		{"size", p.Size, definite(e.r.Size.String()), unknown.size},
		{"quality", p.Quality, definite(e.r.Quality), unknown.quality},
	} {
		if value := cmp.Or(f.reported, f.requested, f.unknown); value != "" {
			w.Key(f.name).String(value)
		}
	}
}

// properties are the fields of a reply that apply to all of its pictures.
type properties struct{ background, format, size, quality string }

// inEvents has what an event says of a property that is not known. The vendor's clients need all of them in each event,
// while a whole reply may lack them.
var inEvents = properties{background: "auto", format: "png", size: "auto", quality: "auto"}

// definite returns s, or "" for auto, which says nothing about the picture that was made.
func definite(s string) string {
	if s == "auto" {
		return ""
	}
	return s
}

// usage writes the counts of text and picture tokens, which have different prices.
func usage(w *jsonw.Writer, u *picture.Usage) {
	w.Key("usage").Object()
	w.Key("total_tokens").Int(u.Input() + u.Output())
	w.Key("input_tokens").Int(u.Input())
	w.Key("output_tokens").Int(u.Output())
	w.Key("input_tokens_details").Object()
	w.Key("text_tokens").Int(u.InputText).Key("image_tokens").Int(u.InputImage)
	if u.CachedInput > 0 {
		w.Key("cached_tokens").Int(u.CachedInput)
	}
	w.End()
	w.Key("output_tokens_details").Object()
	w.Key("text_tokens").Int(u.OutputText).Key("image_tokens").Int(u.OutputImage)
	w.End().End()
}

// created returns the time of the reply in Unix seconds.
func (e *Emitter) created(p *picture.Reply) int64 {
	if p.Created.IsZero() {
		return e.now().Unix()
	}
	return p.Created.Unix()
}

// Partial returns the event of an unfinished image.
func (e *Emitter) Partial(p *picture.Partial) []byte {
	name := e.kind + ".partial_image"
	if p.Raw != nil {
		return forwarded(name, p.Raw)
	}
	return e.event(name, &picture.Reply{Images: []picture.Image{p.Image}, OutputFormat: formatOf(&p.Image),
		Size: sizeOf(&p.Image)}, func(w *jsonw.Writer) {
		w.Key("partial_image_index").Int(int64(p.Index))
	})
}

// Completed returns the event that ends a stream.
func (e *Emitter) Completed(p *picture.Reply) []byte {
	name := e.kind + ".completed"
	if p.Raw != nil {
		return forwarded(name, p.Raw)
	}
	return e.event(name, p, func(w *jsonw.Writer) {
		if p.Usage != nil {
			usage(w, p.Usage)
		}
	})
}

// event returns an event with the first picture of p. more writes its own members.
func (e *Emitter) event(name string, p *picture.Reply, more func(*jsonw.Writer)) []byte {
	w := jsonw.Writer{Buf: make([]byte, 0, sizeHint(p))}
	w.Object()
	w.Key("type").String(name)
	content(&w, &p.Images[0])
	w.Key("created_at").Int(e.created(p))
	e.about(&w, p, inEvents)
	more(&w)
	w.End()
	return shapes.AppendEvent(nil, name, w.Buf)
}

// formatOf returns the output_format of a picture, or "" if it is not known.
func formatOf(i *picture.Image) string {
	_, format, _ := strings.Cut(i.MediaType, "/")
	return format
}

// sizeOf returns the size of a picture, or "" if it is not known.
func sizeOf(i *picture.Image) string {
	if i.Width == 0 || i.Height == 0 {
		return ""
	}
	return picture.Size{Width: i.Width, Height: i.Height}.String()
}

// forwarded returns an upstream's event with its data in one line, as the gateway writes its own.
func forwarded(name string, data []byte) []byte {
	if bytes.ContainsAny(data, "\r\n") {
		var w jsonw.Writer
		data = w.Raw(data).Buf
	}
	return shapes.AppendEvent(nil, name, data)
}

// Failure returns the event of a stream that ends with an error.
func (e *Emitter) Failure(err *dialogue.Error) []byte {
	return shapes.AppendEvent(nil, "error", append(err.AppendJSON([]byte(`{"error":`)), '}'))
}

// Heartbeat is a comment, which clients ignore, to be sent between two events.
var Heartbeat = []byte(": keep-alive\n")
