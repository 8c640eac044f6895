package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// turn returns one message of the client in the neutral form. Members other than role and content
// are recorded as ignored. The role system becomes a turn of the user with SystemParts, which is
// how the neutral form has a system message that comes late in a conversation.
func (d *decoder) turn(v gjson.Result) dialogue.Turn {
	role := v.Get("role").String()
	d.req.RecordIgnoredExcept("messages", v, "role", "content")
	turn := dialogue.Turn{Role: dialogue.User}
	if role == "assistant" {
		turn.Role = dialogue.Assistant
	}
	turn.Parts = d.content(v.Get("content"), 0)
	if role == "system" {
		for i := range turn.Parts {
			if turn.Parts[i].Kind == dialogue.TextPart {
				turn.Parts[i].Kind = dialogue.SystemPart
			}
		}
	}
	return turn
}

// content returns the parts of a message's content, which is a string or an array of blocks. depth
// is 0 for a message and 1 for the content of a tool_result.
func (d *decoder) content(v gjson.Result, depth int) []dialogue.Part {
	if v.Type == gjson.String {
		return []dialogue.Part{{Text: v.Str}}
	}
	var parts []dialogue.Part
	v.ForEach(func(_, b gjson.Result) bool {
		parts = d.block(parts, b, depth)
		return true
	})
	return parts
}

// block appends the parts of one content block to parts. Most blocks become one part. A document
// with images and a call with remembered thoughts become several. A block that only this vendor
// knows becomes a ServerPart, which an encoder of this shape sends back as it came and any other
// shape drops.
func (d *decoder) block(parts []dialogue.Part, b gjson.Result, depth int) []dialogue.Part {
	p := dialogue.Part{CacheHint: raw(b.Get("cache_control"))}
	kind := b.Get("type").String()
	if known := blockFields[kind]; known != nil {
		d.req.RecordIgnoredExcept("messages.content", b, known...)
		d.req.RecordIgnoredExcept("messages.content.source", b.Get("source"), "type", "media_type", "data", "url",
			"file_id", "content")
	}
	if depth > 0 && kind == "tool_result" {
		kind = "" // Check refuses it
	}
	switch kind {
	case "text":
		p.Text, p.Citations = b.Get("text").String(), raw(b.Get("citations"))
		// The neutral form has no place for citations in history, so a cited text keeps its
		// original JSON.
		if p.Citations != nil {
			keep(&p, b)
		}
	case "mid_conv_system":
		p.Kind, p.Text = dialogue.SystemPart, plain(b)
		d.nested("messages.content.content", b.Get("content"))
		keep(&p, b)
	case "search_result":
		p.Text = strings.TrimSpace(b.Get("title").String() + "\n" + b.Get("source").String() + "\n" + plain(b))
		d.nested("messages.content.content", b.Get("content"))
		keep(&p, b)
	case "image":
		p.Kind, p.Media = dialogue.MediaPart, media(dialogue.Image, b)
		keep(&p, b)
	case "document":
		return d.document(parts, p, b)
	case "tool_use":
		p.Kind = dialogue.CallPart
		p.Call = d.call(b)
		// The thoughts before a call are missing if this gateway hid them from the client
		// (reply.go). Upstreams that demand them get them from here.
		for _, t := range d.recall.Before(p.Call.ID) {
			parts = append(parts, dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &t, Text: t.Text})
		}
	case "tool_result":
		p.Kind = dialogue.ResultPart
		p.Result = &dialogue.Result{
			CallID:  b.Get("tool_use_id").String(),
			Parts:   d.content(b.Get("content"), depth+1),
			IsError: b.Get("is_error").Bool(),
		}
	case "thinking", "redacted_thinking":
		p.Kind, p.Thinking = dialogue.ThinkingPart, d.thought(b)
		p.Text = p.Thinking.Text
	default:
		p.Kind = dialogue.ServerPart
		keep(&p, b)
	}
	return append(parts, p)
}

// blockFields are the members of a block that are read. caller stands in
// every call that comes back with the history, and says nothing of what was called.
var blockFields = map[string][]string{
	"text":            {"type", "text", "cache_control"},
	"mid_conv_system": {"type", "content", "cache_control"},
	"search_result":   {"type", "title", "source", "content", "cache_control"},
	"image":           {"type", "source", "cache_control"},
	"document":        {"type", "source", "title", "cache_control"},
	"tool_use":        {"type", "id", "name", "input", "cache_control", "caller"},
	"tool_result":     {"type", "tool_use_id", "content", "is_error", "cache_control"},
}

// nested records, under path, the members of inner blocks that are not read. Of such blocks, as in
// a search result, only the text and the source reach the neutral form.
func (d *decoder) nested(path string, blocks gjson.Result) {
	if !blocks.IsArray() {
		return
	}
	blocks.ForEach(func(_, b gjson.Result) bool {
		d.req.RecordIgnoredExcept(path, b, "type", "text", "source")
		return true
	})
}

// call returns the call of a tool_use block. The block has no member for Gemini's thought
// signature, so the signature comes from the cache in which head.remember put it when the call was
// sent to this client.
func (d *decoder) call(b gjson.Result) *dialogue.Call {
	c := &dialogue.Call{ID: b.Get("id").String(), Name: b.Get("name").String(), Args: b.Get("input").Raw}
	c.Signature, _ = d.env.RecallSignature(c.ID)
	return c
}

// keep stores the block's JSON in the part, so that an encoder of this shape can send it unchanged.
// Members that the neutral form does not have survive that way.
func keep(p *dialogue.Part, b gjson.Result) {
	p.Origin, p.Opaque = Name, fields.Raw(b)
}

// plain returns the text of a block's content, a string or a list of blocks, whose texts it joins
// with newlines. Other blocks in the list are left out.
func plain(b gjson.Result) string {
	content := b.Get("content")
	if content.Type == gjson.String {
		return content.Str
	}
	var lines []string
	content.ForEach(func(_, e gjson.Result) bool {
		if text := e.Get("text").String(); text != "" {
			lines = append(lines, text)
		}
		return true
	})
	return strings.Join(lines, "\n")
}

// media returns the image or document that a block's source holds: inline data, an address, the id
// of an uploaded file, or text.
func media(kind dialogue.MediaKind, b gjson.Result) *dialogue.Media {
	source := b.Get("source")
	m := &dialogue.Media{Kind: kind, MIME: source.Get("media_type").String(), Name: b.Get("title").String()}
	switch source.Get("type").String() {
	case "base64":
		m.Base64 = source.Get("data").String()
	case "url":
		m.URL = source.Get("url").String()
	case "file":
		m.FileID, m.FileIDs = source.Get("file_id").String(), traits.FileIDs
	case "text":
		m.MIME, m.Text = "text/plain", source.Get("data").String()
	case "content":
		m.MIME, m.Text = "text/plain", plain(source)
	}
	return m
}

// document reads a document. One made of blocks may hold images, which no other
// shape's document can: they follow it as parts of their own.
func (d *decoder) document(parts []dialogue.Part, p dialogue.Part, b gjson.Result) []dialogue.Part {
	p.Kind, p.Media = dialogue.MediaPart, media(dialogue.File, b)
	d.nested("messages.content.source.content", b.Get("source.content"))
	var images []dialogue.Part
	b.Get("source.content").ForEach(func(_, e gjson.Result) bool {
		if e.Get("type").String() == "image" {
			images = append(images, dialogue.Part{Kind: dialogue.MediaPart, Media: media(dialogue.Image, e)})
		}
		return true
	})
	if len(images) == 0 {
		keep(&p, b)
	}
	return append(append(parts, p), images...)
}

// thought returns the reasoning of a thinking or redacted_thinking block. Its signature or data is
// the vendor's proof, or a seal in which this gateway gave the client the reasoning of another
// shape. A seal is opened, and the original proof goes back to its own vendor. A seal that does not
// open, because it was changed or another gateway made it, leaves only the text.
func (d *decoder) thought(b gjson.Result) *dialogue.Thinking {
	t := &dialogue.Thinking{Text: b.Get("thinking").String()}
	carrier := b.Get("signature").String()
	redacted := b.Get("type").String() == "redacted_thinking"
	if redacted {
		carrier = b.Get("data").String()
	}
	switch {
	case carrier == "":
	case dialogue.Sealed(carrier):
		if sealed, ok := d.env.Sealer.Open(carrier); ok {
			if !redacted {
				sealed.Text = t.Text
			}
			return sealed
		}
	case redacted:
		t.Redacted, t.Origin = carrier, Name
	default:
		t.Signature, t.Origin = carrier, Name
	}
	return t
}
