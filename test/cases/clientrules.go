package cases

import (
	"fmt"
	"slices"
)

// finishReasons are the words of the shape chat, and stopReasons those of messages.
var (
	finishReasons = set("stop", "length", "tool_calls", "content_filter", "function_call")
	stopReasons   = set("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal",
		"model_context_window_exceeded")
)

// ClientRules returns the rules of its shape that a stream of status 200 breaks: the order of events,
// indexes, exactly one terminal event, known words. includeUsage is set if the client
// asked for a usage chunk.
func ClientRules(shape Shape, events []Event, includeUsage bool) []string {
	if len(events) == 0 {
		return []string{"empty stream"}
	}
	failed := Failed(shape, events)
	var r rules
	switch shape {
	case Chat, Completions:
		c := chatRules{rules: &r, shape: shape, includeUsage: includeUsage, failed: failed}
		c.check(events)
	case Messages:
		m := messagesRules{rules: &r, failed: failed, open: map[int]string{}}
		m.check(events)
	case Responses:
		s := responsesRules{
			rules: &r,
			added: map[int]any{},
			done:  map[int]object{},
			parts: map[[2]int]bool{},
			args:  map[int]string{},
		}
		s.check(events)
	case Gemini:
		r.gemini(events, failed)
	}
	return r.broken
}

// rules collects what is broken.
type rules struct {
	broken []string
}

// breaks records a broken rule.
func (r *rules) breaks(format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// breaksIf records a broken rule if broken is true.
func (r *rules) breaksIf(broken bool, format string, args ...any) {
	if broken {
		r.breaks(format, args...)
	}
}

// gemini checks a stream of the shape gemini, whose events are documents of their own.
func (r *rules) gemini(events []Event, failed bool) {
	r.breaksIf(slices.ContainsFunc(events, Event.done), "gemini streams have no [DONE]")
	var f folder
	folded := f.gemini(events)
	candidates := asArray(folded["candidates"])
	blocked := !isEmpty(asObject(folded["promptFeedback"])["blockReason"])
	unfinished := slices.ContainsFunc(candidates, func(c any) bool { return isEmpty(asObject(c)["finishReason"]) })
	r.breaksIf(!failed && !blocked && (len(candidates) == 0 || unfinished), "candidate without finishReason")
	for _, c := range candidates {
		for _, p := range asArray(pointer(c, "/content/parts")) {
			call, ok := asObject(p)["functionCall"]
			if !ok {
				continue
			}
			args, given := asObject(call)["args"]
			r.breaksIf(isEmpty(asObject(call)["name"]) || given && asObject(args) == nil,
				"functionCall without name or with args that are not an object")
		}
	}
}
