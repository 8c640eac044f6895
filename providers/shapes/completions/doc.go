// Package completions is the legacy text-completions shape: POST /v1/completions. The vendor's
// document is OpenAI's API reference, "Completions (legacy)"; the gateway's rules are in gateway.md
// 2.6 and 4.6. The package does no I/O and keeps nothing between two requests.
//
// The shape has a text instead of a conversation. One request may have several prompts, each with
// several answers. Upstreams of the shape take text and return text, so encode refuses media and
// tools, and writes a conversation as a dialogue with labels:
//
//	[system "Be brief.", user "Hi", assistant "Hello", user "Bye"]
//
//	Be brief.
//
//	User: Hi
//
//	Assistant: Hello
//
//	User: Bye
//
//	Assistant:
//
// # Where to look
//
//	shape.go     the Descriptor and the entry points
//	check.go     the rules of a client's request
//	decode.go    a client's request to the neutral form
//	encode.go    the neutral form to a prompt for an upstream
//	parser.go    an upstream's reply to events
//	emitter.go   events to a client's reply
//	logprobs.go  log probabilities in the form of this shape
//
// The parts that the chat shape has too are in providers/chunks.
package completions
