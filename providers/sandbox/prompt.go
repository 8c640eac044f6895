package sandbox

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// prompt is the part of a request that the simulator reacts to.
type prompt struct {
	text    string // the last user text
	media   []string
	results []string // of tools, if they came last
}

// lastText returns the text in which a request may ask for faults.
func lastText(req *dialogue.Request) string { return readPrompt(req, 0).text }

// readPrompt reads the last run of user turns, because some shapes put every tool's result into a turn of its own. The
// prompts of completions are numbered.
func readPrompt(req *dialogue.Request, number int) (p prompt) {
	if number < len(req.Prompts) {
		p.text, _ = dialogue.PromptText(req.Prompts[number])
		return p
	}
	isUser := func(t dialogue.Turn) bool { return t.Role == dialogue.User }
	end := len(req.Turns)
	for end > 0 && !isUser(req.Turns[end-1]) {
		end--
	}
	start := end
	for start > 0 && isUser(req.Turns[start-1]) {
		start--
	}
	var texts []string
	for _, t := range req.Turns[start:end] {
		for _, part := range t.Parts {
			switch {
			case part.Kind == dialogue.TextPart && part.Text != "":
				texts = append(texts, part.Text)
			case part.Kind == dialogue.MediaPart && part.Media != nil:
				p.media = append(p.media, string(part.Media.Kind))
			case part.Kind == dialogue.ResultPart && part.Result != nil:
				p.results = append(p.results, resultText(part.Result))
			}
		}
	}
	p.text = strings.Join(texts, "\n")
	return p
}

// resultText returns a tool's result as text that the answer can repeat.
func resultText(r *dialogue.Result) string {
	if len(r.Object) > 0 {
		return string(r.Object)
	}
	var b strings.Builder
	for _, part := range r.Parts {
		switch {
		case part.Kind == dialogue.TextPart:
			b.WriteString(part.Text)
		case part.Media != nil:
			b.WriteString("(" + string(part.Media.Kind) + ")")
		}
	}
	return b.String()
}

// chooseTools returns the tools that the answer calls: those that the text asks for, or one if the client requires a
// call.
func chooseTools(req *dialogue.Request, p prompt) []*dialogue.Tool {
	c := req.ToolChoice
	if c == nil {
		c = &dialogue.ToolChoice{Mode: dialogue.ToolAuto}
	}
	var callable, wanted []*dialogue.Tool
	for i := range req.Tools {
		t := &req.Tools[i]
		selects := c.Mode == dialogue.ToolNamed || c.Mode == dialogue.ToolAllowed
		if t.Kind != dialogue.FunctionTool && t.Kind != dialogue.CustomTool ||
			selects && !slices.Contains(c.Names, t.Name) {
			continue
		}
		callable = append(callable, t)
		if len(p.results) == 0 && asksFor(strings.ToLower(p.text), strings.ToLower(t.Name)) {
			wanted = append(wanted, t)
		}
	}
	if req.Parallel != nil && !*req.Parallel && len(wanted) > 1 {
		wanted = wanted[:1]
	}
	required := c.Mode != dialogue.ToolAuto && (c.Mode != dialogue.ToolAllowed || c.Required)
	switch {
	case c.Mode == dialogue.ToolNone:
		return nil
	case len(wanted) == 0 && required:
		return callable[:min(len(callable), 1)]
	}
	return wanted
}

// asksFor reports whether a text asks to use the tool of a name.
func asksFor(text, name string) bool {
	for _, verb := range []string{"call ", "use "} {
		for rest, found := text, name != ""; found; {
			_, rest, found = strings.Cut(rest, verb)
			after, same := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(rest, "the "), "`'\""), name)
			if found && same && strings.IndexAny(after+" ", "abcdefghijklmnopqrstuvwxyz0123456789_-") != 0 {
				return true
			}
		}
	}
	return false
}
