// Package gemini is the gemini shape: /v1beta/models/{model}:generateContent, its streamed form,
// countTokens and embedContent. The vendor's document is Google's Gemini API reference, "Generating
// content"; docs/shapes has the gateway's rules. The package turns bytes into the neutral form of
// providers/dialogue and back. It does no I/O and keeps nothing between two requests.
//
// What sets the shape apart from the others:
//
//   - Google's JSON is proto3 JSON: every field name may be written in lowerCamelCase or
//     snake_case, 64-bit integers may be strings, and null means absent. Readers here accept all of
//     it (fields.go); writers use lowerCamelCase.
//   - The model, and whether the reply streams, stand in the path and not in the body.
//   - Calls have no id in older models. Results are then paired with calls by the function's name.
//   - The model vouches for its reasoning by a thoughtSignature, which stands on parts of any kind:
//     a thought, a text or a call. From the third generation on the first call of a step must have
//     one (signature.go).
//   - A stream is a sequence of whole replies, each with the next piece. It ends with the
//     connection.
//
// # Example
//
// A turn in which the model calls a tool, as this shape and the neutral form have it:
//
//	{"role":"model","parts":[
//	  {"functionCall":{"name":"weather","args":{"city":"Bern"}},"thoughtSignature":"CiQB..."}]}
//
//	Turn{Role: Assistant, Parts: []Part{{Kind: CallPart,
//	  Call: &Call{ID: "call_5f...", Name: "weather", Args: `{"city":"Bern"}`, Signature: "CiQB..."}}}}
//
// # Members
//
// Where Decode puts the members of a request in dialogue.Request. A member that is not here goes to
// Extra: upstreams of this shape get it, and others report it in X-Stagedoor-Losses. The names in
// the second half are members of generationConfig.
//
//	contents                       Turns
//	systemInstruction              System
//	tools                          Tools; googleSearch also sets WebSearch
//	toolConfig                     ToolChoice
//	cachedContent                  a document that only the vendor can open, before the first turn
//	serviceTier, store, labels     ServiceTier, Store, Metadata
//
//	temperature, topP, topK, seed, the fields of the same names
//	presencePenalty, frequencyPenalty
//	candidateCount                 N
//	maxOutputTokens                MaxTokens
//	stopSequences                  Stop
//	responseLogprobs, logprobs     LogProbs, TopLogProbs
//	responseModalities             Modalities, in lower case
//	thinkingConfig                 Reasoning: Budget, Adaptive for -1, Disabled for 0, Effort of a thinkingLevel
//	responseMimeType and           Output; GeminiSchema marks a responseSchema, which is in Google's subset
//	responseSchema or              of OpenAPI and not in JSON Schema
//	responseJsonSchema
//
// # What gets lost
//
// Of the requests of other shapes mainly these are left out or changed, and reported in X-Stagedoor-Losses under
// the names in the first column. Names of parts of a conversation that the vendor does not take, such as
// tools:TYPE, are at the calls of Report.Lose.
//
//	logit_bias, metadata, user, verbosity,     the vendor has no such parameters
//	suffix, prompt_cache_key, _retention,
//	_options, response_format:description
//	parallel_tool_calls                        the model may always call several functions
//	top_k                                      0, which means no limit elsewhere and is refused here
//	seed                                       one of more than 32 bits
//	service_tier                               words other than those for standard service, flex and priority
//
// Audio as output and more than eight choices are refused.
//
// # Where to look
//
//	gemini.go                the Descriptor and the entry points
//	fields.go                reading of proto3 JSON
//	check.go                 the rules of a client's request
//	decode*.go               a client's request to the neutral form
//	encode*.go, parts.go     the neutral form to a request for an upstream
//	names.go                 names of functions in the vendor's alphabet
//	thinking.go              budgets and levels of thinking
//	signature.go             thoughts that a client sends back
//	patch.go, tap.go         requests and replies that pass through unchanged
//	parser.go, arguments.go  an upstream's reply to events
//	citations.go             sources, whose positions count bytes here and characters elsewhere
//	emitter.go, document.go  events to a client's reply
//	usage.go, reasons.go     token counts and finish reasons, in both directions
//	count.go, models.go      counts of tokens, lists of models
//	embed.go, *_embed.go     embeddings
//	picture.go               models of the shape that make pictures
package gemini
