// Package flow keeps the requests in flight, each with its phase and its output so far, and the requests that ended
// last, with their spans. Administrators look at them here and can end a request.
//
// It makes no decisions and delays no request. The code that does the work reports in passing, at the cost of a few
// atomic operations for a request and one for each chunk. Readers pay for everything else. Permanent records belong
// to traces, metrics and logs (actors/telemetry). Prompts, replies and keys never come here.
//
// # Usage
//
// The code that serves a request calls Registry.Begin, reports with the methods of the Request, such as Attempt, Enter
// and Progress, and calls End once. Record follows when the cost is known. Readers call Active, Recent and Find.
//
// # Concurrency
//
// A Registry is split into shards by request, so that requests do not wait for each other. The phases of a request
// are atomic words. A reader may see a request in a phase that has just ended, never one that it was not in.
//
// # Bounds
//
// Ended requests and their spans are bounded in number, and the oldest go first. A key whose requests are refused
// over and over appears once for many of them (refused.go), because it would push everything else out of the lists.
//
// # Files
//
//	registry.go request.go phase.go   requests in flight and their phases
//	spans.go                          spans of requests that someone looks at, and of the latest ended ones
//	hour.go                           durations and counts of each provider in the last hour
//	refused.go app.go                 keys with many refusals, names of the apps that send requests
package flow
