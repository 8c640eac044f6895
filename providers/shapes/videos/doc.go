// Package videos asks upstreams that speak the videos routes (wire/videos.md) for
// video jobs. It keeps nothing between calls, and it is not for the gateway's own
// clients, whose side of the same routes is in http/media.
package videos
