// Package telemetry decides which traces are kept, exports spans and metrics, and measures levels when they are read.
// Metrics that are recorded as things happen, and all names, are in actors/telemetry.
//
// A span passes the tail and the queue. The tail (tail.go) holds the spans of a request that was not sampled until the
// request has ended, and passes them on if it failed or was slow. The queue (queue.go) is bounded, and a goroutine of
// its own empties it into the exporter. Neither ever waits. A span without room is dropped and counted.
package telemetry
