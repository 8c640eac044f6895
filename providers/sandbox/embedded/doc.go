// Package embedded offers the simulator's video jobs as a video.Upstream inside the gateway, without HTTP. Faults are
// ordered in prompts.
//
// The id of a job says everything about it, so jobs outlive the process. A submission that is repeated after a restart
// begins the same job again: its key is part of the id, and its video has the same bytes.
package embedded
