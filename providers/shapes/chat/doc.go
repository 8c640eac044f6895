// Package chat is the chat-completions shape: POST /v1/chat/completions. The vendor's document is
// OpenAI's API reference, "Chat Completions"; docs/shapes has the gateway's rules. The package
// turns bytes into the neutral form of providers/dialogue and back. It does no I/O and keeps
// nothing between two requests. Many servers of other vendors speak this shape, so its readers
// accept what those are known to send.
//
// What sets the shape apart from the others:
//
//   - A message has one role and one content. Calls are a member beside the content, and each
//     result is a message of its own with role tool.
//   - There is no documented form for reasoning. Servers send it in reasoning_content or reasoning.
//     Proofs that must come back travel in reasoning_details, the form that OpenRouter introduced,
//     and the gateway seals those of other vendors into it (reasoning.go).
//   - A stream has neither events for the begin and end of a part nor an event for its own end. The
//     parser infers them from the members of each delta, from finish_reason and from "data:
//     [DONE]".
//
// # Example
//
// Two chunks of a stream, and the events that the parser emits for them:
//
//	{"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}
//	{"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
//
//	Start{ID: "c1", Model: "m"}  Open{TextPart}  Delta{"Hi"}  Close          at the two chunks
//	Finish{ReasonStop}  End                                                  at [DONE] or the end
//
// # Members
//
// Where decode puts the members of a request in dialogue.Request. A member that is not here goes to
// Extra: upstreams of this shape get it, and others report it in X-Stagedoor-Losses.
//
//	model, stream, n, seed, stop,        the fields of the same names; stop may be one string
//	temperature, top_p, top_k
//	messages                             System for those of role system or developer before all others,
//	                                     else Turns; a result of role tool is a turn of the user
//	max_completion_tokens, max_tokens    MaxTokens; the first one wins
//	response_format                      Output
//	reasoning_effort                     Reasoning.Effort, and Reasoning.Include unless it is none
//	tools, functions                     Tools; LegacyFunctions remembers that the second one was used
//	tool_choice, function_call           ToolChoice
//	parallel_tool_calls                  Parallel; false for functions, because function_call holds one call
//	web_search_options                   WebSearch, SearchOptions
//	logprobs, top_logprobs, logit_bias   LogProbs, TopLogProbs, LogitBias
//	stream_options.include_usage         IncludeUsage
//	safety_identifier, user              User; the first one wins
//	prompt_cache_key, _retention,        CacheKey, CacheRetention, CacheOptions
//	_options
//	metadata, service_tier, store,       the fields of the same names
//	verbosity, modalities
//
// # What gets lost
//
// An upstream of this shape gets what a chat client sends, but for members that its vendor refuses
// (Capabilities.Refuses). Of the requests of other shapes mainly these are left out or changed, and reported in
// X-Stagedoor-Losses under the names in the first column:
//
//	top_k                     most servers of the shape refuse it
//	thinking                  a budget of tokens, if the model has no effort; else it becomes low, medium or high
//	reasoning:disabled        models that think by default and refuse the effort none think as they do by default
//	metadata, service_tier    the words of other vendors, unless the client's shape shares them (Traits.KeepsMetadata)
//	prompt_cache_key          at vendors that refuse it (Capabilities.NoCacheKey)
//	tools:TYPE, server_tool   tools that another vendor runs, and what they have done
//	tool_result:missing,      a result that is made up for a call without one, or becomes text of the user because
//	:orphan                   there is no call for it
//	assistant_media           pictures in a message of the assistant
//	thinking:encrypted        reasoning that only its maker can read; its summary is sent
//
// Audio and pictures as output are refused, because a reply without them is not what the client asked for.
//
// # Where to look
//
//	shape.go      the Descriptor and the entry points
//	check*.go     the rules of a client's request
//	decode*.go    a client's request to the neutral form
//	encode*.go    the neutral form to a request for an upstream
//	names.go      names of tools in the vendor's alphabet
//	patch.go      a client's request to an upstream of the same shape
//	parser*.go    an upstream's reply to events
//	emitter*.go   events to a client's reply, as chunks or as one document
//	reply.go      what both forms of a reply share
//	reasoning.go  thoughts that a client sends back
//	tap.go        thoughts of replies that pass through unchanged
//	picture.go    models of the shape that answer with pictures
//
// The parts that the completions shape has too are in providers/chunks.
package chat
