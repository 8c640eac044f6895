package gemini

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
)

// content adds one content as one turn. A content without a role, or with the role function of old
// clients, is the user's.
func (d *decoder) content(v gjson.Result) {
	t := turn{d: d, Turn: dialogue.Turn{Role: dialogue.User}}
	d.unread("contents", v, "role", "parts")
	if str(field(v, "role")) == "model" {
		t.Role = dialogue.Assistant
	}
	each(field(v, "parts"), func(_ int, v gjson.Result) bool {
		p := readPart(v)
		if p.extended {
			d.unread("contents.parts", v, p.data, "thought", "thoughtSignature")
		}
		if known := dataFields[p.data]; known != nil {
			d.unread("contents.parts."+p.data, p.value, known...)
		}
		// Members that the neutral form does not have are only reported, because a part with them is still understood.
		t.part(p)
		return true
	})
	if len(t.Parts) > 0 {
		d.req.Turns = append(d.req.Turns, t.Turn)
	}
}

// dataFields are the members of a part's data that are read.
var dataFields = map[string][]string{
	"inlineData":       {"mimeType", "data", "displayName"},
	"fileData":         {"mimeType", "fileUri", "displayName"},
	"functionCall":     {"id", "name", "args"},
	"functionResponse": {"id", "name", "response", "parts"},
}

// wirePart is a part with the members that most readers need, found in one pass.
type wirePart struct {
	whole     gjson.Result
	data      string // name of the data field
	value     gjson.Result
	thought   bool
	signature string
	extended  bool // says more about its data: videoMetadata, mediaResolution
}

// readPart returns a part with the kind of its data, which is an empty text for a part that has only a thought or a
// signature. A part that has further members is kept as it is for the same shape.
func readPart(v gjson.Result) wirePart {
	p := wirePart{whole: v}
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "text", "inlineData", "fileData", "functionCall", "functionResponse",
			"executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			p.data, p.value = name, v
		case "thought":
			p.thought = boolean(v)
		case "thoughtSignature":
			p.signature = str(v)
		default:
			p.extended = true
		}
		return true
	})
	if p.data == "" && (p.thought || p.signature != "") {
		p.data = "text"
	}
	return p
}

// turn collects the parts of one content.
type turn struct {
	dialogue.Turn
	d *decoder
	// thinking is set if the last part is a thought that may go on with the next one.
	thinking bool
}

// add appends a part, which ends a thought.
func (t *turn) add(p dialogue.Part) {
	t.Parts, t.thinking = append(t.Parts, p), false
}

// part appends one part of the wire. A data field that only this vendor has becomes a ServerPart.
func (t *turn) part(p wirePart) {
	switch p.data {
	case "text":
		if p.thought {
			t.thought(p)
			return
		}
		t.text(p)
	case "inlineData", "fileData":
		t.media(p)
	case "functionCall":
		t.call(p)
	case "functionResponse":
		t.add(dialogue.Part{Kind: dialogue.ResultPart, Result: t.d.result(p.value)})
	case "":
	default:
		t.add(dialogue.Part{Kind: dialogue.ServerPart, Origin: Name, Opaque: raw(p.whole)})
	}
}

// text appends visible text. A signature on it becomes a thought without words behind it, which the
// encoder puts on the text again.
func (t *turn) text(p wirePart) {
	if p.value.Str != "" {
		t.add(dialogue.Part{Kind: dialogue.TextPart, Text: p.value.Str})
	}
	if th := t.d.opened(p.signature); th != nil {
		if th.Origin != Name {
			th.TextAfter += len(p.value.Str) // the emitter let the text take another vendor's thought along
		}
		t.restore(th)
	}
}

// call appends a functionCall, and before it the thought of another vendor that its signature may
// carry.
func (t *turn) call(p wirePart) {
	if dialogue.Sealed(p.signature) {
		if th := t.d.opened(p.signature); th != nil {
			t.restore(th)
		}
	}
	t.add(dialogue.Part{Kind: dialogue.CallPart, Call: t.d.call(p)})
}

// restore puts the thought that a seal carries back to its place. Clients may drop parts with
// thoughts, so the emitter put the seal on a later part, with the length of the text between the
// two (Thinking.TextAfter). Clients may also keep that text in the pieces of the stream. A client
// that was shown the thought may have sent its words back too: they stand right there without a
// signature, possibly joined with thoughts that followed, and are replaced.
func (t *turn) restore(th *dialogue.Thinking) {
	at := len(t.Parts)
	for after := th.TextAfter; after > 0 && at > 0 && t.d.searched < maxSearched; t.d.searched++ {
		if t.Parts[at-1].Kind != dialogue.TextPart {
			break
		}
		at--
		after -= len(t.Parts[at].Text)
	}
	t.thinking, th.TextAfter = false, 0
	if at > 0 && th.Origin != Name && t.Parts[at-1].Kind == dialogue.ThinkingPart {
		shown := t.Parts[at-1].Thinking
		rest, found := strings.CutPrefix(shown.Text, th.Text)
		if found && th.Text != "" && *shown == (dialogue.Thinking{Text: shown.Text}) {
			at--
			if shown.Text = rest; rest == "" {
				t.Parts = slices.Delete(t.Parts, at, at+1)
			}
		}
	}
	t.Parts = slices.Insert(t.Parts, at, dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: th})
}

// thought joins the pieces of a streamed thought, which clients keep as separate parts. A signature
// ends it.
// The pieces are joined, because a thought without its end has no signature, and a target of
// another shape would see as many thoughts as there were chunks.
func (t *turn) thought(p wirePart) {
	if !t.thinking {
		t.add(dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &dialogue.Thinking{}})
		t.thinking = true
	}
	th := t.Parts[len(t.Parts)-1].Thinking
	th.Text += p.value.Str
	if p.signature == "" {
		return
	}
	if opened := t.d.opened(p.signature); opened != nil {
		opened.Text = cmp.Or(opened.Text, th.Text)
		*th = *opened
	}
	t.thinking = false
}

// opened returns the thought of a thoughtSignature: Google's own proof, or what this gateway sealed
// for another vendor. It returns nil for the documented stand-in and for a seal that does not open.
// A seal that does not open was changed, or was made with another key. The conversation can go on
// without the thought, so that is no error.
func (d *decoder) opened(signature string) *dialogue.Thinking {
	switch {
	case signature == "" || signature == anySignature:
		return nil
	case !dialogue.Sealed(signature):
		return &dialogue.Thinking{Signature: signature, Origin: Name}
	}
	th, ok := d.env.Sealer.Open(signature)
	if !ok {
		return nil
	}
	return th
}

// media adds a part with media.
func (t *turn) media(p wirePart) {
	part := mediaPart(p)
	if p.extended {
		part.Opaque = raw(p.whole)
	}
	t.add(part)
}

// mediaPart returns the media of a part.
func mediaPart(p wirePart) dialogue.Part {
	m := readMedia(p.data, p.value)
	m.ReadText()
	return dialogue.Part{Kind: dialogue.MediaPart, Media: m, Origin: Name}
}

// readMedia returns the media of inlineData or fileData. The address of a file in Google's stores
// is an id: only the project that owns the file can read it.
func readMedia(data string, v gjson.Result) *dialogue.Media {
	m := &dialogue.Media{MIME: str(field(v, "mimeType")), Name: str(field(v, "displayName"))}
	m.Kind = mediaKind(m.MIME)
	if data == "inlineData" {
		m.Base64 = standardBase64(str(field(v, "data")))
		return m
	}
	if uri := str(field(v, "fileUri")); public(uri) {
		m.URL = uri
		m.Kind = mediaKind(mimeOf(m)) // by the extension, if it has no type
	} else {
		m.FileID, m.FileIDs = uri, traits.FileIDs
	}
	return m
}

// mediaKind returns the kind for a media type. Anything but images, audio and video is a document.
func mediaKind(mime string) dialogue.MediaKind {
	major, _, _ := strings.Cut(mime, "/")
	switch strings.ToLower(major) {
	case "image":
		return dialogue.Image
	case "audio":
		return dialogue.Audio
	case "video":
		return dialogue.Video
	}
	return dialogue.File
}

// standardBase64 returns base64 in the standard alphabet with padding. Proto JSON also allows the
// URL-safe alphabet and missing padding, which no other shape does.
func standardBase64(s string) string {
	if strings.ContainsAny(s, "-_") {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	if n := len(s) % 4; n > 1 {
		s += "=="[:4-n]
	}
	return s
}

// public reports whether an upstream of any vendor can fetch the address.
// Google's own stores are excluded although their addresses are https, since they need the
// credentials of the project.
func public(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return !strings.HasSuffix(u.Hostname(), ".googleapis.com")
}

// call returns a functionCall, and gives it an id if it has none, as the calls of older models.
func (d *decoder) call(p wirePart) *dialogue.Call {
	c := &dialogue.Call{ID: str(field(p.value, "id")), Name: str(field(p.value, "name")),
		Args: field(p.value, "args").Raw}
	if c.ID == "" {
		c.ID = d.callIDs.Of(c)
	}
	if !dialogue.Sealed(p.signature) && p.signature != anySignature {
		c.Signature = p.signature
	}
	d.open = append(d.open, c)
	return c
}

// result returns a functionResponse with the id of its call.
func (d *decoder) result(v gjson.Result) *dialogue.Result {
	r := &dialogue.Result{Name: str(field(v, "name"))}
	r.CallID = d.answered(str(field(v, "id")), r.Name)
	response := field(v, "response")
	r.Object = raw(response)
	if text, failed := resultText(response); text != "" {
		r.IsError = failed
		r.Parts = append(r.Parts, dialogue.Part{Kind: dialogue.TextPart, Text: text})
	}
	if parts := field(v, "parts"); parts.Exists() {
		each(parts, func(_ int, v gjson.Result) bool {
			if p := readPart(v); p.data == "inlineData" || p.data == "fileData" {
				r.Parts = append(r.Parts, mediaPart(p))
			}
			return true
		})
	}
	return r
}

// answered returns the id of the call that a result belongs to: that with its id, else the first
// unanswered one of its name. A result without a call gets its own id, or a new one.
// The search by name takes the oldest open call, which is the order in which clients without ids
// answer.
func (d *decoder) answered(id, name string) string {
	at := -1
	for i, c := range d.open {
		if id != "" && c.ID == id {
			at = i
			break
		}
		if at < 0 && c.Name == name {
			at = i
		}
	}
	if at < 0 {
		if id != "" {
			return id
		}
		return d.callIDs.Of(&dialogue.Call{Name: name})
	}
	found := d.open[at].ID
	d.open = append(d.open[:at], d.open[at+1:]...)
	return found
}

// resultText returns the text of a response object. A single string under output, result or error,
// the keys of the vendor's documents, is that string. Any other object is its JSON. failed is true
// under error.
func resultText(response gjson.Result) (text string, failed bool) {
	if !response.IsObject() {
		return "", false
	}
	members := 0
	var name string
	var value gjson.Result
	response.ForEach(func(k, v gjson.Result) bool {
		members++
		name, value = k.Str, v
		return members < 2
	})
	if members != 1 {
		return response.Raw, false
	}
	failed = name == "error"
	if failed || name == "output" || name == "result" {
		if value.Type == gjson.String {
			return value.Str, failed
		}
	}
	return response.Raw, failed
}
