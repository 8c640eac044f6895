package gemini

import "stagedoor/providers/dialogue"

// reasonOf returns the reason for one of Google's finish reasons, which are an open set. ok is
// false for the words that mean "not finished".
func reasonOf(word string) (r dialogue.Reason, ok bool) {
	switch word {
	case "", "FINISH_REASON_UNSPECIFIED":
		return 0, false
	case "STOP":
		return dialogue.ReasonStop, true
	case "MAX_TOKENS":
		return dialogue.ReasonLength, true
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return dialogue.ReasonFilter, true
	case "MALFORMED_FUNCTION_CALL":
		return dialogue.ReasonMalformedCall, true
	}
	return dialogue.ReasonOther, true
}

// finishWord returns Google's word for a reason. There is none for calls, which end with STOP.
func finishWord(r dialogue.Reason) string {
	switch r {
	case dialogue.ReasonLength, dialogue.ReasonContextWindow:
		return "MAX_TOKENS"
	case dialogue.ReasonFilter:
		return "SAFETY"
	case dialogue.ReasonMalformedCall:
		return "MALFORMED_FUNCTION_CALL"
	case dialogue.ReasonOther:
		return "OTHER"
	}
	return "STOP"
}
