package messages

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// maxTitle is the vendor's limit of a document's title.
const maxTitle = 500

// block returns the block for a part. ok is false if nothing is sent for it, which is recorded
// unless the text was blank: the vendor refuses blank text blocks. It fails for media that the
// model cannot read.
func (e *encoder) block(p *dialogue.Part) (b block, ok bool, err error) {
	b = block{kind: p.Kind, part: p}
	if p.Origin == Name && len(p.Opaque) > 0 && replayable(p) {
		b.json = p.Opaque
		return b, true, nil
	}
	switch p.Kind {
	case dialogue.TextPart, dialogue.RefusalPart:
		b.kind, b.text, b.hint = dialogue.TextPart, p.Text, p.CacheHint
		return b, strings.TrimSpace(p.Text) != "", nil
	case dialogue.SystemPart:
		e.rep.Lose("system:folded")
		b.kind, b.text, b.hint = dialogue.TextPart, dialogue.Reminder(p.Text), p.CacheHint
		return b, strings.TrimSpace(p.Text) != "", nil
	case dialogue.MediaPart:
		b.json, err = e.media(p)
		return b, err == nil, err
	case dialogue.CallPart:
		b.call = p.Call
		return b, true, nil
	case dialogue.ResultPart:
		b.result = p.Result
		b.json, err = e.resultContent(p.Result)
		return b, err == nil, err
	case dialogue.ThinkingPart:
		b.json = e.thinking(p.Thinking)
		return b, b.json != nil, nil
	}
	e.rep.Lose("server_tool")
	return block{}, false, nil
}

// replayable reports whether a part is of a kind that may be sent in the JSON that the client wrote:
// text that is not blank, media and the parts of server tools. The caller checks that the part has
// such JSON and that it is of this shape.
func replayable(p *dialogue.Part) bool {
	switch p.Kind {
	case dialogue.TextPart:
		return strings.TrimSpace(p.Text) != ""
	case dialogue.MediaPart, dialogue.ServerPart:
		return true
	}
	return false
}

// writeBlock writes one block. A block that came in this shape is written as it came.
func (e *encoder) writeBlock(w *jsonw.Writer, b *block) {
	switch b.kind {
	case dialogue.CallPart:
		e.writeCall(w, b)
	case dialogue.ResultPart:
		writeResult(w, b)
	default:
		if b.json != nil {
			w.Raw(b.json)
			return
		}
		writeText(w, b.text, b.hint)
	}
}

// writeCall writes a tool_use block with the name and the id under which the upstream knows them.
func (e *encoder) writeCall(w *jsonw.Writer, b *block) {
	w.Object()
	w.Key("type").String("tool_use")
	w.Key("id").String(b.id)
	w.Key("name").String(e.names.tool(b.call.Namespace, b.call.Name))
	input, whole := arguments(b.call)
	e.rep.LoseIf(!whole, "arguments")
	w.Key("input").Raw(input)
	writeHint(w, b.part.CacheHint)
	w.End()
}

// arguments returns the input of a call, which is always an object. The free text of a custom tool
// becomes the member customInput. whole is false if the arguments of a function are not valid JSON,
// as a turn that was cut leaves them.
func arguments(c *dialogue.Call) (input []byte, whole bool) {
	if c.Custom {
		return singleMember(customInput, quoted(c.Args)), true
	}
	return object(c.Args)
}

// object returns the arguments of a function as an object. Empty arguments and null become {}, and
// an object that was quoted once more is unquoted. Any other JSON value becomes the member "value".
// Text that is not valid JSON becomes the member "_raw", and whole is false.
func object(args string) (input []byte, whole bool) {
	args = strings.TrimSpace(args)
	if args == "" || args == "null" {
		return []byte("{}"), true
	}
	if !fields.ValidLenientString(args) {
		return singleMember("_raw", quoted(args)), false
	}
	switch args[0] {
	case '{':
		return []byte(strings.ToValidUTF8(args, "\uFFFD")), true
	case '"': // some clients quote the object once more
		if inner := strings.TrimSpace(gjson.Parse(args).Str); strings.HasPrefix(inner, "{") &&
			fields.ValidLenientString(inner) {
			return []byte(inner), true
		}
	}
	return singleMember("value", strings.ToValidUTF8(args, "\uFFFD")), true
}

// singleMember returns an object with one member. value is the JSON of its value.
func singleMember(name, value string) []byte { return []byte(`{"` + name + `":` + value + `}`) }

// writeResult writes a tool_result block. A result without content is legal and stays without.
func writeResult(w *jsonw.Writer, b *block) {
	w.Object()
	w.Key("type").String("tool_result")
	w.Key("tool_use_id").String(b.id)
	if b.json != nil {
		w.Key("content").Raw(b.json)
	}
	if b.result.IsError {
		w.Key("is_error").Bool(true)
	}
	writeHint(w, b.part.CacheHint)
	w.End()
}

// resultContent returns the JSON of a result's content: a string for a single text without a cache
// hint, else an array of blocks. It returns nil if nothing is to be sent.
func (e *encoder) resultContent(r *dialogue.Result) ([]byte, error) {
	var blocks []block
	text := false
	for i := range r.Parts {
		b, ok, err := e.block(&r.Parts[i])
		if err != nil {
			return nil, err
		}
		if ok {
			blocks = append(blocks, b)
			text = text || b.kind == dialogue.TextPart
		}
	}
	if !text && len(r.Object) > 0 {
		if s := objectText(r.Object); strings.TrimSpace(s) != "" {
			blocks = append([]block{textBlock(s)}, blocks...)
		}
	}
	if len(blocks) == 0 {
		return nil, nil
	}
	if len(blocks) == 1 && blocks[0].json == nil && len(blocks[0].hint) == 0 {
		return []byte(quoted(blocks[0].text)), nil
	}
	w := &jsonw.Writer{}
	w.Array()
	for i := range blocks {
		e.writeBlock(w, &blocks[i])
	}
	return w.End().Buf, nil
}

// objectText returns the text of a result that was given as an object: of its only
// member, if that is a string, else its JSON.
func objectText(object json.RawMessage) string {
	members, text := 0, ""
	fields.View(object).ForEach(func(_, v gjson.Result) bool {
		members++
		if v.Type == gjson.String {
			text = v.Str
		}
		return members < 2
	})
	if members == 1 && text != "" {
		return text
	}
	return string(object)
}

// thinking returns a thinking or redacted_thinking block, or nil if the upstream would refuse it,
// and then records the loss. A block is sent if a vendor of this shape signed it, the target accepts
// its signature (Env.Accepts) and the signature is not one that a gateway sealed.
func (e *encoder) thinking(t *dialogue.Thinking) []byte {
	w := &jsonw.Writer{}
	switch {
	case t.Origin != Name, !e.env.Accepts(e.target, t.Redacted+t.Signature):
	case t.Redacted != "" && !dialogue.Sealed(t.Redacted):
		w.Object().Key("type").String("redacted_thinking").Key("data").String(t.Redacted)
		return w.End().Buf
	case t.Signature != "" && !dialogue.Sealed(t.Signature):
		w.Object().Key("type").String("thinking").Key("thinking").String(t.Text)
		w.Key("signature").String(t.Signature)
		return w.End().Buf
	}
	e.rep.Lose("thinking")
	return nil
}

// media returns an image or document block. It fails for audio and video, for a file of another
// provider, for an address that is not http or https, and for data of a type that the vendor does
// not take.
func (e *encoder) media(p *dialogue.Part) ([]byte, error) {
	m := *p.Media
	switch {
	case m.Kind == dialogue.Audio:
		return nil, dialogue.UnsupportedContent("the model does not take audio")
	case m.Kind == dialogue.Video:
		return nil, dialogue.UnsupportedContent("the model does not take video")
	case m.FileID != "" && m.FileIDs != traits.FileIDs:
		return nil, dialogue.UnsupportedContent("a file of another provider cannot be used with this model")
	case m.URL != "" && !strings.HasPrefix(m.URL, "http://") && !strings.HasPrefix(m.URL, "https://"):
		return nil, dialogue.UnsupportedContent("the model's provider cannot fetch the address of a file")
	}
	m.MIME = mime(&m)
	kind := "document"
	if m.Kind == dialogue.Image || strings.HasPrefix(m.MIME, "image/") {
		kind = "image"
	}
	w := &jsonw.Writer{}
	w.Object().Key("type").String(kind).Key("source").Object()
	if err := writeSource(w, &m, kind); err != nil {
		return nil, err
	}
	w.End()
	if kind == "document" && m.Name != "" {
		w.Key("title").String(cut(m.Name, maxTitle))
	}
	if kind == "image" {
		e.rep.LoseFileName(&m)
	}
	e.rep.LoseIf(m.Detail != "" && m.Detail != "auto", "detail")
	writeHint(w, p.CacheHint)
	return w.End().Buf, nil
}

// writeSource writes the members of a block's source, without the braces around them. kind is the
// block's type, "image" or "document". It fails for data that is not of a type the vendor takes:
// jpeg, png, gif and webp for an image, PDF and plain text for a document.
func writeSource(w *jsonw.Writer, m *dialogue.Media, kind string) error {
	switch {
	case m.FileID != "":
		w.Key("type").String("file").Key("file_id").String(m.FileID)
		return nil
	case m.URL != "":
		w.Key("type").String("url").Key("url").String(m.URL)
		return nil
	case kind == "image":
		if !pictures[m.MIME] {
			return dialogue.UnsupportedContent("the model takes jpeg, png, gif and webp images only")
		}
	case m.MIME == "application/pdf":
	default:
		text, ok := documentText(m)
		if !ok {
			return dialogue.UnsupportedContent("the model takes PDF and plain text documents only")
		}
		w.Key("type").String("text").Key("media_type").String("text/plain").Key("data").String(text)
		return nil
	}
	w.Key("type").String("base64").Key("media_type").String(m.MIME).Key("data").String(m.Base64)
	return nil
}

// pictures are the types of images that the vendor documents.
var pictures = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

// magic lists the first bytes of well-known media in base64.
var magic = []struct{ prefix, mime string }{
	{"iVBORw0KGgo", "image/png"}, {"/9j/", "image/jpeg"}, {"R0lGOD", "image/gif"}, {"UklGR",
		"image/webp"}, {"JVBERi0", "application/pdf"},
}

// mime returns a media type in the vendor's spelling: in lower case and without parameters. Where
// the client named none, or only application/octet-stream or image/*, it recognises the type from
// the data. If that fails, it returns what the client named, which may be "".
func mime(m *dialogue.Media) string {
	kind, _, _ := strings.Cut(strings.ToLower(m.MIME), ";")
	switch kind = strings.TrimSpace(kind); kind {
	case "image/jpg":
		return "image/jpeg"
	case "", "application/octet-stream", "image/*":
		for _, known := range magic {
			if strings.HasPrefix(m.Base64, known.prefix) {
				return known.mime
			}
		}
	}
	return kind
}

// documentText returns the text of a document, and whether it is text. Data counts as text, whatever
// its type says, if it is UTF-8 without a zero byte and not blank.
func documentText(m *dialogue.Media) (string, bool) {
	if m.Text != "" {
		return m.Text, true
	}
	data, err := base64.StdEncoding.DecodeString(m.Base64)
	if err != nil || !utf8.Valid(data) || strings.TrimSpace(string(data)) == "" ||
		strings.ContainsRune(string(data), 0) {
		return "", false
	}
	return string(data), true
}

// cut shortens s to limit characters.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}
