// Package video is the neutral form of video jobs: the specification of a job, its status, and
// the interface Upstream that every provider of videos implements.
//
// The adapters providers/shapes/videos, providers/shapes/veo and the sandbox implement
// Upstream, and actors/videojob calls it. Adapters keep no state: the provider's id is enough
// to find a job again, also in another process. The package knows neither the gateway's own ids
// nor the shape of its clients.
package video
