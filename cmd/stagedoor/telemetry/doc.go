// Package telemetry decides where spans and numbers go: which requests' traces
// are kept, how they leave the process, what is measured at the moment of asking.
// What is measured as it happens, and all names, are in actors/telemetry.
//
// Spans pass two stations. The tail (tail.go) holds the spans of a request that
// was not sampled until the request has ended, and lets them go on if it failed or
// was slow. The queue (queue.go) is bounded; a goroutine of its own empties it
// into the exporter. Neither ever waits: what there is no room for is dropped and
// counted.
package telemetry
