package messages

import "stagedoor/providers/dialogue"

// reasons are the vendor's stop reasons.
var reasons = map[string]dialogue.Reason{
	"end_turn":                      dialogue.ReasonStop,
	"stop_sequence":                 dialogue.ReasonStopSequence,
	"max_tokens":                    dialogue.ReasonLength,
	"tool_use":                      dialogue.ReasonTool,
	"refusal":                       dialogue.ReasonFilter,
	"pause_turn":                    dialogue.ReasonPause,
	"model_context_window_exceeded": dialogue.ReasonContextWindow,
}

// reasonOf reads a stop reason; one that is new never fails a reply.
func reasonOf(word string) dialogue.Reason {
	if word == "" {
		return dialogue.ReasonStop
	}
	if r, known := reasons[word]; known {
		return r
	}
	return dialogue.ReasonOther
}

// stopReason returns the word for a reason; the set is closed on the way out.
func stopReason(r dialogue.Reason) string {
	for word, reason := range reasons {
		if reason == r {
			return word
		}
	}
	return "end_turn"
}
