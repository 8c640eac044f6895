// Package videos implements video.Upstream for upstreams that serve the videos routes of OpenAI's
// API (wire/videos.md): POST /v1/videos starts a job, GET /v1/videos/{id} polls it, and GET
// /v1/videos/{id}/content downloads the result. It keeps no state between calls, because the record
// of actors/videojob has all that is known of a job. A Provider is safe for concurrent use. The
// gateway serves the same routes to its clients in http/media.
//
//	{"id":"video_1","object":"video","status":"in_progress","progress":40}    Status{State: InProgress, Progress: 40}
//
// # Errors
//
// The kind of an upstream.Failure says whether the call may have made a job that costs money. actors/videojob submits
// such a job again only if the upstream honours Idempotency-Key. A job that the upstream no longer knows is
// video.ErrJobNotFound, which ends it and is not repeated.
//
// # What is trusted
//
// The reply of an upstream is read within the limits of replies, and keys are removed from the texts of its errors. An
// id goes into the path of later calls, so one that could lead to another path is taken for a job that does not exist.
package videos
