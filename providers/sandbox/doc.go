// Package sandbox is a model that needs no network, and a maker of pictures and
// videos. It answers every request in the neutral form, with text that depends
// on nothing but the request, counted in real tokens and delivered at a chosen
// pace. The gateway runs it in place of a provider (Model.Simulate), and Handler
// puts it behind HTTP in every shape, so that tests and demonstrations have an
// upstream. It is not for judging answers: it understands no word of what it is
// asked.
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
//   - Pictures (Model.Picture) are drawn from prompt and seed, edits change what
//     the mask marks; see package draw. Videos are jobs (Model.Submit); see
//     packages job and clip. Package media serves both over HTTP.
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
// N may be left out and is then 4. Of pictures, each one shown counts as one
// token; of a video job, error, cut, stall and garbage befall the reply to its
// submission, after the job has begun. Of pictures and videos besides:
//
//	block            moderation refuses the request
//	block=P          ... or ends the job at P percent
//	unsafe           pictures are made and withheld (is_image_safe is false)
//	job=DURATION     how long the job takes
//	expire=DURATION  how long its content is there
//	fail[=P]         the job fails at P percent
//	freeze[=P]       the job stops at P percent and never ends
//	vanish[=P]       the job is not known any more from P percent on
//	busy-polls=N     the first N polls are answered 503
//	cut-polls=N      the N polls after that lose their connection
//	cut-downloads=N  the first N downloads break in the middle
//
// P may be left out and is then 50.
package sandbox
