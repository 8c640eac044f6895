// Package video is the neutral form of video jobs: the specification of a job, its status, and
// the interface Upstream that every provider of videos implements.
//
// The adapters providers/shapes/videos, providers/shapes/veo and the sandbox implement
// Upstream, and actors/videojob calls it. Adapters keep no state: the provider's id is enough
// to find a job again, also in another process. The package knows neither the gateway's own ids
// nor the shape of its clients.
//
// # Usage
//
// Submit is called once for a job and must return the provider's id, Poll as often as actors/videojob likes, and
// Content only after Poll has reported Completed. A Spec is stored with its job, so its fields keep their names and
// meanings.
//
// # Errors
//
// ErrJobNotFound of Poll ends a job, because a provider that has forgotten it will not finish it. Every other error may
// pass, and the same call is made again later.
package video
