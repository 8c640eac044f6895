// Package job runs the simulator's video jobs: they take a time, make progress, end as ordered, and then have content.
// The embedded provider and the HTTP upstreams use the same Engine.
//
// The id of a job contains its start, its duration, its ending and what it shows. Every Engine of every process can
// therefore compute the state of a job from its id alone, and no goroutine runs. An Engine additionally remembers which
// idempotency key began which job, which jobs were deleted, and how often each was submitted, polled and downloaded.
// This memory is bounded, and it is lost with the process.
package job
