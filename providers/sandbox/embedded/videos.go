package embedded

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// Videos is the sandbox as an upstream.
type Videos struct {
	model  *sandbox.Model
	engine *job.Engine
}

// NewVideos makes an upstream of a simulator. engine should be one for the whole
// process: it knows what was deleted.
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
			return "", video.Status{}, refused(dialogue.Unsupported("video", "the sandbox does not have it any more"))
		}
		spec.Source = s.Source.ID
	}
	id, err := v.model.Submit(ctx, v.engine, key, http.Header{}, spec)
	if err != nil {
		return "", video.Status{}, failure(ctx, err)
	}
	status, err := v.engine.Peek(id)
	if err != nil {
		// It vanished at once, as ordered: the first poll will tell.
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

// Content implements video.Upstream.
func (v *Videos) Content(ctx context.Context, id string, variant video.Variant, byteRange string) (*video.Content, error) {
	asset, err := v.engine.Content(ctx, id, variant)
	switch {
	case errors.Is(err, job.ErrExpired), errors.Is(err, job.ErrFailed):
		return nil, video.ErrJobNotFound
	case err != nil:
		return nil, failure(ctx, err)
	}
	size, err := asset.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, failure(ctx, err)
	}
	c := &video.Content{Status: http.StatusOK, Header: http.Header{
		"Content-Type": {asset.MediaType}, "Etag": {strconv.Quote(id + "-" + string(variant))}}}
	part := span{0, size}
	if asked, ok := parseRange(byteRange, size); ok {
		part, c.Status = asked, http.StatusPartialContent
		if asked.length == 0 {
			c.Status = http.StatusRequestedRangeNotSatisfiable
			c.Header.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
			c.ReadCloser = http.NoBody
			return c, nil
		}
		c.Header.Set("Content-Range", part.of(size))
	}
	if _, err := asset.Seek(part.start, io.SeekStart); err != nil {
		return nil, failure(ctx, err)
	}
	c.Header.Set("Content-Length", strconv.FormatInt(part.length, 10))
	c.ReadCloser = io.NopCloser(&download{ctx: ctx, src: io.LimitReader(asset, part.length)})
	return c, nil
}

// download classifies the end that was ordered for it.
type download struct {
	ctx context.Context
	src io.Reader
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	if err := context.Cause(d.ctx); err != nil {
		return 0, upstream.CancelledBy(err)
	}
	n, err := d.src.Read(p)
	if err != nil && err != io.EOF {
		err = failure(d.ctx, err)
	}
	return n, err
}

var errBusy = &dialogue.Error{Status: http.StatusServiceUnavailable, Type: dialogue.TypeOverloaded, Code: "sandbox_busy",
	Message: "the sandbox is too busy to answer as it was told to"}

// failure classifies an error of the simulator as that of a call over the network
// would be.
func failure(ctx context.Context, err error) error {
	var told *dialogue.Error
	switch {
	case err == nil, errors.Is(err, video.ErrJobNotFound), errors.Is(err, video.ErrNoVariant):
		return err
	case errors.As(err, &told):
		return refused(told)
	case errors.Is(err, job.ErrBusy):
		return refused(errBusy)
	case context.Cause(ctx) != nil:
		return upstream.CancelledBy(context.Cause(ctx))
	}
	return upstream.Broken(err)
}

func refused(e *dialogue.Error) error {
	f := upstream.Refused(catalog.Sandbox, e.Status, nil, e)
	f.RetryAfter = e.RetryAfter
	return f
}
