package main

import (
	"time"

	"stagedoor/providers/catalog"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/embedded"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/shapes/veo"
	"stagedoor/providers/shapes/videos"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// videoUpstreams makes the clients of the kinds of providers that videos can be
// had from. The embedded sandbox has one memory, whatever it is configured as.
func videoUpstreams(simulator *sandbox.Model) func(*catalog.Provider, *upstream.Client) video.Upstream {
	simulated := embedded.NewVideos(simulator, &job.Engine{Now: time.Now})
	return func(spec *catalog.Provider, client *upstream.Client) video.Upstream {
		switch {
		case spec.Serves(catalog.Sandbox):
			return simulated
		case spec.Serves(videos.Name):
			return videos.New(client, spec.Idempotent)
		case spec.Serves(veo.Name):
			return veo.New(client, spec.Idempotent)
		}
		return nil
	}
}
