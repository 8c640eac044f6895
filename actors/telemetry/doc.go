// Package telemetry has the names of traces and metrics and the functions with which the code reports them, that is
// spans of a request, calls of upstreams, and counts. It knows the interfaces of OpenTelemetry only.
// cmd/stagedoor/telemetry decides where spans and numbers go and which are kept.
//
// A request is one trace:
//
//	POST /v1/messages        SERVER    from the first to the last byte
//	├ auth                   INTERNAL  which key, and may it
//	├ ledger.hold            INTERNAL  once for every attempt that costs more
//	├ queue                  INTERNAL  only if the request had to wait, or was refused
//	├ translate              INTERNAL  into the upstream's shape, for every attempt
//	├ chat {model}           CLIENT    one call of an upstream; retries and
//	├ chat {model}           CLIENT    fallbacks are its siblings
//	└ ledger.settle          INTERNAL  may end after the SERVER span
//
// Work that outlives its request has a trace of its own, which is linked to the request.
//
// No attribute contains prompts, replies, keys or tokens, unless Telemetry.Content is set.
//
// # Series
//
// The number of series of a metric is bounded. Labels come from the configuration where they can, and a metric with a
// label that clients choose counts under "_other" once it has too many values (series.go). A metric can therefore not
// be used to fill the memory of the gateway or of the collector.
//
// # Concurrency
//
// All methods are safe for concurrent use, and most of them may be called on nil, so that code that reports need not
// ask whether anything is measured.
package telemetry
