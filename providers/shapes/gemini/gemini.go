// Package gemini is the third shape: /v1beta/models/{model}:generateContent and
// its streamed twin, as Google's SDKs speak it (gateway.md 4.9). It checks and
// decodes what such clients send, asks upstreams of this shape, reads their
// replies and writes replies to such clients. It knows no other shape, opens no
// connection and keeps no state between requests.
//
// Google's JSON is proto3 JSON: every field name may be written in
// lowerCamelCase or snake_case, 64-bit integers may be strings, null is absent.
// Readers here accept all of it; writers use lowerCamelCase.
package gemini

import (
	"net/http"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Shape is the third shape.
var Shape shapes.Shape = shape{}

type shape struct{}

// maxChoices is the largest candidateCount an upstream takes.
const maxChoices = 8

func (shape) Name() dialogue.Shape { return dialogue.Gemini }

func (shape) MaxChoices() int { return maxChoices }

func (shape) Authorize(h http.Header, key string) { h.Set("x-goog-api-key", key) }

// heartbeat is a chunk that adds nothing: the vendor's SDKs fail on comments,
// event names and anything else that is not a chunk.
const heartbeat = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}` + "\n\n"

// Heartbeat is an empty increment on a stream, and white space between the
// elements of an array.
func (shape) Heartbeat(mode shapes.Mode) []byte {
	switch mode {
	case shapes.Stream:
		return []byte(heartbeat)
	case shapes.Array:
		return []byte("\n")
	}
	return nil
}

// Methods after the colon of a model's path.
const (
	generate       = "generateContent"
	streamGenerate = "streamGenerateContent"
	countTokens    = "countTokens"
)

// Methods are the methods that every model has.
var Methods = []string{generate, streamGenerate, countTokens}

// call addresses a model of an upstream. A stream is always asked for as
// server-sent events, whatever the client will read.
func call(model string, stream bool, body []byte) shapes.Call {
	c := shapes.Call{Path: modelPath(model) + ":" + generate, Header: http.Header{}, Body: body}
	if stream {
		c.Path, c.Query, c.Stream = modelPath(model)+":"+streamGenerate, "alt=sse", true
	}
	return c
}

// modelPath keeps a collection the name brings along (models/, tunedModels/).
func modelPath(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return "/v1beta/" + model
	}
	return "/v1beta/models/" + model
}
