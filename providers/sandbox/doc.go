// Package sandbox is a simulator of models for text, pictures and videos that needs no network. The gateway runs it in
// place of a provider (Model.Simulate, Model.Picture, Model.Submit), and Handler serves it over HTTP in every shape, as
// an upstream for tests and demonstrations. It does not understand what it is asked.
//
// # Behaviour
//
//   - Text depends only on a hash of model, prompt, seed and choice, so that the same request gets the same answer.
//   - Stop sequences, max_tokens, n and thinking are honoured. Usage is counted with a real vocabulary.
//   - A tool is called if tool_choice requires it or the last user text asks for it ("use the weather tool", "call
//     weather"). The arguments satisfy the tool's schema, and a tool's result is repeated in the answer.
//   - Structured output satisfies its schema; see Sample.
//   - Pictures are drawn from prompt and seed, and edits change what a mask marks; see package draw. Videos are jobs;
//     see packages job and clip. Package media serves both over HTTP.
//
// # Faults
//
// The header x-sandbox ("delay=2s, cut=10") and the last user text ("[sandbox: delay=2s cut=10]") order faults. The text
// takes precedence.
//
//	delay=DURATION   wait before the first event
//	pace=N|max       tokens per second
//	tokens=N         length of the text
//	status=CODE      refuse with this HTTP status
//	retry-after=DURATION  of the refusal
//	error[=N]        fail with an error event after N tokens
//	cut[=N]          break the connection after N tokens
//	stall[=N]        send nothing after N tokens until the caller gives up
//	garbage[=N]      send bytes that are not of the shape after N tokens, and stop
//	drip             send one character at a time, over HTTP one byte at a time
//	refuse           answer with a refusal
//
// The default of N is 4. A partial picture counts as one token. The faults error, cut, stall and garbage of a video
// concern the reply to its submission, after the job has begun. Further orders for pictures and videos:
//
//	block            moderation refuses the request
//	block=P          moderation ends the job at P percent
//	unsafe           pictures are withheld (is_image_safe is false)
//	job=DURATION     duration of the job
//	expire=DURATION  lifetime of its content
//	fail[=P]         the job fails at P percent
//	freeze[=P]       the job stops at P percent and never ends
//	vanish[=P]       the job is unknown from P percent on
//	busy-polls=N     the first N polls are answered 503
//	cut-polls=N      the next N polls lose their connection
//	cut-downloads=N  the first N downloads break in the middle
//
// The default of P is 50.
package sandbox
