// Package veo implements video.Upstream for Google's Veo models: long-running operations of
// models/{model}:predictLongRunning, which are polled by name and whose result is a file that is
// downloaded with the key. It keeps no state between calls. A Provider is safe for concurrent use.
//
// A job that Veo cannot make is refused before the upstream is called and never made in another
// size or length, because the client pays by those. Veo has no progress, no thumbnail and no
// spritesheet, no remix and no edit. A job cannot be deleted; its result is deleted after two days.
//
// # Usage
//
// New returns a Provider over the connections of providers/upstream. actors/videojob calls Submit once for a job and
// Poll until the operation is done, and http/media opens the Content when a client downloads it. Nothing is downloaded
// before, because the vendor keeps the file for two days and many results are never fetched.
//
// # Errors
//
// A request that Veo cannot serve is refused with the name of the parameter. A finished operation without a video was
// held back by the vendor's filters; its reasons become the message of the failed job.
package veo
