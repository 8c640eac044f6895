package images

import (
	"cmp"
	"strings"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
)

// Body implements picture.Codec. The pictures in the reply are slices of body, because a copy of
// their base64 would double the memory. For a client of this shape the reply keeps the body, which
// is then sent as it is.
func (shape) Body(r *picture.Request, body []byte) (*picture.Reply, error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	v := gjson.Parse(view(body))
	if e := v.Get("error"); e.Exists() && e.Type != gjson.Null {
		return nil, refusal(v)
	}
	if !v.Get("data").IsArray() {
		return nil, dialogue.BadUpstream("a reply without data")
	}
	reply := readHeader(v)
	v.Get("data").ForEach(func(_, d gjson.Result) bool {
		reply.Images = append(reply.Images, imageOf(r, reply, d))
		return true
	})
	if r.Inbound == Name {
		reply.Raw = body
	}
	return reply, nil
}

// Event implements picture.Codec. It returns nil for an event that is not a picture.
func (shape) Event(r *picture.Request, name string, data []byte) (*picture.Event, error) {
	if string(data) == "[DONE]" {
		return nil, nil
	}
	if bad := fields.CheckReply("event", data); bad != nil {
		return nil, bad
	}
	data = append([]byte(nil), data...) // the event keeps slices of it
	v := gjson.Parse(view(data))
	kind := v.Get("type").Str
	kind = cmp.Or(kind, name)
	if e := v.Get("error"); kind == "error" || e.Exists() && e.Type != gjson.Null {
		return nil, refusal(v)
	}
	_, step, _ := strings.Cut(kind, ".")
	reply := readHeader(v)
	img := imageOf(r, reply, v)
	switch step {
	case "partial_image":
		p := &picture.Partial{Index: int(v.Get("partial_image_index").Int()), Image: img}
		if r.Inbound == Name {
			p.Raw = data
		}
		return &picture.Event{Partial: p}, nil
	case "completed":
		reply.Images = []picture.Image{img}
		if r.Inbound == Name {
			reply.Raw = data
		}
		return &picture.Event{Done: reply}, nil
	}
	return nil, nil // an event that the gateway does not know yet
}

// readHeader reads the members of a reply or an event that are about all its pictures.
func readHeader(v gjson.Result) *picture.Reply {
	created := v.Get("created").Int()
	if created == 0 {
		created = v.Get("created_at").Int()
	}
	reply := &picture.Reply{Background: v.Get("background").Str, OutputFormat: v.Get("output_format").Str,
		Quality: v.Get("quality").Str, Size: v.Get("size").Str, Usage: usageOf(v.Get("usage"))}
	if created > 0 {
		reply.Created = time.Unix(created, 0)
	}
	return reply
}

// imageOf returns the picture in an element of data, or in an event.
func imageOf(r *picture.Request, reply *picture.Reply, d gjson.Result) picture.Image {
	i := picture.Image{URL: d.Get("url").Str, Prompt: d.Get("revised_prompt").Str}
	if data := d.Get("b64_json"); data.Type == gjson.String && data.Str != "" {
		i.Base64, i.URL = bytesOf(data.Str), ""
	}
	if size, ok := picture.ParseSize(reply.Size); ok {
		i.Width, i.Height = size.Width, size.Height
	}
	return i
}

// usageOf returns the counts of a reply, or nil if it has none.
func usageOf(v gjson.Result) *picture.Usage {
	if !v.IsObject() {
		return nil
	}
	n := func(path string) int64 { return max(v.Get(path).Int(), 0) }
	u := &picture.Usage{
		InputText:   n("input_tokens_details.text_tokens"),
		InputImage:  n("input_tokens_details.image_tokens"),
		CachedInput: n("input_tokens_details.cached_tokens"),
		OutputText:  n("output_tokens_details.text_tokens"),
		OutputImage: n("output_tokens_details.image_tokens"),
	}
	// The bill uses the totals. A part that is not reported counts as text input and image output.
	u.InputText += max(n("input_tokens")-u.Input(), 0)
	u.OutputImage += max(n("output_tokens")-u.Output(), 0)
	return u
}

// refusal reads an error that came with the status 200.
func refusal(v gjson.Result) *dialogue.Error {
	e := chunks.DecodeFailure(v)
	e.ModerationDetails = moderation(v.Get("error.moderation_details"))
	if e.Type == userError {
		e.Status = 400
	}
	return e
}

// userError is the vendor's type for a request that its moderation refused.
const userError = dialogue.TypeModeration

// view returns bytes as a string without copying them. The caller must not change b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns a string as bytes without copying it. The caller must not change them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
