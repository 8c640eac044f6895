// Package flow knows the requests under way, each with its phase and what it has
// brought so far, and remembers the last ones that ended, with their spans. It is
// what operators look at, and where they end a request.
//
// It decides nothing and holds nobody up: those who do the work tell it in passing,
// with a few atomics for a request and one for each piece of reply. Everything else
// is paid by who looks. What is to be kept for good goes to traces, metrics and logs
// (actors/telemetry); prompts, replies and keys never come here.
package flow
