// Package responses is the responses shape: POST /v1/responses. The vendor's document is OpenAI's
// API reference, "Responses"; docs/shapes has the gateway's rules. The package reads
// and writes requests, replies and streams of events, and edits stored responses as bytes. It does
// no I/O and keeps nothing: http/text continues stored responses, and actors/background runs those
// that are made in the background.
//
// # Where to look
//
//	shape.go               the Descriptor and the entry points
//	check*.go              the rules of a client's request
//	decode*.go             a client's request to the neutral form
//	encode*.go             the neutral form to a request for an upstream
//	patch.go, tap.go       requests and replies that pass through unchanged
//	parser.go, complete.go  an upstream's reply to events
//	emit*.go, object.go    events to a client's reply: items, their parts and the final object
//	stored.go              stored responses: history, items, deletion
//	failure.go             errors in both directions
package responses
