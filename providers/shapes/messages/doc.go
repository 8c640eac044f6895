// Package messages is the messages shape: POST /v1/messages and /v1/messages/count_tokens. The
// vendor's document is Anthropic's API reference, "Messages"; the gateway's rules are in gateway.md
// 4.4. The package turns bytes into the neutral form of providers/dialogue and back. It does no I/O
// and keeps nothing between two requests.
//
// What sets the shape apart from the others, and costs most of the code here:
//
//   - A message is a list of typed blocks, and tools are called and answered by blocks inside
//     messages. The vendor refuses a conversation whose sides do not alternate or whose calls lack
//     results, so conversation.go and pairing.go rebuild what other shapes allow.
//   - Thinking is a block of its own with a signature of the vendor. It must come back unchanged
//     with the calls that follow it. Thinking of other vendors is sealed into the signature
//     (dialogue.Sealer).
//   - max_tokens is required, and input_tokens excludes what was read from or written to the prompt
//     cache.
//   - A stream has one block open at a time. Other shapes interleave parallel calls, so stream.go
//     queues.
//
// # Example
//
// A turn in which the model calls a tool, as this shape and the neutral form have it:
//
//	{"role":"assistant","content":[
//	  {"type":"thinking","thinking":"Look it up.","signature":"EqQB..."},
//	  {"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bern"}}]}
//
//	Turn{Role: Assistant, Parts: []Part{
//	  {Kind: ThinkingPart, Thinking: &Thinking{Text: "Look it up.", Signature: "EqQB...", Origin: "messages"}},
//	  {Kind: CallPart, Call: &Call{ID: "toolu_1", Name: "weather", Args: `{"city":"Bern"}`}}}}
//
// # Members
//
// Where Decode puts the members of a request in dialogue.Request. A member that is not here goes to
// Extra: upstreams of this shape get it, and others report it in X-Stagedoor-Losses.
//
//	model, stream, max_tokens,    the fields of the same names
//	temperature, top_p, top_k,
//	service_tier
//	system                        System, a part for each block with its cache_control
//	messages                      Turns, grouped as the client sent them
//	stop_sequences                Stop
//	tools                         Tools; each keeps its JSON (Opaque) for upstreams of this shape
//	tool_choice                   ToolChoice; any is ToolRequired
//	tool_choice.disable_parallel_tool_use   Parallel, with the opposite value
//	thinking                      Reasoning: Budget of enabled, Adaptive, Disabled; Include unless display is omitted
//	output_config.effort          Reasoning.Effort
//	output_config.format,         Output; output_format is the earlier name and counts only without the other
//	output_format
//	metadata.user_id              User
//	context_management            ContextEdits, and Extra
//	the header anthropic-beta     Betas
//
// # What gets lost
//
// Of the requests of other shapes mainly these are left out or changed, and reported in X-Stagedoor-Losses under
// the names in the first column. Names of parts of a conversation that the vendor does not take, such as
// tools:TYPE, are at the calls of Report.Lose.
//
//	seed, presence_penalty, frequency_penalty,   the vendor has no such parameters
//	logprobs, logit_bias, verbosity, metadata
//	prompt_cache_key, _retention, _options       its cache is used by marks on blocks (cache_control)
//	max_tokens:default                           the target's maximum in place of an absent limit
//	temperature, top_p, top_k                    those that thinking excludes
//	temperature:clamped                          1 in place of more
//	user:hashed                                  a hash in place of an id of more than 512 bytes
//	service_tier                                 words that the vendor does not have
//	response_format:description                  a format has only its schema
//
// Audio and pictures as output, a suffix, and prompts of token ids are refused.
//
// # Where to look
//
//	shape.go                 the Descriptor and the entry points
//	check.go, checkturns.go  the rules of a client's request
//	decode.go, blocks.go     a client's request to the neutral form
//	encode*.go               the neutral form to a request for an upstream
//	conversation.go          the sequence of messages that upstreams insist on
//	pairing.go               calls and their results, each with an id that upstreams accept
//	names.go                 names of tools and ids of calls in the vendor's alphabet
//	reasoning.go             thinking, which other parameters exclude
//	contextedits.go          edits of a long conversation that the client asks for
//	patch.go, tap.go         requests and replies that pass through unchanged
//	parser*.go               an upstream's reply to events
//	stream.go, whole.go      events to a client's reply; reply.go has what both share
//	usage.go, reasons.go     token counts and stop reasons, in both directions
//	count.go, models.go      counts of tokens, lists of models
package messages
