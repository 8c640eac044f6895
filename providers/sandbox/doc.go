// Package sandbox is a simulator of models for text, pictures, videos and embeddings that needs no
// network. The gateway runs it in place of a provider (Model.Simulate, Model.Picture, Model.Submit,
// Model.Embed), and Handler serves it over HTTP in every shape, as an upstream for tests and
// demonstrations. It does not understand what it is asked.
//
// # Behaviour
//
//   - Text depends only on a hash of model, prompt, seed and choice, so that the same request gets
//     the same answer.
//   - Stop sequences, max_tokens, n and thinking are honoured. Usage is counted with a real
//     vocabulary.
//   - A tool is called if tool_choice requires it or the last user text asks for it ("use the
//     weather tool", "call weather"). The arguments satisfy the tool's schema, and a tool's result
//     is repeated in the answer.
//   - Structured output satisfies its schema; see Sample.
//   - Pictures are drawn from prompt and seed, and edits change what a mask marks; see package
//     draw. Videos are jobs; see packages job and clip. Package media serves both over HTTP.
//
// # Faults
//
// The header x-sandbox ("delay=2s, cut=10") and the last user text ("[sandbox: delay=2s cut=10]")
// request faults, and the text takes precedence. The file docs/sandbox.md lists the directives.
// error, cut, stall and garbage come after N tokens, 4 without a number, and a partial picture
// counts as one token. Those of a video concern the reply to its submission, after the job has
// begun.
//
// # How a reply is made
//
//	script.go             the directives of a request
//	prompt.go, answer.go  a whole answer is composed first, because the usage at the start depends on it
//	sample.go, pattern.go values for schemas
//	generate.go           the answer is delivered token by token, with the pace and the faults of the script
//	handler.go            the same over HTTP: Check, Decode and the Emitter of a shape, as the gateway serves clients
//	picture.go, embed.go  pictures, videos and embeddings
//
// A Model is immutable and safe for concurrent use. A reply costs no goroutine, and waits on a
// timer between tokens.
package sandbox
