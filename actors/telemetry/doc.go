// Package telemetry is what traces and metrics are called, and how the code that
// does the work tells of it: spans of a request, calls of upstreams, counts. It
// knows the interfaces of OpenTelemetry only. Where spans and numbers go, what is
// kept of them and whether there are any is decided in cmd/stagedoor/telemetry.
//
// A request is one trace:
//
//	POST /v1/messages        SERVER    from the first to the last byte
//	├ auth                   INTERNAL  which key, and may it
//	├ ledger.hold            INTERNAL  once for every attempt that costs more
//	├ queue                  INTERNAL  only where somebody had to wait, or was refused
//	├ translate              INTERNAL  into the upstream's shape, for every attempt
//	├ chat {model}           CLIENT    one call of an upstream; retries and
//	├ chat {model}           CLIENT    fallbacks are its siblings
//	└ ledger.settle          INTERNAL  may end after the SERVER span
//
// Work that outlives its request is a trace of its own, linked to the request.
//
// Prompts, replies, keys and tokens are in no attribute; see Content.
package telemetry
