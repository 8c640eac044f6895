// Package chat is the chat-completions shape: POST /v1/chat/completions. The vendor's document is
// OpenAI's API reference, "Chat Completions"; docs/shapes has the gateway's rules. The
// package turns bytes into the neutral form of providers/dialogue and back. It does no I/O and keeps
// nothing between two requests. Many servers of other vendors speak this shape, so its readers
// accept what those are known to send.
//
// # Where to look
//
//	shape.go      the Descriptor and the entry points
//	check*.go     the rules of a client's request
//	decode*.go    a client's request to the neutral form
//	encode*.go    the neutral form to a request for an upstream
//	patch.go      a client's request to an upstream of the same shape
//	parser*.go    an upstream's reply to events
//	emitter*.go   events to a client's reply, as chunks or as one document
//	reasoning.go  thoughts that a client sends back
//	picture.go    models of the shape that answer with pictures
//
// The parts that the completions shape has too are in providers/chunks.
package chat
