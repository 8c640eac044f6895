package responses

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// items writes the input array, part by part in the sequence of the turns. Text and media of one
// role are collected into a message until something else comes, because calls, results and
// reasoning are items of their own here.
type items struct {
	*encoder
	w jsonw.Writer
	n int // items written

	// last is set in the last turn. Its calls need no results.
	last bool

	role    string       // of the message that gathers, "" if none does
	message jsonw.Writer // its content
	parts   int

	// thinking waits for the item that it led to: the vendor refuses a reasoning item that nothing
	// follows.
	thinking []*dialogue.Thinking
}

// prompt makes a message of the prompt of a completions client.
func (it *items) prompt() *dialogue.Error {
	if len(it.req.Prompts) == 0 {
		return nil
	}
	p := fields.View(it.req.Prompts[0])
	if p.Type != gjson.String {
		return dialogue.Unsupported("prompt", "this model does not take token ids")
	}
	it.addText("user", p.Str)
	return nil
}

// turn writes one turn. Reasoning that nothing follows within the turns of the assistant is
// dropped.
func (it *items) turn(t *dialogue.Turn) *dialogue.Error {
	if t.Role == dialogue.User {
		it.dropThinking()
	}
	for i := range t.Parts {
		if err := it.part(t.Role, &t.Parts[i]); err != nil {
			return err
		}
	}
	it.rep.LoseIf(t.Name != "", "name")
	// Messages of one role stay apart, as the client had them.
	it.flushMessage()
	return nil
}

// part writes one part, or collects it into the message.
func (it *items) part(role dialogue.Role, p *dialogue.Part) *dialogue.Error {
	switch p.Kind {
	case dialogue.TextPart:
		it.text(string(role), p.Text)
	case dialogue.SystemPart:
		it.text("developer", p.Text)
	case dialogue.RefusalPart:
		it.refusal(p.Text)
	case dialogue.MediaPart:
		return it.media(role, p)
	case dialogue.ThinkingPart:
		it.think(p.Thinking)
	case dialogue.CallPart:
		it.call(p.Call)
	case dialogue.ResultPart:
		return it.result(p.Result)
	case dialogue.ServerPart:
		it.server(p)
	}
	return nil
}

// gather returns the writer of the collecting message's content, after it has begun a new message
// if the role changes. The caller writes one part.
// The content is written into a buffer of its own, because reasoning that was waiting must come
// before the message to which it led, and whether the message will have content is known only at
// its end.
func (it *items) gather(role string) *jsonw.Writer {
	if it.role != role {
		it.flushMessage()
		it.role = role
		it.message = jsonw.Writer{}
		it.message.Array()
	}
	it.parts++
	return &it.message
}

// text writes a part of text. Upstreams refuse an empty one, so it is left out.
func (it *items) text(role, text string) {
	if text == "" {
		return
	}
	kind := "input_text"
	if role == string(dialogue.Assistant) {
		kind = "output_text"
	}
	w := it.gather(role)
	w.Object().Key("type").String(kind).Key("text").String(text)
	w.End()
}

// refusal writes a refusal of the assistant.
func (it *items) refusal(text string) {
	if text == "" {
		return
	}
	w := it.gather(string(dialogue.Assistant))
	w.Object().Key("type").String("refusal").Key("refusal").String(text)
	w.End()
}

// media adds media to the message of the user. The assistant cannot have any here.
// The part is written into a separate buffer first, so that an error leaves the collecting message
// as it was.
func (it *items) media(role dialogue.Role, p *dialogue.Part) *dialogue.Error {
	if role == dialogue.Assistant {
		it.rep.Lose("media:assistant")
		return nil
	}
	var w jsonw.Writer
	if err := it.appendMedia(&w, p); err != nil {
		return err
	}
	it.gather(string(role)).Raw(w.Buf)
	return nil
}

// flush ends the input. It writes the collected message, and drops reasoning to which nothing belongs.
func (it *items) flush() {
	it.flushMessage()
	it.dropThinking()
}

// flushMessage writes the collected message, if there is one. A message of the assistant gives
// reasoning before it something to lead to.
func (it *items) flushMessage() {
	role, n := it.role, it.parts
	it.role, it.parts = "", 0
	if n == 0 {
		return
	}
	it.message.End()
	if role == string(dialogue.Assistant) {
		it.flushThinking()
	}
	it.item("message", func(w *jsonw.Writer) {
		w.Key("role").String(role)
		w.Key("content").Raw(it.message.Buf)
	})
}

// addText writes a message of one text.
func (it *items) addText(role, text string) {
	it.text(role, text)
	it.flushMessage()
}

// nothing writes a message with an empty text, because the vendor requires an item.
func (it *items) nothing() {
	w := it.gather(string(dialogue.User))
	w.Object().Key("type").String("input_text").Key("text").String("").End()
	it.flushMessage()
}

// item writes one item of the input.
func (it *items) item(kind string, members func(*jsonw.Writer)) {
	it.n++
	it.w.Object().Key("type").String(kind)
	members(&it.w)
	it.w.End()
}

// think keeps reasoning for the next item, if an upstream of this shape encrypted it and the target
// accepts it. Reasoning of other vendors has no place in the input, and an id without content
// refers to nothing, because the item was not stored.
func (it *items) think(t *dialogue.Thinking) {
	it.flushMessage()
	if t == nil || t.Origin != Name || t.Encrypted == "" || !it.env.Accepts(it.target, t.Encrypted) {
		it.rep.Lose("thinking")
		return
	}
	it.thinking = append(it.thinking, t)
}

// flushThinking writes the reasoning that waited.
func (it *items) flushThinking() {
	for _, t := range it.thinking {
		it.item("reasoning", func(w *jsonw.Writer) {
			if t.ItemID != "" {
				w.Key("id").String(t.ItemID)
			}
			w.Key("summary").Array()
			if t.Text != "" {
				w.Object().Key("type").String("summary_text").Key("text").String(t.Text).End()
			}
			w.End()
			w.Key("encrypted_content").String(t.Encrypted)
		})
	}
	it.thinking = it.thinking[:0]
}

// dropThinking gives up reasoning to which nothing belongs any more.
func (it *items) dropThinking() {
	if len(it.thinking) > 0 {
		it.rep.Lose("thinking")
		it.thinking = it.thinking[:0]
	}
}

// sentCall is a call in the input.
type sentCall struct {
	id     string // as sent
	custom bool
}

// call writes a call. If the conversation has no result for it and goes on after it, it gets one
// that says so, because the vendor requires a result of every call but the last ones.
func (it *items) call(c *dialogue.Call) {
	it.flushMessage()
	it.flushThinking()
	sent := sentCall{it.callIDs.Of(c), c.Custom}
	kind, field, args := "function_call", "arguments", c.Args
	if c.Custom {
		kind, field = "custom_tool_call", "input"
	} else if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	it.item(kind, func(w *jsonw.Writer) {
		w.Key("call_id").String(sent.id)
		w.Key("name").String(it.names.of(c.Name))
		w.Key(field).String(args)
	})
	if it.results[c.ID] == 0 && !it.last {
		it.rep.Lose("tool_result:missing") // the upstream wants a result of every earlier call
		it.answer(sent, []byte(`"(no result)"`))
		return
	}
	it.results[c.ID]--
	it.calls[c.ID] = append(it.calls[c.ID], sent)
}

// take returns the first call with this id of the client that has no result yet.
// Clients of other shapes may use one id for several calls. The results then belong to the calls in
// their order, which is the only sequence that such a client can mean.
func (it *items) take(id string) (sentCall, bool) {
	waiting := it.calls[id]
	if len(waiting) == 0 {
		return sentCall{}, false
	}
	it.calls[id] = waiting[1:]
	return waiting[0], true
}

// errorMark is put before the result of a call that failed, because results have no flag for it
// here.
const errorMark = "Error: "

// result writes the result of a call. A result without a call becomes text, unless the call is in a
// stored response that the request continues.
func (it *items) result(r *dialogue.Result) *dialogue.Error {
	it.flushMessage()
	call, known := it.take(r.CallID)
	if !known {
		if it.foreign || it.req.PreviousResponseID == "" {
			return it.orphan(r)
		}
		call = sentCall{r.CallID, r.Custom} // of the stored response
	}
	output, err := it.output(r)
	if err != nil {
		return err
	}
	it.answer(call, output)
	return nil
}

// answer writes the item of a result.
func (it *items) answer(call sentCall, output []byte) {
	kind := "function_call_output"
	if call.custom {
		kind = "custom_tool_call_output"
	}
	it.item(kind, func(w *jsonw.Writer) {
		w.Key("call_id").String(call.id)
		w.Key("output").Raw(output)
	})
}

// orphan writes a result whose call is not in the input as a text of the user. The upstream would refuse it as an
// output.
func (it *items) orphan(r *dialogue.Result) *dialogue.Error {
	it.rep.Lose("tool_result:orphan")
	it.text(string(dialogue.User), resultText(r))
	for i := range r.Parts {
		if r.Parts[i].Kind != dialogue.MediaPart {
			continue
		}
		if err := it.media(dialogue.User, &r.Parts[i]); err != nil {
			return err
		}
	}
	it.flushMessage()
	return nil
}

// resultText returns the text of a result without its media.
func resultText(r *dialogue.Result) string {
	if len(r.Object) > 0 && !hasText(r.Parts) {
		return mark(r, objectText(r.Object))
	}
	var b strings.Builder
	for i := range r.Parts {
		b.WriteString(r.Parts[i].Text)
	}
	return mark(r, b.String())
}

// mark puts errorMark before the text of a failed call.
// A text that has the mark already keeps one: the history comes back with every turn, and would
// grow by a mark each time.
func mark(r *dialogue.Result, text string) string {
	if r.IsError && !strings.HasPrefix(text, errorMark) {
		return errorMark + text
	}
	return text
}

// hasText reports whether a part has text that is not empty.
func hasText(parts []dialogue.Part) bool {
	for i := range parts {
		if parts[i].Kind == dialogue.TextPart && parts[i].Text != "" {
			return true
		}
	}
	return false
}

// objectText returns a result that a gemini client gave as an object. The customary frames
// {"output": x} and {"result": x} are removed, because they add nothing to x.
func objectText(object json.RawMessage) string {
	v := fields.View(object)
	members := 0
	var only gjson.Result
	v.ForEach(func(key, m gjson.Result) bool {
		members++
		if key.Str == "output" || key.Str == "result" {
			only = m
		}
		return members < 2
	})
	switch {
	case members != 1 || !only.Exists():
		return string(object)
	case only.Type == gjson.String:
		return only.Str
	}
	return only.Raw
}

// output returns the output member of a result: a string, or parts if it has media.
// A string is written wherever it can hold the result. Parts are needed for media only.
func (it *items) output(r *dialogue.Result) ([]byte, *dialogue.Error) {
	var w jsonw.Writer
	said := resultText(r)
	media := false
	for i := range r.Parts {
		media = media || r.Parts[i].Kind == dialogue.MediaPart
		it.rep.LoseIf(r.Parts[i].Kind == dialogue.ServerPart, "server_tool")
	}
	if !media {
		return w.String(said).Buf, nil
	}
	w.Array()
	if r.IsError || !hasText(r.Parts) {
		appendText(&w, said)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		switch {
		case p.Kind == dialogue.MediaPart:
			if err := it.appendMedia(&w, p); err != nil {
				return nil, err
			}
		case !r.IsError && p.Kind != dialogue.ServerPart:
			appendText(&w, p.Text)
		}
	}
	return w.End().Buf, nil
}

// appendText writes a text part, unless the text is empty.
func appendText(w *jsonw.Writer, text string) {
	if text != "" {
		w.Object().Key("type").String("input_text").Key("text").String(text).End()
	}
}

// server writes an item of a tool that an upstream of this shape ran itself. Those of other shapes
// are lost.
func (it *items) server(p *dialogue.Part) {
	it.flushMessage()
	if p.Origin != Name || len(p.Opaque) == 0 {
		it.rep.Lose("server_tool")
		return
	}
	it.flushThinking()
	it.n++
	it.w.Raw(p.Opaque)
}

// appendMedia writes a content part with media. It fails for media that the shape has no part for
// and for files of another provider.
func (it *items) appendMedia(w *jsonw.Writer, p *dialogue.Part) *dialogue.Error {
	m := p.Media
	if m.FileID != "" && m.FileIDs != traits.FileIDs {
		return dialogue.UnsupportedContent("a file of another provider cannot be used with this model")
	}
	if m.Kind != dialogue.File || m.Text != "" || m.URL != "" {
		it.rep.LoseFileName(m)
	}
	switch m.Kind {
	case dialogue.Image:
		appendImage(w, m)
	case dialogue.File:
		appendFile(w, m)
	case dialogue.Audio:
		return appendAudio(w, m)
	default:
		return dialogue.UnsupportedContent("this model does not take " + string(m.Kind) + " input")
	}
	return nil
}

// appendImage writes an image by id, address or value.
func appendImage(w *jsonw.Writer, m *dialogue.Media) {
	w.Object().Key("type").String("input_image")
	if m.FileID != "" {
		w.Key("file_id").String(m.FileID)
	} else {
		w.Key("image_url").String(address(m, "image/png"))
	}
	if m.Detail != "" {
		w.Key("detail").String(m.Detail)
	}
	w.End()
}

// appendFile writes a document. Text is sent as text, because upstreams take only PDF files by value.
func appendFile(w *jsonw.Writer, m *dialogue.Media) {
	if m.Text != "" {
		appendText(w, m.Text)
		return
	}
	w.Object().Key("type").String("input_file")
	switch {
	case m.FileID != "":
		w.Key("file_id").String(m.FileID)
	case m.URL != "":
		w.Key("file_url").String(m.URL)
	default:
		w.Key("filename").String(m.FileName()) // file_data needs one
		w.Key("file_data").String(address(m, "application/pdf"))
	}
	w.End()
}

// address returns the URL of m, or a data URL with its contents. mime is the type for media without
// one.
func address(m *dialogue.Media, mime string) string {
	if m.URL != "" {
		return m.URL
	}
	if m.MIME != "" {
		mime = m.MIME
	}
	return "data:" + mime + ";base64," + m.Base64
}

// appendAudio writes sound, which this shape has only by value.
func appendAudio(w *jsonw.Writer, m *dialogue.Media) *dialogue.Error {
	if m.Base64 == "" {
		return dialogue.UnsupportedContent("this model takes audio by value only")
	}
	w.Object().Key("type").String("input_audio")
	w.Key("input_audio").Object()
	w.Key("data").String(m.Base64)
	w.Key("format").String(audioFormat(m.MIME))
	w.End().End()
	return nil
}

// audioFormat returns the vendor's word for a media type.
// It is the inverse of audioMIME, and also reads types with the prefix x- (audio/x-wav).
func audioFormat(mime string) string {
	format := strings.TrimPrefix(strings.TrimPrefix(mime, "audio/"), "x-")
	if format == "mpeg" {
		return "mp3"
	}
	return format
}
