package sandbox

import (
	"strings"

	"stagedoor/providers/dialogue"
)

// prompt is what the simulator notices of a request.
type prompt struct {
	text    string // the last user text
	media   []string
	results []string // of tools, if they are what came last
}

// notice reads a request; prompts of completions are numbered.
func notice(req *dialogue.Request, number int) prompt {
	var p prompt
	if number < len(req.Prompts) {
		p.text, _ = dialogue.PromptText(req.Prompts[number])
		return p
	}
	for i := len(req.Turns) - 1; i >= 0; i-- {
		if req.Turns[i].Role == dialogue.User {
			p.turns(req.Turns[firstOfRun(req.Turns, i) : i+1])
			break
		}
	}
	return p
}

// firstOfRun finds where a run of user turns begins: some shapes put every
// tool's result into a turn of its own.
func firstOfRun(turns []dialogue.Turn, last int) int {
	for last > 0 && turns[last-1].Role == dialogue.User {
		last--
	}
	return last
}

func (p *prompt) turns(turns []dialogue.Turn) {
	var texts []string
	for _, t := range turns {
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
}

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

// clipped shortens s to n characters.
func clipped(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}
