// Package telemetry decides which traces are kept, exports spans and metrics, and measures levels when they are read.
// Metrics that are recorded as things happen, and all names, are in actors/telemetry.
//
// A span passes the tail and the queue. The tail (tail.go) holds the spans of a request that was not sampled until the
// request has ended, and passes them on if it failed or was slow. The queue (queue.go) is bounded, and a goroutine of
// its own empties it into the exporter. Neither ever waits. A span without room is dropped and counted.
//
// # Usage
//
// Start makes the exporters and returns a Telemetry, whose Counts are passed to the packages that
// record. Observe registers what is only measured when it is read. Close exports what is left, and
// comes after the last request.
//
// # Concurrency
//
// All methods may be called by any goroutine. Recording a span or a count never waits for an
// exporter. The price is that a collector which is away loses spans, and a counter says how many.
package telemetry
