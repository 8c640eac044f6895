package messages

import "stagedoor/providers/dialogue"

// reasons are the vendor's values of stop_reason.
var reasons = map[string]dialogue.Reason{
	"end_turn":                      dialogue.ReasonStop,
	"stop_sequence":                 dialogue.ReasonStopSequence,
	"max_tokens":                    dialogue.ReasonLength,
	"tool_use":                      dialogue.ReasonTool,
	"refusal":                       dialogue.ReasonFilter,
	"pause_turn":                    dialogue.ReasonPause,
	"model_context_window_exceeded": dialogue.ReasonContextWindow,
}

// reasonOf returns the reason for a stop_reason. A word that is new to the gateway gives
// ReasonOther and never fails a reply.
func reasonOf(word string) dialogue.Reason {
	if word == "" {
		return dialogue.ReasonStop
	}
	if r, known := reasons[word]; known {
		return r
	}
	return dialogue.ReasonOther
}

// stopReason returns the vendor's word for a reason. SDKs parse it into a closed set, so a reason
// without a word becomes end_turn.
func stopReason(r dialogue.Reason) string {
	for word, reason := range reasons {
		if reason == r {
			return word
		}
	}
	return "end_turn"
}
