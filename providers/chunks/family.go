package chunks

import (
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Vendor is the vendor whose shapes they are.
const Vendor = "openai"

// Probe asks an upstream of either shape for its models.
var Probe = shapes.Probe{Path: "/models", Authorize: Family{}.Authorize}

// Defaults returns the capabilities of a model of unknown family at upstreams of either shape.
func Defaults(thinking dialogue.ThinkingStyle) dialogue.Capabilities {
	return dialogue.Capabilities{
		StructuredOutputs: true, Thinking: thinking, ImagesIn: true, FilesIn: true, AudioIn: true,
		Sampling: true, Prefill: true,
	}
}

// Family implements the methods of shapes.Inbound and shapes.Outbound that are the same for both
// shapes. They embed it.
type Family struct{}

// ChecksSyntax implements shapes.SyntaxChecker.
func (Family) ChecksSyntax() {}

// DecodeError implements shapes.Outbound.
func (Family) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	return DecodeError(status, header, body)
}

// Envelope implements shapes.Inbound.
func (Family) Envelope(err *dialogue.Error) []byte { return Envelope(err) }

// Authorize implements shapes.Outbound.
func (Family) Authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// MaxChoices implements shapes.Outbound.
func (Family) MaxChoices() int { return MaxChoices }

// Heartbeat implements shapes.Inbound.
func (Family) Heartbeat(mode shapes.Mode) []byte {
	if mode == shapes.Whole {
		return nil
	}
	return []byte(Heartbeat)
}
