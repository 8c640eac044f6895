// Package messages is the messages shape: POST /v1/messages and /v1/messages/count_tokens. The
// vendor's document is Anthropic's API reference, "Messages"; the gateway's rules are in gateway.md
// 4.4. The package turns bytes into the neutral form of providers/dialogue and back. It does no I/O
// and keeps nothing between two requests.
//
// # Where to look
//
//	shape.go               the Descriptor and the entry points
//	check.go, checkturns.go  the rules of a client's request
//	decode.go, blocks.go   a client's request to the neutral form
//	encode*.go             the neutral form to a request for an upstream
//	conversation.go        the order of messages that upstreams insist on
//	pairing.go             calls and their results, each with an id that upstreams accept
//	reasoning.go           thinking, which other parameters exclude
//	patch.go, tap.go       requests and replies that pass through unchanged
//	parser*.go             an upstream's reply to events
//	stream.go, whole.go    events to a client's reply
//	count.go, models.go    counts of tokens, lists of models
package messages
