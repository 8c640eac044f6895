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
// # Members
//
// Where decode puts the members of a request in dialogue.Request. Members that the chat shape has,
// too, are read by chunks.DecodeField, and a member of neither list goes to Extra.
//
//	prompt             Prompts, one element each; the first one is also the only turn of the user
//	max_tokens         MaxTokens; 16 if it is absent, which is the vendor's default in this shape only
//	best_of, suffix    BestOf, Suffix; an upstream of another shape cannot do either, so they are refused
//	echo               Echo; together with logprobs it is refused
//	logprobs           LogProbs and TopLogProbs, since the value is a number here
//	user               User
//
// A prompt of token ids stays one for upstreams of this shape and is refused for all others.
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
