package chat

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// maxImage limits the decoded bytes of one image. A larger one is dropped and reported as a loss.
const maxImage = 8 << 20

// pendingFunction is a deprecated function_call that waits for its result. It has no id in this
// shape, so the decoder makes one, and pairs the result by the function's name.
type pendingFunction struct{ name, id string }

// messages reads the messages until one of them has a mistake.
func (d *decoder) messages(list gjson.Result) {
	i := 0
	chunks.OnlyArray(list).ForEach(func(_, m gjson.Result) bool {
		d.message(m)
		d.checkInner("messages."+strconv.Itoa(i), m)
		i++
		return d.err == nil
	})
}

// checkInner bounds the strings of a message that encoders of other shapes parse as JSON: the
// arguments of calls and the results of tools. at is the path for the error.
// A request in this shape is parsed by the gateway once. What stands inside its strings is parsed
// again by the encoders of other shapes, and could be nested without a bound.
func (d *decoder) checkInner(at string, m gjson.Result) {
	check := func(at, text string) {
		if d.err == nil {
			d.err = fields.CheckInner(at, text)
		}
	}
	if f := m.Get("function_call.arguments"); f.Exists() {
		check(at+".function_call.arguments", f.Str)
	}
	i := 0
	chunks.OnlyArray(m.Get("tool_calls")).ForEach(func(_, v gjson.Result) bool {
		check(at+".tool_calls."+strconv.Itoa(i)+".function.arguments", v.Get("function.arguments").Str)
		i++
		return true
	})
	if role := m.Get("role").Str; d.err == nil && (role == "tool" || role == "function") {
		d.err = fields.CheckInnerParts(at+".content", d.req.Turns[len(d.req.Turns)-1].Parts[0].Result.Parts)
	}
}

// message adds what one message says to the request. Results become turns of the user.
func (d *decoder) message(m gjson.Result) {
	role := m.Get("role").String()
	d.req.RecordIgnoredExcept("messages", m, messageFields...)
	switch role {
	case "system", "developer":
		if m.Get("name").String() != "" {
			d.lose("name") // one prompt is made of all of them
		}
		d.system(m)
	case "user":
		d.turn(dialogue.User, m, d.parts(m.Get("content")))
	case "assistant":
		d.turn(dialogue.Assistant, m, d.assistantParts(m))
	case "tool", "function":
		d.turn(dialogue.User, gjson.Result{}, []dialogue.Part{d.answer(role, m)})
	}
}

// messageFields are the members of a message that are read, or whose loss changes nothing: the name
// of the tool in a result also stands in its call.
var messageFields = []string{"role", "content", "name", "refusal", "audio", "tool_calls", "function_call",
	"tool_call_id", "reasoning_content", "reasoning", "reasoning_details", "images"}

// turn adds a turn with the name that the message m gives its author, if any.
func (d *decoder) turn(role dialogue.Role, m gjson.Result, parts []dialogue.Part) {
	d.req.Turns = append(d.req.Turns, dialogue.Turn{Role: role, Name: m.Get("name").String(), Parts: parts})
}

// system adds a system message to the prompt at the front, if no turn precedes it. Otherwise it
// stays where it is, as a turn with SystemParts, because its place in the conversation has a
// meaning.
func (d *decoder) system(m gjson.Result) {
	parts := d.parts(m.Get("content"))
	if len(d.req.Turns) == 0 {
		d.req.System = append(d.req.System, parts...)
		return
	}
	for i := range parts {
		parts[i].Kind = dialogue.SystemPart
	}
	d.req.Turns = append(d.req.Turns, dialogue.Turn{Role: dialogue.User, Parts: parts})
}

// parts returns the parts of a content: null, a string or a list. A list of which only images were
// dropped gives one empty text, so that the turn itself does not vanish.
func (d *decoder) parts(content gjson.Result) []dialogue.Part {
	if content.Type == gjson.String {
		return []dialogue.Part{{Kind: dialogue.TextPart, Text: content.String()}}
	}
	var parts []dialogue.Part
	chunks.OnlyArray(content).ForEach(func(_, v gjson.Result) bool {
		kind := v.Get("type").Str
		d.req.RecordIgnoredExcept("messages.content", v, "type", kind, "cache_control")
		if known := partFields[kind]; known != nil {
			d.req.RecordIgnoredExcept("messages.content."+kind, v.Get(kind), known...)
		}
		if p, ok := d.part(v); ok {
			p.CacheHint = fields.Raw(v.Get("cache_control"))
			parts = append(parts, p)
		}
		return true
	})
	if len(parts) == 0 && content.IsArray() {
		// Only images that were dropped: the turn stays.
		parts = append(parts, dialogue.Part{Kind: dialogue.TextPart})
	}
	return parts
}

// partFields are the members that are read of each type of part. Others are recorded as ignored.
var partFields = map[string][]string{
	"image_url":   {"url", "detail"},
	"input_audio": {"data", "format"},
	"file":        {"filename", "file_id", "file_data"},
}

// part returns one content part. ok is false for an image over the limit, which is recorded as
// lost.
func (d *decoder) part(v gjson.Result) (dialogue.Part, bool) {
	switch v.Get("type").Str {
	case "refusal":
		return dialogue.Part{Kind: dialogue.RefusalPart, Text: v.Get("refusal").String()}, true
	case "image_url":
		url := imageAddress(v)
		if tooLarge(url) {
			d.lose("image:too_large")
			return dialogue.Part{}, false
		}
		media := &dialogue.Media{Kind: dialogue.Image, Detail: v.Get("image_url.detail").String()}
		media.SetURL(url.String())
		return mediaPart(media), true
	case "input_audio":
		audio := v.Get("input_audio")
		return mediaPart(&dialogue.Media{Kind: dialogue.Audio, MIME: "audio/" + audio.Get("format").String(),
			Base64: audio.Get("data").String()}), true
	case "file":
		return mediaPart(fileMedia(v.Get("file"))), true
	}
	return dialogue.Part{Kind: dialogue.TextPart, Text: v.Get("text").String()}, true
}

// imageAddress returns the address of an image part. It stands in an object, or is the member itself.
func imageAddress(part gjson.Result) gjson.Result {
	image := part.Get("image_url")
	if image.Type == gjson.String {
		return image
	}
	return image.Get("url")
}

// mediaPart returns a part with media that came in this shape.
func mediaPart(m *dialogue.Media) dialogue.Part {
	return dialogue.Part{Kind: dialogue.MediaPart, Media: m, Origin: Name}
}

// tooLarge reports whether the image in a data URL has more than maxImage bytes. It computes that
// from the length of the base64. Images given by address are not fetched, so they have no limit
// here.
func tooLarge(url gjson.Result) bool {
	if len(url.Raw) < maxImage || len(url.Raw) < 5 || !strings.EqualFold(url.Raw[1:6], "data:") {
		return false
	}
	comma := strings.IndexByte(url.Raw, ',')
	data := strings.TrimRight(url.Raw[comma+1:len(url.Raw)-1], "=")
	return len(data)/4*3+len(data)%4*3/4 > maxImage
}

// fileMedia returns the document in a file part. Some clients send base64 without "data:" around it. The type then
// follows from the name of the file.
func fileMedia(v gjson.Result) *dialogue.Media {
	m := &dialogue.Media{Kind: dialogue.File, Name: v.Get("filename").String()}
	if id := v.Get("file_id").String(); id != "" {
		m.FileID, m.FileIDs = id, traits.FileIDs
		return m
	}
	data := v.Get("file_data").String()
	if m.SetURL(data); m.URL != "" && !strings.Contains(data, "://") {
		m.URL, m.Base64, m.MIME = "", data, dialogue.DocumentMIME(m.Name) // bare base64
	}
	if kind, _, _ := strings.Cut(m.MIME, "/"); kind == "image" {
		m.Kind = dialogue.Image
	}
	m.ReadText()
	return m
}

// assistantParts returns the parts of an assistant's message: thoughts, text, refusal, pictures and
// calls. They come in this sequence, because the members of an object have none. The proof of a text
// stands behind the text.
// Audio of an earlier reply is named by an id that only its maker can resolve, so it is lost for
// every other target.
func (d *decoder) assistantParts(m gjson.Result) []dialogue.Part {
	var parts, proofs []dialogue.Part
	for _, p := range d.thoughts(m) {
		if p.Thinking.OfText {
			proofs = append(proofs, p)
		} else {
			parts = append(parts, p)
		}
	}
	if content := m.Get("content"); content.Raw != `""` {
		parts = append(parts, d.parts(content)...)
	}
	parts = append(parts, proofs...)
	if refusal := m.Get("refusal").String(); refusal != "" {
		parts = append(parts, dialogue.Part{Kind: dialogue.RefusalPart, Text: refusal})
	}
	chunks.OnlyArray(m.Get("images")).ForEach(func(_, v gjson.Result) bool { // which the model made in an earlier reply
		if url := v.Get("image_url.url"); tooLarge(url) {
			d.lose("image:too_large")
		} else if url.Str != "" {
			media := &dialogue.Media{Kind: dialogue.Image}
			media.SetURL(url.String())
			parts = append(parts, mediaPart(media))
		}
		return true
	})
	if m.Get("audio").IsObject() {
		d.lose("audio") // the id of a stored reply: only its maker knows it
	}
	chunks.OnlyArray(m.Get("tool_calls")).ForEach(func(_, v gjson.Result) bool {
		parts = append(parts, dialogue.Part{Kind: dialogue.CallPart, Call: d.call(v)})
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		id := "call_fn_" + strconv.Itoa(len(d.req.Turns))
		call := &dialogue.Call{ID: id, Name: f.Get("name").String(), Args: f.Get("arguments").String()}
		d.functions = append(d.functions, pendingFunction{call.Name, id})
		parts = append(parts, dialogue.Part{Kind: dialogue.CallPart, Call: call})
	}
	return parts
}

// call returns a call in the history. Gemini's thought signature stands in extra_content.google, as
// in Google's own chat-compatible service.
func (d *decoder) call(v gjson.Result) *dialogue.Call {
	d.req.RecordIgnoredExcept("messages.tool_calls", v, "id", "type", "index", "function", "custom", "extra_content")
	c := &dialogue.Call{ID: v.Get("id").String(), Signature: v.Get("extra_content.google.thought_signature").String()}
	if custom := v.Get("custom"); custom.IsObject() {
		c.Custom, c.Name, c.Args = true, custom.Get("name").String(), custom.Get("input").String()
		if d.custom == nil {
			d.custom = make(map[string]bool)
		}
		d.custom[c.ID] = true
		return c
	}
	f := v.Get("function")
	d.req.RecordIgnoredExcept("messages.tool_calls.function", f, "name", "arguments")
	c.Name, c.Args = f.Get("name").String(), f.Get("arguments").String()
	return c
}

// answer returns the result of a call: a message of role tool, or of the deprecated role function.
func (d *decoder) answer(role string, m gjson.Result) dialogue.Part {
	res := &dialogue.Result{CallID: m.Get("tool_call_id").String(), Parts: d.parts(m.Get("content"))}
	if role == "function" {
		res.Name = m.Get("name").String()
		res.CallID = d.answered(res.Name)
	}
	res.Custom = d.custom[res.CallID]
	return dialogue.Part{Kind: dialogue.ResultPart, Result: res}
}

// answered returns the id of the oldest function_call of that name without a result, or "".
// The oldest one is taken, because the deprecated form allows one call for each message, and
// clients answer in sequence.
func (d *decoder) answered(name string) string {
	for i, f := range d.functions {
		if f.name == name {
			d.functions = append(d.functions[:i:i], d.functions[i+1:]...)
			return f.id
		}
	}
	return ""
}

// lose records something that the request had and the neutral form has not.
func (d *decoder) lose(what string) {
	if !slices.Contains(d.req.Lost, what) {
		d.req.Lost = append(d.req.Lost, what)
	}
}
