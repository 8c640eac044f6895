// Package sandbox is a model that needs no network: it answers every request in
// the neutral form, with text that depends on nothing but the request, counted
// in real tokens and delivered at a chosen pace. The gateway runs it in place
// of a provider (Model.Simulate), and Handler puts it behind HTTP in every
// shape, so that tests and demonstrations have an upstream. It is not for
// judging answers: it understands no word of what it is asked.
//
// What it does:
//
//   - Text is made from a hash of model, prompt, seed and choice. The same
//     request gets the same answer.
//   - Stop sequences, max_tokens, n and thinking are honoured, usage is counted
//     with a real vocabulary.
//   - A tool is called if tool_choice demands it or the last user text asks for
//     it ("use the weather tool", "call weather"); the arguments satisfy the
//     tool's schema. A tool's result is repeated in the answer.
//   - Structured output satisfies the schema that was asked for.
//
// Faults are ordered in the header x-sandbox ("delay=2s, cut=10") or in the last
// user text ("[sandbox: delay=2s cut=10]"), which overrules it:
//
//	delay=DURATION   wait before the first event
//	pace=N|max       tokens per second
//	tokens=N         length of the text
//	status=CODE      refuse with this HTTP status
//	retry-after=DURATION  say so in the refusal
//	error[=N]        fail with an error event after N tokens
//	cut[=N]          break the connection after N tokens
//	stall[=N]        fall silent after N tokens until the caller gives up
//	garbage[=N]      send what is not of the shape after N tokens, and stop
//	drip             one character at a time, over HTTP one byte at a time
//	refuse           answer with a refusal
//
// N may be left out and is then 4.
package sandbox
