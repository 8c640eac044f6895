// Package videos implements video.Upstream for upstreams that serve the videos routes of OpenAI's
// API (wire/videos.md): POST /v1/videos starts a job, GET /v1/videos/{id} polls it, and GET
// /v1/videos/{id}/content downloads the result. It keeps no state between calls, because the record
// of actors/videojob has all that is known of a job. A Provider is safe for concurrent use. The
// gateway serves the same routes to its clients in http/media.
//
//	{"id":"video_1","object":"video","status":"in_progress","progress":40}    Status{State: InProgress, Progress: 40}
package videos
