package sandbox

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/schema"
)

// chosen are the tools the answer calls.
func chosen(req *dialogue.Request, p prompt) []*dialogue.Tool {
	callable := callableTools(req)
	if len(callable) == 0 {
		return nil
	}
	asked := askedFor(callable, p)
	if req.Parallel != nil && !*req.Parallel && len(asked) > 1 {
		asked = asked[:1]
	}
	c := req.ToolChoice
	switch {
	case c == nil || c.Mode == dialogue.ToolAuto || c.Mode == dialogue.ToolAllowed && !c.Required:
		return asked
	case c.Mode == dialogue.ToolNone:
		return nil
	case len(asked) > 0:
		return asked
	}
	return callable[:1]
}

// callableTools are the tools a client runs, as far as tool_choice allows them.
func callableTools(req *dialogue.Request) []*dialogue.Tool {
	var out []*dialogue.Tool
	for i := range req.Tools {
		t := &req.Tools[i]
		if t.Kind != dialogue.FunctionTool && t.Kind != dialogue.CustomTool {
			continue
		}
		c := req.ToolChoice
		if c != nil && (c.Mode == dialogue.ToolNamed || c.Mode == dialogue.ToolAllowed) && !slices.Contains(c.Names, t.Name) {
			continue
		}
		out = append(out, t)
	}
	return out
}

// askedFor finds the tools the last user text asks to use. When their results
// are there already, the wish has been granted.
func askedFor(tools []*dialogue.Tool, p prompt) []*dialogue.Tool {
	if len(p.results) > 0 {
		return nil
	}
	text := strings.ToLower(p.text)
	var out []*dialogue.Tool
	for _, t := range tools {
		name := strings.ToLower(t.Name)
		if name != "" && (mentions(text, "call ", name) || mentions(text, "call the ", name) || mentions(text, "use ", name) || mentions(text, "use the ", name)) {
			out = append(out, t)
		}
	}
	return out
}

// mentions reports whether text has the words followed by a whole name.
func mentions(text, words, name string) bool {
	for {
		_, rest, found := strings.Cut(text, words)
		if !found {
			return false
		}
		after, same := strings.CutPrefix(strings.TrimLeft(rest, "`'\""), name)
		if same && (after == "" || !strings.ContainsRune(nameRunes, rune(after[0]))) {
			return true
		}
		text = rest
	}
}

const nameRunes = "abcdefghijklmnopqrstuvwxyz0123456789_-"

// arguments makes a call's arguments.
func arguments(t *dialogue.Tool) string {
	if t.Kind == dialogue.CustomTool {
		return "sandbox input for " + t.Name
	}
	return string(Sample(schema.ToolForMessages(t.Schema, t.GeminiSchema)))
}
