package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// Videos implements video.Upstream with the simulator.
type Videos struct {
	model  *sandbox.Model
	engine *job.Engine
}

// NewVideos returns an upstream. All upstreams of a process should share one engine, which remembers deleted jobs.
func NewVideos(model *sandbox.Model, engine *job.Engine) *Videos {
	return &Videos{model: model, engine: engine}
}

var _ video.Upstream = (*Videos)(nil)

// Supports implements video.Upstream.
func (*Videos) Supports(op video.Operation) bool {
	switch op {
	case video.Create, video.Remix, video.Edit, video.Extend:
		return true
	}
	return false
}

// Idempotent implements video.Upstream.
func (*Videos) Idempotent() bool { return true }

// Submit implements video.Upstream.
func (v *Videos) Submit(ctx context.Context, key string, s *video.Spec, _ video.Opener) (string, video.Status, error) {
	spec := job.Spec{Model: s.Model, Prompt: s.Prompt, Width: s.Size.Width, Height: s.Size.Height, Seconds: s.Seconds}
	if spec.Seconds > clip.Longest {
		return "", video.Status{}, refused(dialogue.Invalid("seconds", "would make the video longer than 120 seconds"))
	}
	if s.Source != nil && s.Source.ID != "" {
		from, err := v.engine.Peek(s.Source.ID)
		if err != nil || from.State != video.Completed {
			return "", video.Status{}, refused(dialogue.Unsupported("video", "the sandbox has no such video any more"))
		}
		spec.Source = s.Source.ID
	}
	id, err := v.model.Submit(ctx, v.engine, key, http.Header{}, spec)
	if err != nil {
		return "", video.Status{}, failure(ctx, err)
	}
	status, err := v.engine.Peek(id)
	if err != nil {
		// The job vanished at once, as ordered. The first poll will report it.
		return id, video.Status{State: video.Queued}, nil
	}
	return id, status.Status, nil
}

// Poll implements video.Upstream.
func (v *Videos) Poll(ctx context.Context, id string) (video.Status, error) {
	s, err := v.engine.Poll(ctx, id)
	return s.Status, failure(ctx, err)
}

// Delete implements video.Upstream.
func (v *Videos) Delete(_ context.Context, id string) error { return v.engine.Delete(id) }

// Content implements video.Upstream. A Range of several parts is ignored.
func (v *Videos) Content(
	ctx context.Context,
	id string,
	variant video.Variant,
	byteRange string,
) (*video.Content, error) {
	asset, err := v.engine.Content(ctx, id, variant)
	switch {
	case errors.Is(err, job.ErrExpired), errors.Is(err, job.ErrFailed):
		return nil, video.ErrJobNotFound
	case err != nil:
		return nil, failure(ctx, err)
	}
	r := &http.Request{Method: http.MethodGet, Header: http.Header{}}
	if !strings.Contains(byteRange, ",") {
		r.Header.Set("Range", byteRange)
	}
	w := &reply{header: http.Header{}}
	w.header.Set("Content-Type", asset.MediaType)
	w.header.Set("Etag", strconv.Quote(id+"-"+string(variant)))
	http.ServeContent(w, r, "", time.Time{}, asset)
	w.header.Del("Accept-Ranges")
	if w.status == http.StatusRequestedRangeNotSatisfiable {
		w.Reset()
		w.header = http.Header{"Content-Range": w.header["Content-Range"]}
	}
	return &video.Content{
		Status:     w.status,
		Header:     w.header,
		ReadCloser: io.NopCloser(&download{ctx: ctx, reply: w}),
	}, nil
}

// reply keeps a reply of net/http in memory.
type reply struct {
	bytes.Buffer
	header http.Header
	status int
}

func (w *reply) Header() http.Header    { return w.header }
func (w *reply) WriteHeader(status int) { w.status = status }

// download reads a reply. One that is shorter than its length was broken off as ordered.
type download struct {
	ctx context.Context
	*reply
	read int
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	if err := context.Cause(d.ctx); err != nil {
		return 0, upstream.CancelledBy(err)
	}
	n, err := d.reply.Read(p)
	d.read += n
	if err == io.EOF && d.status != http.StatusRequestedRangeNotSatisfiable &&
		strconv.Itoa(d.read) != d.header.Get("Content-Length") {
		return n, failure(d.ctx, job.ErrCut)
	}
	return n, err
}

// failure classifies an error of the simulator as the same error of a call over the network would be.
func failure(ctx context.Context, err error) error {
	var known *dialogue.Error
	switch {
	case err == nil, errors.Is(err, video.ErrJobNotFound), errors.Is(err, video.ErrNoVariant):
		return err
	case errors.As(err, &known):
		return refused(known)
	case context.Cause(ctx) != nil:
		return upstream.CancelledBy(context.Cause(ctx))
	}
	return upstream.Broken(err)
}

func refused(e *dialogue.Error) error {
	f := upstream.Refused(dialogue.Traits{}, e.Status, nil, e)
	f.RetryAfter = e.RetryAfter
	return f
}
