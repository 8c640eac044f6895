// Package responses is the responses shape: POST /v1/responses. The vendor's document is OpenAI's
// API reference, "Responses"; docs/shapes has the gateway's rules. The package reads and writes
// requests, replies and streams of events, and edits stored responses as bytes. It does no I/O and
// keeps nothing: http/text continues stored responses, and actors/background runs those that are
// made in the background.
//
// What sets the shape apart from the others:
//
//   - Input and output are flat lists of items: messages, calls, results and reasoning stand beside
//     each other and not inside each other.
//   - A response is an object with an id that can be stored, continued (previous_response_id), made
//     in the background, cancelled, and collected in a conversation. Clients validate the object,
//     so the emitter repeats the parameters of the request in it (object.go).
//   - Reasoning is an item whose encrypted_content must come back. The gateway seals the reasoning
//     of other vendors into that member.
//   - A stream repeats everything: each text comes in deltas, again in *.done events, again in the
//     done event of its item, and once more in the last event. Every event has a sequence_number.
//
// # Example
//
// One call of a tool and its result, as this shape and the neutral form have them:
//
//	"input":[{"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"},
//	         {"type":"function_call_output","call_id":"c1","output":"12 degrees"}]
//
//	Turn{Role: Assistant, Parts: []Part{{Kind: CallPart, Call: &Call{ID: "c1", Name: "weather", Args: "{}"}}}}
//	Turn{Role: User, Parts: []Part{{Kind: ResultPart, Result: &Result{CallID: "c1", Parts: ...}}}}
//
// # Members
//
// Where Decode puts the members of a request in dialogue.Request. A member that is not here goes to
// Extra: upstreams of this shape get it, and others report it in X-Stagedoor-Losses. A prompt, which
// is a template at the vendor, is refused for upstreams of other shapes.
//
//	model, stream, temperature,   the fields of the same names
//	top_p, top_k, metadata,
//	service_tier, store, truncation
//	instructions                  the first part of System
//	input                         Turns, and System for messages of that role at the front; it is read last
//	max_output_tokens             MaxTokens
//	top_logprobs                  TopLogProbs
//	include                       Include; message.output_text.logprobs sets LogProbs, and
//	                              reasoning.encrypted_content sets Reasoning.EncryptedContent
//	reasoning                     Reasoning.Effort and Summary; a summary other than none sets Include
//	text                          Output for its format, and Verbosity
//	tools                         Tools; the members of a namespace get qualified names
//	tool_choice                   ToolChoice
//	parallel_tool_calls           Parallel
//	safety_identifier, user       User; the first one wins
//	prompt_cache_key, _retention, CacheKey, CacheRetention, CacheOptions
//	_options
//	previous_response_id          PreviousResponseID; http/text puts the history before the input
//	conversation, background,     nothing: they say how a response is stored, run and sent
//	stream_options
//
// # What gets lost
//
// Of the requests of other shapes mainly these are left out or changed, and reported in X-Stagedoor-Losses under
// the names in the first column. Names of parts of a conversation that the vendor does not take, such as
// tools:TYPE, are at the calls of Report.Lose.
//
//	top_k, seed, presence_penalty,        the vendor has no such parameters
//	frequency_penalty, best_of, logit_bias
//	reasoning                             a budget of tokens, if the model does not think; else it becomes a word
//	reasoning:disabled                    models that think by default and refuse none think as they do by default
//	metadata, service_tier                the words of other vendors
//	tools:TYPE, server_tool               tools that another vendor runs, and what they have done
//	tool_result:missing, :orphan          a result that is made up or left out, so that calls and results pair
//
// Stop sequences have no member: the gateway looks for them itself (dialogue.Enforced). A response for a
// client of another shape is never stored at the vendor, since that client could not delete it. Audio and
// pictures as output and a suffix are refused.
//
// # Where to look
//
//	shape.go                the Descriptor and the entry points
//	check*.go               the rules of a client's request
//	decode*.go              a client's request to the neutral form
//	encode*.go, names.go    the neutral form to a request for an upstream
//	patch.go, tap.go        requests and replies that pass through unchanged
//	frame.go                one event of an upstream
//	parser.go, complete.go  an upstream's reply to events
//	emit*.go, object.go     events to a client's reply: items, their parts and the final object
//	unwrap.go               the free text of a custom tool, taken out of JSON as it streams
//	stored.go               stored responses: history, items, deletion
//	conversation.go         the Conversations API: requests, pages, rules for items
//	compact.go              summaries that replace a long conversation
//	failure.go              errors in both directions
package responses
