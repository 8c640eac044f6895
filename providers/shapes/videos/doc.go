// Package videos implements video.Upstream for upstreams that serve the videos routes
// (wire/videos.md). It keeps no state between calls. A Provider is safe for concurrent use. The
// gateway serves the same routes to its clients in http/media.
package videos
