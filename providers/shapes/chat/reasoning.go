package chat

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// sealFormat marks the reasoning_details that this gateway writes.
const sealFormat = "stagedoor-sd1"

// thoughts returns the thoughts in an assistant's message. reasoning_details that this gateway
// sealed are opened. They hold the text too, because clients shorten the readable copy. Details
// that another gateway or vendor sealed are dropped, because no upstream of another shape could
// verify them. Without details, the readable text counts, or what the gateway remembers of the
// calls.
func (d *decoder) thoughts(m gjson.Result) []dialogue.Part {
	var parts []dialogue.Part
	details := m.Get("reasoning_details")
	chunks.OnlyArray(details).ForEach(func(_, v gjson.Result) bool {
		data := v.Get("data")
		if data.Type != gjson.String {
			return true
		}
		t, ok := d.env.Sealer.Open(data.String())
		if !ok {
			d.lose("reasoning_details")
			return true
		}
		parts = append(parts, dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: t, Text: t.Text, Origin: t.Origin})
		return true
	})
	if len(parts) > 0 {
		return parts
	}
	text := readable(m, details)
	if !details.Exists() {
		parts = d.recalled(m, text)
	}
	if len(parts) == 0 && text != "" {
		parts = append(parts,
			dialogue.Part{Kind: dialogue.ThinkingPart, Text: text, Thinking: &dialogue.Thinking{Text: text}})
	}
	return parts
}

// recalled returns what was thought before the calls of a message whose client has dropped the seals, as LangChain
// does. If the client has kept the readable text, the thoughts must be those of that text.
func (d *decoder) recalled(m gjson.Result, text string) (parts []dialogue.Part) {
	rest, same := text, true
	chunks.OnlyArray(m.Get("tool_calls")).ForEach(func(_, call gjson.Result) bool {
		for _, t := range d.recall.Before(call.Get("id").String()) {
			if text != "" {
				if rest, same = strings.CutPrefix(rest, t.Text); !same {
					return false
				}
			}
			parts = append(parts,
				dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &t, Text: t.Text, Origin: t.Origin})
		}
		return true
	})
	if !same || rest != "" {
		return nil
	}
	return parts
}

// readable returns the text of thoughts that are not sealed.
func readable(m, details gjson.Result) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if v := m.Get(name); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return detailText(details)
}

// detailText joins the readable entries of reasoning_details.
func detailText(details gjson.Result) string {
	var text strings.Builder
	chunks.OnlyArray(details).ForEach(func(_, v gjson.Result) bool {
		for _, name := range []string{"text", "summary"} {
			if s := v.Get(name); s.Type == gjson.String {
				text.WriteString(s.Str)
			}
		}
		return true
	})
	return text.String()
}

// sealed reports whether details hold something that only their maker can read,
// so that a server wants them back.
func sealed(details gjson.Result) bool {
	found := false
	chunks.OnlyArray(details).ForEach(func(_, v gjson.Result) bool {
		found = v.Get("data").Type == gjson.String || v.Get("signature").Type == gjson.String
		return !found
	})
	return found
}

// carries reports whether a thought has a proof that must come back in the next turn.
func carries(t *dialogue.Thinking) bool {
	return t != nil && (t.Signature != "" || t.Redacted != "" || t.Encrypted != "")
}

// writeDetails writes the array that carries one thought to the client: a
// readable copy, if it has a text, and the seal.
func writeDetails(w *jsonw.Writer, t dialogue.Thinking, index int, env *dialogue.Env) {
	w.Array()
	writeDetail(w, t, index, env)
	w.End()
}

// writeDetail writes the entries of one thought: a readable one, if it has text, and one with the
// seal.
//
//	{"type":"reasoning.encrypted","data":"sd1.messages.eyJ...","format":"stagedoor-sd1","index":0}
func writeDetail(w *jsonw.Writer, t dialogue.Thinking, index int, env *dialogue.Env) {
	entry := func(kind, member, value string) {
		w.Object().Key("type").String(kind)
		w.Key(member).String(value)
		w.Key("format").String(sealFormat)
		w.Key("index").Int(int64(index))
		if t.ItemID != "" {
			w.Key("id").String(t.ItemID)
		}
		w.End()
	}
	if t.Text != "" {
		entry("reasoning.text", "text", t.Text)
	}
	entry("reasoning.encrypted", "data", env.Sealer.Seal(&t))
}

// returned returns the reasoning_details that an upstream of this shape sent itself, or nil. Only
// such ones may be sent back to it.
func returned(t *dialogue.Thinking) json.RawMessage {
	if t.Origin != Name || !fields.ValidLenientString(t.Encrypted) {
		return nil
	}
	if !gjson.Parse(t.Encrypted).IsArray() {
		return nil
	}
	return json.RawMessage(t.Encrypted)
}
