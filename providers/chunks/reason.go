package chunks

import "stagedoor/providers/dialogue"

// Reason reads a finish_reason. Words of other servers are understood, and an
// unknown one never fails a reply (translation.md 8.2).
func ParseFinishReason(word string) dialogue.Reason {
	switch word {
	case "stop", "end_turn", "eos", "stop_sequence", "STOP":
		return dialogue.ReasonStop
	case "length", "max_tokens", "model_length", "MAX_TOKENS":
		return dialogue.ReasonLength
	case "tool_calls", "function_call", "tool_use":
		return dialogue.ReasonTool
	case "content_filter", "safety", "refusal", "SAFETY":
		return dialogue.ReasonFilter
	}
	return dialogue.ReasonOther
}

// Word writes a reason for a client of the family; the list is closed. tool is
// the word for a tool call, which differs by client.
func FinishReason(r dialogue.Reason, tool string) string {
	switch r {
	case dialogue.ReasonLength, dialogue.ReasonContextWindow:
		return "length"
	case dialogue.ReasonTool:
		return tool
	case dialogue.ReasonFilter:
		return "content_filter"
	}
	return "stop"
}
