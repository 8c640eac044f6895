package dialoguetest

import "stagedoor/providers/dialogue"

// Names of the text shapes, for tests that use several of them.
const (
	Chat        dialogue.Shape = "chat"
	Responses   dialogue.Shape = "responses"
	Completions dialogue.Shape = "completions"
	Messages    dialogue.Shape = "messages"
	Gemini      dialogue.Shape = "gemini"
)
