package media

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"time"

	"stagedoor/http/accesslog"
	"stagedoor/providers/byterange"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/video"
	"stagedoor/state/work"
)

// variants maps the kinds of content to their media types, for providers that send none (wire/videos.md
// 1).
var variants = map[video.Variant]struct{ mediaType, extension string }{
	video.Video:       {"video/mp4", ".mp4"},
	video.Thumbnail:   {"image/webp", ".webp"},
	video.Spritesheet: {"image/jpeg", ".jpg"},
}

// VideoContent serves GET and HEAD of /v1/videos/{id}/content. It streams the content from the provider.
func (hs *Handlers) VideoContent(w http.ResponseWriter, r *http.Request) {
	hs.reader(w, r, func(rc *requestContext) error {
		variant := video.Variant(cmp.Or(r.URL.Query().Get("variant"), string(video.Video)))
		if _, ok := variants[variant]; !ok {
			return dialogue.Invalid("variant", "must be one of video, thumbnail, spritesheet")
		}
		id := r.PathValue("id")
		job, ok := work.FindVideo(hs.State.View(), id, rc.owner())
		if !ok {
			return dialogue.VideoNotFound(id)
		}
		if err := ready(&job, hs.Env.Now()); err != nil {
			return err
		}
		tag := `"` + job.ID + "-" + string(variant) + `"`
		w.Header().Set("Etag", tag)
		if hasTag(r, tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		ctx, leave := hs.Auth.Watch(r, &rc.key)
		defer leave()
		content, err := hs.Videos.Content(ctx, &job, variant, rangeOf(r, tag))
		if err != nil {
			w.Header().Del("Etag")
			return err
		}
		defer content.Close()
		return rc.deliver(&job, variant, content)
	})
}

// hasTag reports whether the client has the content with this tag already (If-None-Match, RFC 9110 13.1.2). Proxies
// that compress make tags weak.
func hasTag(r *http.Request, tag string) bool {
	for t := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

// ready returns an error if a job has no content.
func ready(job *work.Video, now time.Time) error {
	switch {
	case job.Phase == work.VideoFailed:
		return dialogue.BadField("video_id", "video_failed", "the video failed and has no content")
	case job.Phase != work.VideoCompleted:
		return dialogue.BadField("video_id", "video_not_ready", "the video is not completed, it is "+job.Status())
	case job.Expired(now):
		return dialogue.VideoExpired()
	}
	return nil
}

// rangeOf returns the range that a client asks for, or "" for the whole content. A range that is too long, or one of
// other content (If-Range), is ignored. The provider ignores or refuses a malformed one.
func rangeOf(r *http.Request, tag string) string {
	const most = 128
	of := r.Header.Get("If-Range")
	if r.Method == http.MethodHead || of != "" && of != tag || len(r.Header.Get("Range")) > most {
		return ""
	}
	byterange.Correct(r.Header)
	return r.Header.Get("Range")
}

// deliver sends content, or the error of a range that it does not have. It does not send the provider's
// ETag, which may contain the id of the provider's job.
func (rc *requestContext) deliver(job *work.Video, variant video.Variant, c *video.Content) error {
	h := rc.w.Header()
	kind := variants[variant]
	for _, name := range []string{"Content-Length", "Content-Range", "Last-Modified"} {
		if value := c.Header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	h.Set("Accept-Ranges", "bytes")
	if c.Status == http.StatusRequestedRangeNotSatisfiable {
		h.Del("Content-Length")
		return noSuchPart()
	}
	h.Set("Content-Type", cmp.Or(c.Header.Get("Content-Type"), kind.mediaType))
	h.Set("Content-Disposition", `attachment; filename="`+job.ID+kind.extension+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private")
	rc.w.WriteHeader(c.Status)
	if rc.r.Method == http.MethodHead {
		return nil
	}
	to := &patient{rc.w, http.NewResponseController(rc.w)}
	defer to.done()
	if _, err := io.Copy(to, c); err != nil {
		rc.handlers.Logger.Info("video content cut off", "request_id", accesslog.RequestID(rc.w), "video", job.ID,
			"cause", err)
		panic(http.ErrAbortHandler) // so that the client notices the truncation
	}
	return nil
}

// writeTime bounds the time in which a client must accept one piece.
const writeTime = 30 * time.Second

// patient writes to a client that may be slow, with a deadline for each piece.
type patient struct {
	w  io.Writer
	rc *http.ResponseController
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // fails only for a ResponseWriter without deadlines
	return p.w.Write(b)
}

// done clears the deadline for the next request of the connection.
func (p *patient) done() { _ = p.rc.SetWriteDeadline(time.Time{}) }
