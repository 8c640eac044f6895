package chunks

import "stagedoor/providers/dialogue"

// ParseFinishReason reads a finish_reason, also the words of servers that use others. An unknown
// word is ReasonOther and not an error.
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

// FinishReason returns the finish_reason for a client. The list of words is closed. tool is the
// word for a tool call, which depends on how the client gave its tools.
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
