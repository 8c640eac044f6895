package responses

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// input reads the items, each into a turn of its own. The encoder of the target groups them as its
// shape requires. A string is one message of the user.
func (d *decoder) input(v gjson.Result) *dialogue.Error {
	if v.Type == gjson.String {
		if v.Str != "" {
			d.turn(dialogue.User, dialogue.Part{Kind: dialogue.TextPart, Text: v.Str})
		}
		return nil
	}
	var failed *dialogue.Error
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		failed = d.item(i, item)
		i++
		return failed == nil
	})
	return failed
}

// turn adds a turn, unless it has no parts.
func (d *decoder) turn(role dialogue.Role, parts ...dialogue.Part) {
	if len(parts) > 0 {
		d.req.Turns = append(d.req.Turns, dialogue.Turn{Role: role, Parts: parts})
	}
}

// item reads the i-th item of the input. A type without a case is an item of a tool that the vendor
// ran. It becomes a ServerPart, which only an upstream of this shape gets. The errors are for
// strings of JSON beyond the limits, for references to items that are not stored, and for summaries
// of another owner.
func (d *decoder) item(i int, item gjson.Result) *dialogue.Error {
	kind := itemType(item)
	if known := itemFields[kind]; known != nil {
		d.req.RecordIgnoredExcept("input", item, known...)
	}
	switch kind {
	case "message":
		d.message(item)
	case "function_call", "custom_tool_call":
		call := readCall(item)
		if bad := fields.CheckInner("input."+strconv.Itoa(i)+".arguments", call.Args); bad != nil && !call.Custom {
			return bad
		}
		d.turn(dialogue.Assistant, dialogue.Part{Kind: dialogue.CallPart, Call: call})
	case "function_call_output", "custom_tool_call_output":
		parts := d.contentParts(item.Get("output"))
		if bad := fields.CheckInnerParts("input."+strconv.Itoa(i)+".output", parts); bad != nil {
			return bad
		}
		d.turn(dialogue.User, dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{
			CallID: item.Get("call_id").Str,
			Parts:  parts,
			Custom: kind == "custom_tool_call_output",
		}})
	case additionalTools:
		d.additional(item.Get("tools"))
	case "reasoning":
		d.turn(dialogue.Assistant, dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: d.thinking(item)})
	case "item_reference":
		// Leaving it out would change the question.
		return dialogue.Unsupported("input["+strconv.Itoa(i)+"]",
			"the item it refers to is not known here; send the item itself")
	case trigger:
		d.compaction = dialogue.CompactionItem
	case "compaction", "compaction_summary", "context_compaction":
		return d.summary("input["+strconv.Itoa(i)+"]", item)
	default:
		d.turn(authorOf(kind), dialogue.Part{Kind: dialogue.ServerPart, Origin: Name, Opaque: raw(item)})
	}
	return nil
}

// itemFields are the members of an item that are read, and those that only say
// how it came to be: its id and its status.
var itemFields = map[string][]string{
	"message":                 {"type", "id", "status", "role", "content"},
	"function_call":           {"type", "id", "status", "call_id", "name", "namespace", "arguments"},
	"custom_tool_call":        {"type", "id", "status", "call_id", "name", "namespace", "input"},
	"function_call_output":    {"type", "id", "status", "call_id", "output"},
	"custom_tool_call_output": {"type", "id", "status", "call_id", "output"},
	"reasoning":               {"type", "id", "status", "summary", "content", "encrypted_content"},
	additionalTools:           {"type", "id", "status", "role", "tools"},
}

// partFields are the members of a content part that are read. The log
// probabilities of what was said are no part of what is asked.
var partFields = map[string][]string{
	"input_text":  {"type", "text"},
	"output_text": {"type", "text", "logprobs"},
	"text":        {"type", "text"},
	"refusal":     {"type", "refusal"},
	"input_image": {"type", "image_url", "file_id", "detail"},
	"input_file":  {"type", "filename", "file_data", "file_url", "file_id"},
	"input_audio": {"type", "input_audio"},
}

// authorOf returns the role that writes items of a type that only this shape has.
func authorOf(kind string) dialogue.Role {
	if strings.HasSuffix(kind, "_output") || strings.HasSuffix(kind, "_response") {
		return dialogue.User
	}
	return dialogue.Assistant
}

// message reads a message. The roles system and developer mean the same here.
func (d *decoder) message(item gjson.Result) {
	parts := d.contentParts(item.Get("content"))
	switch item.Get("role").Str {
	case "assistant":
		// A client that sends our items back sends the id under which the signature of the
		// text is remembered.
		if v, ok := d.env.RecallSignature(item.Get("id").Str); ok {
			parts = append(parts, dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: signatureOfText(v)})
		}
		d.turn(dialogue.Assistant, parts...)
	case "user":
		d.turn(dialogue.User, parts...)
	default:
		d.system(parts)
	}
}

// system adds the text of a system or developer message to the prompt at the front, if no turn
// precedes it, and otherwise as a turn at its place.
// A system message in the middle keeps its place, because moving it to the front would change what
// "from now on" refers to. Whether a target can have one there is decided by its encoder.
func (d *decoder) system(parts []dialogue.Part) {
	if len(d.req.Turns) == 0 {
		d.req.System = append(d.req.System, d.texts(parts, dialogue.TextPart)...)
		return
	}
	d.turn(dialogue.User, d.texts(parts, dialogue.SystemPart)...)
}

// texts returns the text of a system message as parts of that kind. Such a message can have nothing else, so its media
// are recorded as lost.
func (d *decoder) texts(parts []dialogue.Part, kind dialogue.PartKind) []dialogue.Part {
	var out []dialogue.Part
	for _, p := range parts {
		if p.Kind == dialogue.TextPart && p.Text != "" {
			out = append(out, dialogue.Part{Kind: kind, Text: p.Text})
		}
		if p.Kind == dialogue.MediaPart {
			d.req.Lost = append(d.req.Lost, "system:"+string(p.Media.Kind))
		}
	}
	return out
}

// contentParts reads the content of a message or the output of a call.
func (d *decoder) contentParts(v gjson.Result) []dialogue.Part {
	if v.Type == gjson.String {
		return []dialogue.Part{{Kind: dialogue.TextPart, Text: v.Str}}
	}
	var parts []dialogue.Part
	v.ForEach(func(_, p gjson.Result) bool {
		if known := partFields[p.Get("type").Str]; known != nil {
			d.req.RecordIgnoredExcept("input.content", p, known...)
			d.req.RecordIgnoredExcept("input.content.input_audio", p.Get("input_audio"), "data", "format")
		}
		if part, ok := readPart(p); ok {
			parts = append(parts, part)
		}
		return true
	})
	return parts
}

// readPart returns one content part. ok is false for an unknown type, which Check has refused for
// translation.
func readPart(p gjson.Result) (dialogue.Part, bool) {
	switch p.Get("type").Str {
	case "input_text", "output_text", "text":
		return dialogue.Part{Kind: dialogue.TextPart, Text: p.Get("text").Str, Origin: Name,
			Citations: raw(p.Get("annotations"))}, true
	case "refusal":
		return dialogue.Part{Kind: dialogue.RefusalPart, Text: p.Get("refusal").Str}, true
	case "input_image":
		return mediaPart(readImage(p)), true
	case "input_file":
		return mediaPart(readFile(p)), true
	case "input_audio":
		audio := p.Get("input_audio")
		format := audio.Get("format").Str
		return mediaPart(&dialogue.Media{Kind: dialogue.Audio, MIME: audioMIME(format),
			Base64: audio.Get("data").Str}), true
	}
	return dialogue.Part{}, false
}

// mediaPart returns a part with media that came in this shape.
func mediaPart(m *dialogue.Media) dialogue.Part {
	return dialogue.Part{Kind: dialogue.MediaPart, Media: m, Origin: Name}
}

// readImage returns an image that is given by a URL, a data URL or the id of an upload.
func readImage(p gjson.Result) *dialogue.Media {
	m := &dialogue.Media{Kind: dialogue.Image, Detail: p.Get("detail").Str}
	if url := p.Get("image_url").Str; url != "" {
		m.SetURL(url)
		return m
	}
	m.FileID, m.FileIDs = p.Get("file_id").Str, traits.FileIDs
	return m
}

// readFile returns a document. Some clients send base64 without "data:" around it. The type then
// follows from the name of the file.
// An image that was sent as a file is treated as an image, because targets of other shapes accept
// it only as that.
func readFile(p gjson.Result) *dialogue.Media {
	m := &dialogue.Media{Kind: dialogue.File, Name: p.Get("filename").Str}
	switch data := p.Get("file_data").Str; {
	case data != "":
		if m.SetURL(data); m.URL != "" { // base64 without the frame of a data URL
			m.URL, m.Base64 = "", data
		}
		if m.MIME == "" {
			m.MIME = dialogue.DocumentMIME(m.Name)
		}
		if strings.HasPrefix(m.MIME, "image/") {
			m.Kind = dialogue.Image
		}
		m.ReadText()
	case p.Get("file_url").Str != "":
		m.URL = p.Get("file_url").Str
	default:
		m.FileID, m.FileIDs = p.Get("file_id").Str, traits.FileIDs
	}
	return m
}

// audioMIME returns the media type for the vendor's word, "mp3" or "wav".
func audioMIME(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// thinking returns the reasoning of an item. encrypted_content may be a seal, in which this gateway
// gave the client the reasoning of another shape, or the vendor's own. An item that has none counts
// as plain text.
func (d *decoder) thinking(item gjson.Result) *dialogue.Thinking {
	shown := summaryText(item)
	if len(item.Get("summary.#.text").Array()) > 0 {
		d.req.RecordIgnored("input", "content", item.Get("content")) // the summary stands for it
	}
	carrier := item.Get("encrypted_content").Str
	if t, ok := d.env.Sealer.Open(carrier); ok {
		t.Text = cmp.Or(t.Text, shown)
		return t
	}
	t := &dialogue.Thinking{Text: shown}
	if carrier != "" && !dialogue.Sealed(carrier) {
		t.Origin, t.Encrypted, t.ItemID = Name, carrier, item.Get("id").Str
	}
	return t
}

// summaryText joins what a reasoning item shows: its summary, else its content.
// The summary comes first, because it stands for the content.
func summaryText(item gjson.Result) string {
	for _, name := range []string{"summary", "content"} {
		var pieces []string
		item.Get(name).ForEach(func(_, s gjson.Result) bool {
			if t := s.Get("text").Str; t != "" {
				pieces = append(pieces, t)
			}
			return true
		})
		if len(pieces) > 0 {
			return strings.Join(pieces, "\n\n")
		}
	}
	return ""
}

// readCall reads a function_call or custom_tool_call item.
func readCall(item gjson.Result) *dialogue.Call {
	c := &dialogue.Call{
		ID:   item.Get("call_id").Str,
		Name: dialogue.QualifiedName(item.Get("namespace").Str, item.Get("name").Str),
		Args: item.Get("arguments").Str,
	}
	if item.Get("type").Str == "custom_tool_call" {
		c.Custom, c.Args = true, item.Get("input").Str
	}
	return c
}
