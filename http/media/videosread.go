package media

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/videojob"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/media/videos"
	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	videoshape "stagedoor/providers/shapes/videos"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/work"
)

// discard removes the stored files of a job that was not created.
func (m *maker) discard(o *videojob.Request) {
	for _, id := range o.Video.Files {
		if err := m.handlers.Content.store.Delete(blobs.ID(id)); err != nil {
			m.handlers.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(m.w), "cause", err)
		}
	}
}

// reader identifies a request about jobs and calls read. It writes the error of either. These requests do not
// count against the request rate of the key, because clients poll.
func (hs *Handlers) reader(w http.ResponseWriter, r *http.Request, read func(*requestContext) error) {
	rc := &requestContext{handlers: hs, w: w, r: r}
	err := rc.identify(videoshape.Descriptor.Scope)
	if err == nil {
		err = overload.Claim(r.Context(), rc.owner())
	}
	if err == nil {
		err = read(rc)
	}
	if err != nil {
		rc.refuse(err)
		return
	}
	accesslog.Note(w, slog.String("key", rc.key.ID))
}

// ListVideos serves GET /v1/videos.
func (hs *Handlers) ListVideos(w http.ResponseWriter, r *http.Request) {
	hs.reader(w, r, func(rc *requestContext) error {
		page, err := videos.Page(r.URL.Query())
		if err != nil {
			return err
		}
		view := hs.State.View()
		if page.After != "" && !work.WasVideoOf(view, page.After, rc.owner()) {
			return dialogue.Invalid("after", "is not the id of a video of this list")
		}
		list, more := work.ListVideos(view, rc.owner(), page)
		_ = writeJSON(w, videos.List(list, more)) // fails only if the client has left
		return nil
	})
}

// pollAfter is the interval at which clients are asked to poll a job that has not ended.
const pollAfter = 5 * time.Second

// Video serves GET /v1/videos/{id}. With ?wait=30s it replies when the job changes, and after that time at
// the latest (decisions.md, "Videos"). The poll helper of the vendor's SDKs sends X-Stainless-Poll-Helper and
// sleeps as long as Openai-Poll-After-Ms says.
func (hs *Handlers) Video(w http.ResponseWriter, r *http.Request) {
	hs.reader(w, r, func(rc *requestContext) error {
		wait, err := waitOf(r.URL.Query().Get("wait"))
		if err != nil {
			return err
		}
		ctx := r.Context()
		if wait > 0 {
			leave, err := rc.watch()
			if err != nil {
				return err
			}
			defer leave()
			ctx, leave = hs.Auth.Watch(r, &rc.key)
			defer leave()
		}
		id := r.PathValue("id")
		job, ok := hs.await(ctx, id, rc.owner(), wait)
		var refused *dialogue.Error
		if errors.As(context.Cause(ctx), &refused) { // the key was revoked meanwhile
			return refused
		}
		if !ok {
			return dialogue.VideoNotFound(id)
		}
		if !job.Final() && r.Header.Get("X-Stainless-Poll-Helper") == "true" {
			w.Header().Set("Openai-Poll-After-Ms", strconv.FormatInt(pollAfter.Milliseconds(), 10))
		}
		w.Header().Set("Cache-Control", "no-store")
		_ = writeJSON(w, videos.Object(&job)) // fails only if the client has left
		return nil
	})
}

// watch counts a long poll against the key's limit for requests that watch and against its owner's share of watchers.
// The caller calls leave after the reply.
func (rc *requestContext) watch() (leave func(), err error) {
	if err := auth.AdmitWatcher(rc.w, rc.r, rc.handlers.Limits, &rc.key, rc.handlers.Env.Now()); err != nil {
		return nil, err
	}
	owner := string(rc.owner())
	if err := rc.handlers.Watchers.Take(owner, 1); err != nil {
		return nil, err
	}
	return func() { rc.handlers.Watchers.Give(owner, 1) }, nil
}

// longestVideoWait bounds ?wait.
const longestVideoWait = time.Minute

// waitOf parses ?wait, a duration such as 30s or a number of seconds. It returns longestVideoWait for a longer time,
// and 0 without the parameter.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, dialogue.Invalid("wait", "must be a time such as 30s")
	}
	return min(d, longestVideoWait), nil
}

// await returns a job when it has changed or ended, after wait, or when the store has failed and no change is
// heard of. The channel is taken together with the job, so a change between the look and the wait is not
// missed.
func (hs *Handlers) await(ctx context.Context, id string, owner state.Owner, wait time.Duration) (work.Video, bool) {
	job, changed, ok := work.WatchVideo(hs.State, id, owner)
	if !ok || wait <= 0 || job.Final() {
		return job, ok
	}
	seen := job.Revision
	late := time.NewTimer(wait)
	defer late.Stop()
	for ok && job.Revision == seen {
		select {
		case <-changed:
		case <-late.C:
			return job, true
		case <-hs.State.Failed():
			return job, true
		case <-ctx.Done():
			return job, true
		}
		job, changed, ok = work.WatchVideo(hs.State, id, owner)
	}
	return job, ok
}

// DeleteVideo serves DELETE /v1/videos/{id}. Only jobs that have ended can be deleted.
func (hs *Handlers) DeleteVideo(w http.ResponseWriter, r *http.Request) {
	hs.reader(w, r, func(rc *requestContext) error {
		id := r.PathValue("id")
		err := hs.Videos.Delete(r.Context(), id, rc.owner())
		switch {
		case errors.Is(err, state.ErrNotFound):
			return dialogue.VideoNotFound(id)
		case errors.Is(err, state.ErrExists):
			return dialogue.BadField("video_id", "video_not_terminal",
				"the video is still being made, and cannot be deleted before that has ended")
		case errors.Is(err, state.ErrUnavailable):
			return dialogue.StorageUnavailable("delete videos", err)
		case err != nil:
			return err
		}
		_ = writeJSON(w, videos.Deleted(id)) // fails only if the client has left
		return nil
	})
}
