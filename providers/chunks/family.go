package chunks

import (
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Family implements the methods of shapes.Shape that are the same for both shapes. They embed
// it.
type Family struct{}

// ChecksSyntax implements shapes.SyntaxChecker.
func (Family) ChecksSyntax() {}

// DecodeError implements shapes.Shape.
func (Family) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	return DecodeError(status, header, body)
}

// Envelope implements shapes.Shape.
func (Family) Envelope(err *dialogue.Error) []byte { return Envelope(err) }

// Authorize implements shapes.Shape.
func (Family) Authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// MaxChoices implements shapes.Shape.
func (Family) MaxChoices() int { return MaxChoices }

// Heartbeat implements shapes.Shape.
func (Family) Heartbeat(mode shapes.Mode) []byte {
	if mode == shapes.Whole {
		return nil
	}
	return []byte(Heartbeat)
}
