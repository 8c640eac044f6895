package media

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"time"

	"stagedoor/actors/videojob"
	"stagedoor/http/accesslog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/video"
	"stagedoor/state"
)

// variants are the kinds of content and what they are if their provider does not
// say (wire/videos.md 1).
var variants = map[video.Variant]struct{ mediaType, extension string }{
	video.Video:       {"video/mp4", ".mp4"},
	video.Thumbnail:   {"image/webp", ".webp"},
	video.Spritesheet: {"image/jpeg", ".jpg"},
}

// VideoContent is GET and HEAD of /v1/videos/{id}/content: the bytes come from
// the provider as they are read (wire/videos.md 5).
func (hs *Handlers) VideoContent(w http.ResponseWriter, r *http.Request) {
	hs.reader(w, r, func(rc *requestContext) error {
		variant := video.Variant(cmp.Or(r.URL.Query().Get("variant"), string(video.Video)))
		if _, ok := variants[variant]; !ok {
			return dialogue.Invalid("variant", "must be one of video, thumbnail, spritesheet")
		}
		id := r.PathValue("id")
		job, ok := hs.State.View().Video(id, rc.owner())
		if !ok {
			return videoNotFound(id)
		}
		if err := ready(&job, hs.Env.Now()); err != nil {
			return err
		}
		tag := `"` + job.ID + "-" + string(variant) + `"`
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
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

// ready says why there is no content of a job.
func ready(job *state.Video, now time.Time) error {
	refuse := func(code, why string) *dialogue.Error {
		return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Param: "video_id", Code: code, Message: "video_id: " + why}
	}
	switch {
	case job.Phase == state.VideoFailed:
		return refuse("video_failed", "the video failed and has no content")
	case job.Phase != state.VideoCompleted:
		return refuse("video_not_ready", "the video is not completed, it is "+job.Status())
	case job.Expired(now):
		return videojob.Expired()
	}
	return nil
}

// rangeOf is the part that a client wants, "" if it wants all: what is no range is
// not one, and neither is that of other content (If-Range).
func rangeOf(r *http.Request, tag string) string {
	const most = 128
	asked, of := r.Header.Get("Range"), r.Header.Get("If-Range")
	if r.Method == http.MethodHead || of != "" && of != tag || len(asked) > most || !strings.HasPrefix(asked, "bytes=") {
		return ""
	}
	return asked
}

// deliver sends content, or refuses a range that it does not have. The provider's
// own tag stays with it: it may name the provider's job.
func (rc *requestContext) deliver(job *state.Video, variant video.Variant, c *video.Content) error {
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
		rc.handlers.Logger.Info("video content cut off", "request_id", accesslog.RequestID(rc.w), "video", job.ID, "cause", err)
		panic(http.ErrAbortHandler) // so that the client does not take it for the whole
	}
	return nil
}

// writeTime is how long a client may take for one piece.
const writeTime = 30 * time.Second

// patient is a client that may be slow, but not stand still.
type patient struct {
	w  io.Writer
	rc *http.ResponseController
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // a ResponseWriter without deadlines does without
	return p.w.Write(b)
}

// done leaves the connection to its next request.
func (p *patient) done() { _ = p.rc.SetWriteDeadline(time.Time{}) }
