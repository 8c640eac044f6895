// Package veo asks the third shape's upstreams for videos: long-running
// operations of models/{model}:predictLongRunning, polled by name, whose result
// is a file to download with the key. It keeps nothing between calls.
//
// What Veo cannot make is refused before anything is asked for, not silently made
// otherwise: a job's size and length are what its client pays for. There is no
// progress, no thumbnail and no spritesheet, no remix and no edit, and a job
// cannot be deleted: results are gone two days later.
package veo
