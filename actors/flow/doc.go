// Package flow keeps the requests in flight, each with its phase and its output so far, and the requests that ended
// last, with their spans. Administrators look at them here and can end a request.
//
// It makes no decisions and delays no request. The code that does the work reports in passing, at the cost of a few
// atomic operations for a request and one for each chunk. Readers pay for everything else. Permanent records belong to
// traces, metrics and logs (actors/telemetry). Prompts, replies and keys never come here.
package flow
