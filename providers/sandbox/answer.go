package sandbox

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/schema"
	"stagedoor/providers/tokens"
)

// answer is a complete choice before its delivery.
type answer struct {
	parts  []part
	reason dialogue.Reason
	stop   string
}

// part is a part of an answer, in the pieces in which it is streamed.
type part struct {
	kind   dialogue.PartKind
	call   *dialogue.Call
	pieces []string
}

// compose makes the answer of one choice. The same request gets the same answer.
// The random numbers come from a hash of the request, so a test can assert on the text, and two
// choices of one request differ.
func compose(req *dialogue.Request, script *Script, choice int, id func() string) answer {
	p := readPrompt(req, choice/max(req.N, 1))
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d\x00%s", req.Model, p.text, req.Seed, choice, strings.Join(p.results, ""))
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(choice)))
	var a answer
	if n := thinkingTokens(&req.Reasoning); n > 0 {
		a.add(dialogue.ThinkingPart, nil, addSentences(tokens.Split("Let me see what is wanted here."), r, n)[:n])
	}
	tools := chooseTools(req, p)
	switch {
	case script.Refuse:
		a.add(dialogue.RefusalPart, nil, tokens.Split("The sandbox refuses as requested."))
		a.reason = dialogue.ReasonFilter
	case len(tools) > 0:
		for _, t := range tools {
			call := &dialogue.Call{ID: "call_" + id(), Name: t.Name, Namespace: t.Namespace,
				Custom: t.Kind == dialogue.CustomTool}
			arguments := "sandbox input for " + t.Name
			if !call.Custom {
				arguments = string(Sample(schema.ToolForMessages(t.Schema, t.GeminiSchema)))
			}
			a.add(dialogue.CallPart, call, tokens.Split(arguments))
		}
		a.reason = dialogue.ReasonTool
	default:
		a.add(dialogue.TextPart, nil, composeText(req, script, p, r))
	}
	a.stopAt(req.Stop)
	if req.MaxTokens != nil {
		a.limit(int(min(max(*req.MaxTokens, 0), mostTokens)))
	}
	return a
}

// add appends a part. call is nil unless the part is a call.
func (a *answer) add(kind dialogue.PartKind, call *dialogue.Call, pieces []string) {
	a.parts = append(a.parts, part{kind, call, pieces})
}

// composeText makes free text, or JSON if the client asked for it.
func composeText(req *dialogue.Request, script *Script, p prompt, r *rand.Rand) []string {
	if req.Output.Mode == dialogue.OutputSchema && len(req.Output.Schema) > 0 {
		raw := req.Output.Schema
		if req.Output.GeminiSchema {
			raw = schema.FromGemini(raw)
		}
		return tokens.Split(string(Sample(raw)))
	}
	opening := p.opening()
	if req.Output.Mode != dialogue.OutputText {
		v, _ := json.Marshal(map[string]string{"reply": opening}) // strings cannot fail
		return tokens.Split(string(v))
	}
	pieces := tokens.Split(opening)
	if script.Tokens == 0 {
		return addSentences(pieces, r, len(pieces)+12+r.IntN(36))
	}
	return addSentences(pieces, r, script.Tokens)[:script.Tokens]
}

// sentences begin with a space, so that their tokens do not depend on the text before them.
// They are split once, because splitting needs the vocabulary, which is loaded at its first use.
var sentences = sync.OnceValue(func() (split [][]string) {
	for _, s := range []string{
		" The lights go down and the orchestra finds its note.",
		" A prompter waits in the wings with the script in hand.",
		" The second act begins where the first one hesitated.",
		" Ropes, weights and pulleys keep the painted sky in place.",
		" The understudy knows every line, including the ones that were cut.",
		" A lamp is left burning when the theatre is empty.",
		" Costumes hang in the order in which they will be needed.",
		" Thunder is a sheet of metal, and rain is a handful of peas.",
	} {
		split = append(split, tokens.Split(s))
	}
	return split
})

// addSentences adds sentences until there are at least least tokens.
func addSentences(pieces []string, r *rand.Rand, least int) []string {
	for len(pieces) < least {
		pieces = append(pieces, sentences()[r.IntN(len(sentences()))]...)
	}
	return pieces
}

const (
	quotedPrompt = 80  // characters of the prompt that are repeated
	quotedResult = 400 // characters of a tool's result
	mostRepeated = 32  // results and media that are named
)

// opening returns the beginning of an answer, which repeats what the client sent.
func (p prompt) opening() string {
	var out []string
	for _, result := range p.results[:min(len(p.results), mostRepeated)] {
		out = append(out, "The tool answered: "+clipText(result, quotedResult)+".")
	}
	for _, kind := range p.media[:min(len(p.media), mostRepeated)] {
		out = append(out, "I have received your "+kind+".")
	}
	if text := strings.TrimSpace(p.text); text != "" {
		out = append(out, "You said: "+strconv.Quote(clipText(text, quotedPrompt))+".")
	}
	if len(out) == 0 {
		return "You said nothing."
	}
	return strings.Join(out, " ")
}

// clipText shortens s to n characters.
func clipText(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

// effortTokens are the lengths of a thought for each word of effort, in tokens. They only need to
// differ.
var effortTokens = map[string]int{"minimal": 8, "low": 16, "medium": 32, "high": 64, "xhigh": 96, "max": 128}

// thinkingTokens returns the length of the thought before an answer.
func thinkingTokens(r *dialogue.Reasoning) int {
	if r.Disabled || r.Effort == "none" {
		return 0
	}
	n := effortTokens[r.Effort]
	if n == 0 && (r.Adaptive || r.Budget != nil || r.Effort != "") {
		n = effortTokens["medium"]
	}
	if r.Budget != nil {
		n = min(n, int(max(*r.Budget, 0)))
	}
	return n
}

// stopAt ends the text before the first stop sequence.
// The search is over the joined text and not over tokens, because a stop sequence may begin in one
// token and end in another.
func (a *answer) stopAt(stops []string) {
	for i := range a.parts {
		s := &a.parts[i]
		if s.kind != dialogue.TextPart {
			continue
		}
		text := strings.Join(s.pieces, "")
		end := len(text)
		for _, stop := range stops {
			if at := strings.Index(text, stop); stop != "" && at >= 0 && at < end {
				end, a.reason, a.stop = at, dialogue.ReasonStopSequence, stop
			}
		}
		for j, piece := range s.pieces {
			if len(piece) > end {
				s.pieces = s.pieces[:j]
				if end > 0 {
					s.pieces = append(s.pieces, piece[:end])
				}
				break
			}
			end -= len(piece)
		}
	}
}

// limit keeps the first n tokens.
// A part that is cut to nothing is left out, unless it is the only one: a choice needs a part.
func (a *answer) limit(n int) {
	for i := range a.parts {
		s := &a.parts[i]
		if len(s.pieces) > n {
			s.pieces = s.pieces[:n]
			a.parts = a.parts[:i+1]
			if n == 0 && i > 0 {
				a.parts = a.parts[:i]
			}
			a.reason, a.stop = dialogue.ReasonLength, ""
			return
		}
		n -= len(s.pieces)
	}
}
