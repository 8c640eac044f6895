// Package veo implements video.Upstream for Google's Veo models: long-running operations of
// models/{model}:predictLongRunning, which are polled by name and whose result is a file that is
// downloaded with the key. It keeps no state between calls. A Provider is safe for concurrent use.
//
// A job that Veo cannot make is refused before the upstream is called and never made in another
// size or length, because the client pays by those. Veo has no progress, no thumbnail and no
// spritesheet, no remix and no edit. A job cannot be deleted; its result is deleted after two days.
package veo
