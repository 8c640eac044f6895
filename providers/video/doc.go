// Package video is the neutral form of video jobs: what is asked of a provider,
// how a job stands, and the few things that every provider of videos can do.
//
// It is for adapters (providers/shapes/videos, veo, the sandbox) on one side and
// for whoever runs jobs on the other. Adapters keep nothing: a job is found again
// by the provider's id alone, in another process too. It knows neither the
// gateway's own ids nor its clients' shape.
package video
