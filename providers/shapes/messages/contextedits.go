package messages

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// contextManagement is the member in which a client asks for edits of a conversation that grows long.
const contextManagement = "context_management"

// Values of the vendor for an edit that does not give its own: it clears once the prompt has
// 100,000 tokens, and keeps the last three calls or the last answer with thinking.
const (
	defaultAfterTokens  = 100_000
	defaultKeptCalls    = 3
	defaultKeptThinking = 1
)

// contextEdits reads the edits that any target can be made to follow. only is false if there are others: the vendor's
// compaction, those of later versions, and a second edit of a kind, each of which would cost a walk over the turns.
func contextEdits(v gjson.Result) (edits []dialogue.ContextEdit, only bool) {
	only = v.IsObject()
	seen := map[bool]bool{}
	v.Get("edits").ForEach(func(_, edit gjson.Result) bool {
		e := dialogue.ContextEdit{Type: strings.Clone(edit.Get("type").Str)}
		switch {
		case strings.HasPrefix(e.Type, "clear_thinking_"):
			e.Thinking = true
			e.Keep = amount(edit, "keep", "thinking_turns", defaultKeptThinking)
			if keep := edit.Get("keep"); keep.Str == "all" || keep.Get("type").Str == "all" {
				e.Keep = math.MaxInt64
			}
		case strings.HasPrefix(e.Type, "clear_tool_uses_"):
			e.Keep = amount(edit, "keep", "tool_uses", defaultKeptCalls)
			e.AfterCalls = amount(edit, "trigger", "tool_uses", 0)
			if e.AfterTokens = amount(edit, "trigger", "input_tokens", 0); e.AfterCalls == 0 && e.AfterTokens == 0 {
				e.AfterTokens = defaultAfterTokens
			}
			e.AtLeast = amount(edit, "clear_at_least", "input_tokens", 0)
			e.AllArgs = edit.Get("clear_tool_inputs").Bool()
			e.Args, e.Exclude = nameSet(edit.Get("clear_tool_inputs")), nameSet(edit.Get("exclude_tools"))
		default:
			only = false
			return true
		}
		if seen[e.Thinking] {
			only = false
			return true
		}
		seen[e.Thinking] = true
		edits = append(edits, e)
		return true
	})
	return edits, only
}

// amount returns the value of a member like {"type": kind, "value": 5}, or otherwise if it is not given.
func amount(edit gjson.Result, member, kind string, otherwise int64) int64 {
	m := edit.Get(member)
	if n := m.Get("value"); m.Get("type").Str == kind && n.Type == gjson.Number {
		return max(n.Int(), 0)
	}
	return otherwise
}

// nameSet returns the names in a list, or nil if v is not a list. clear_tool_inputs may also be a
// boolean.
func nameSet(v gjson.Result) map[string]bool {
	if !v.IsArray() {
		return nil
	}
	names := map[string]bool{}
	v.ForEach(func(_, name gjson.Result) bool {
		names[name.Str] = true
		return true
	})
	return names
}

// writeAppliedEdits writes which of the edits that the client asked for were made by this gateway,
// with the number of tokens saved. A client that did not ask gets no such member:
//
//	"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919",
//	  "cleared_tool_uses":8,"cleared_input_tokens":50000}]}
func (h *head) writeAppliedEdits(w *jsonw.Writer) {
	if h.req.Inbound != Name || len(h.req.ContextEdits) == 0 {
		return
	}
	w.Key(contextManagement).Object().Key("applied_edits").Array()
	for i := range h.req.ContextEdits {
		e := &h.req.ContextEdits[i]
		if e.Cleared == 0 {
			continue
		}
		counted := "cleared_tool_uses"
		if e.Thinking {
			counted = "cleared_thinking_turns"
		}
		w.Object().Key("type").String(e.Type).Key(counted).Int(int64(e.Cleared))
		w.Key("cleared_input_tokens").Int(e.Tokens).End()
	}
	w.End().End()
}
