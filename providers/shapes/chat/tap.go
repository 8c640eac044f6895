package chat

import (
	"bytes"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// maxReasoning bounds the reasoning of one reply that is kept for the next request.
const maxReasoning = 256 << 10

// reasoningTap watches a reply of a server that wants its reasoning back with the calls, and
// remembers the reasoning by the id of the first call. Clients that drop it, as LangChain does,
// then lose none of it. It exists only for such servers, because it parses chunks that others let
// pass unread.
type reasoningTap struct {
	*chunks.Tap
	env  *dialogue.Env
	text []byte
	full bool // a piece did not fit, so that no further one is kept
}

// Event implements shapes.Watcher.
func (t *reasoningTap) Event(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	if bytes.Contains(data, reasoningMark) || len(t.text) > 0 && bytes.Contains(data, callsMark) {
		t.see(gjson.GetBytes(data, "choices.0.delta"))
	}
	return t.Tap.Event(name, data)
}

// Body implements shapes.Watcher.
func (t *reasoningTap) Body(body []byte) ([]byte, *dialogue.Error) {
	out, bad := t.Tap.Body(body)
	if bad == nil && bytes.Contains(body, reasoningMark) {
		t.see(gjson.GetBytes(body, "choices.0.message"))
	}
	return out, bad
}

// see keeps the reasoning in a delta or message, and hands it to Env.RememberThoughts at the first
// call.
func (t *reasoningTap) see(v gjson.Result) {
	text := v.Get("reasoning_content").Str
	if t.full = t.full || len(t.text)+len(text) > maxReasoning; !t.full {
		t.text = append(t.text, text...)
	}
	if id := v.Get("tool_calls.0.id").Str; id != "" && len(t.text) > 0 {
		t.env.RememberThoughts(id, []dialogue.Thinking{{Text: string(t.text), Origin: Name}})
		t.text = nil
	}
}
