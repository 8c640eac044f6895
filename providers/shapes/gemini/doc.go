// Package gemini is the gemini shape: /v1beta/models/{model}:generateContent, its streamed form and
// countTokens. The vendor's document is Google's Gemini API reference, "Generating content"; docs/shapes
// has the gateway's rules. The package turns bytes into the neutral form of
// providers/dialogue and back. It does no I/O and keeps nothing between two requests.
//
// Google's JSON is proto3 JSON: every field name may be written in lowerCamelCase or snake_case,
// 64-bit integers may be strings, and null means absent. Readers here accept all of it; writers use
// lowerCamelCase.
//
// # Where to look
//
//	gemini.go             the Descriptor and the entry points
//	check.go, flaw.go     the rules of a client's request
//	decode*.go            a client's request to the neutral form
//	encode*.go            the neutral form to a request for an upstream
//	thinking.go           budgets and levels of thinking
//	signature.go          thoughts that a client sends back
//	patch.go, tap.go      requests and replies that pass through unchanged
//	parser.go, parts.go   an upstream's reply to events
//	emitter.go, document.go  events to a client's reply
//	count.go, models.go   counts of tokens, lists of models
//	picture.go            models of the shape that make pictures
package gemini
