package sandbox

import (
	"math/rand/v2"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/tokens"
)

// answer is one choice, whole, before it is delivered.
type answer struct {
	segments []segment
	reason   dialogue.Reason
	stop     string
}

// segment is a part of an answer, in the pieces it is streamed in.
type segment struct {
	kind   dialogue.PartKind
	call   *dialogue.Call
	pieces []string
}

// compose makes the answer of one choice.
func compose(req *dialogue.Request, script *Script, choice int, id func() string) answer {
	p := notice(req, choice/max(req.N, 1))
	r := dice(req, p, choice)
	var a answer
	if n := thoughtLength(&req.Reasoning); n > 0 {
		a.segments = append(a.segments, segment{kind: dialogue.ThinkingPart, pieces: muse(r, n)})
	}
	a.speak(req, script, p, r, id)
	a.stopAt(req.Stop)
	if req.MaxTokens != nil {
		a.limit(int(min(max(*req.MaxTokens, 0), mostTokens)))
	}
	return a
}

// speak adds what the client asked for: a refusal, calls, JSON or talk.
func (a *answer) speak(req *dialogue.Request, script *Script, p prompt, r *rand.Rand, id func() string) {
	if script.Refuse {
		a.say(dialogue.RefusalPart, tokens.Split("The sandbox was told to refuse this."))
		a.reason = dialogue.ReasonFilter
		return
	}
	if tools := chosen(req, p); len(tools) > 0 {
		for _, t := range tools {
			call := &dialogue.Call{ID: "call_" + id(), Name: t.Name, Namespace: t.Namespace, Custom: t.Kind == dialogue.CustomTool}
			a.segments = append(a.segments, segment{kind: dialogue.CallPart, call: call, pieces: tokens.Split(arguments(t))})
		}
		a.reason = dialogue.ReasonTool
		return
	}
	switch {
	case req.Output.Mode == dialogue.OutputSchema && len(req.Output.Schema) > 0:
		raw := req.Output.Schema
		if req.Output.GeminiSchema {
			raw = schema.FromGemini(raw)
		}
		a.say(dialogue.TextPart, tokens.Split(string(Sample(raw))))
	case req.Output.Mode != dialogue.OutputText:
		w := jsonw.Writer{}
		w.Object().Key("reply").String(opening(p)).End()
		a.say(dialogue.TextPart, tokens.Split(string(w.Buf)))
	default:
		a.say(dialogue.TextPart, talk(p, r, script.Tokens))
	}
}

func (a *answer) say(kind dialogue.PartKind, pieces []string) {
	a.segments = append(a.segments, segment{kind: kind, pieces: pieces})
}

// efforts are the tokens thought for each word of effort.
var efforts = map[string]int{"minimal": 8, "low": 16, "medium": 32, "high": 64, "xhigh": 96, "max": 128}

// thoughtLength is how many tokens are thought before answering.
func thoughtLength(r *dialogue.Reasoning) int {
	if r.Disabled || r.Effort == "none" {
		return 0
	}
	n := efforts[r.Effort]
	if n == 0 && (r.Adaptive || r.Budget != nil || r.Effort != "") {
		n = efforts["medium"]
	}
	if r.Budget != nil {
		n = min(n, int(max(*r.Budget, 0)))
	}
	return n
}

// stopAt ends the text where the first stop sequence begins.
func (a *answer) stopAt(stops []string) {
	for i := range a.segments {
		s := &a.segments[i]
		if s.kind != dialogue.TextPart {
			continue
		}
		text, at, which := strings.Join(s.pieces, ""), -1, ""
		for _, stop := range stops {
			if j := strings.Index(text, stop); stop != "" && j >= 0 && (at < 0 || j < at) {
				at, which = j, stop
			}
		}
		if at >= 0 {
			s.pieces = firstBytes(s.pieces, at)
			a.reason, a.stop = dialogue.ReasonStopSequence, which
		}
	}
}

// firstBytes keeps the first bytes of the pieces.
func firstBytes(pieces []string, bytes int) []string {
	for i, p := range pieces {
		if len(p) >= bytes {
			out := append([]string{}, pieces[:i]...)
			if bytes > 0 {
				out = append(out, p[:bytes])
			}
			return out
		}
		bytes -= len(p)
	}
	return pieces
}

// limit keeps the first tokens; what they end in stays unfinished.
func (a *answer) limit(n int) {
	for i := range a.segments {
		s := &a.segments[i]
		if len(s.pieces) > n {
			s.pieces = s.pieces[:n]
			a.segments = a.segments[:i+1]
			if n == 0 && i > 0 {
				a.segments = a.segments[:i]
			}
			a.reason, a.stop = dialogue.ReasonLength, ""
			return
		}
		n -= len(s.pieces)
	}
}

// count is how many tokens the segments of a kind have; all is every kind.
func (a *answer) count(of func(dialogue.PartKind) bool) int64 {
	var n int64
	for _, s := range a.segments {
		if of(s.kind) {
			n += int64(len(s.pieces))
		}
	}
	return n
}

func everyKind(dialogue.PartKind) bool { return true }

func thinkingOnly(k dialogue.PartKind) bool { return k == dialogue.ThinkingPart }
