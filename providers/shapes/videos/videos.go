package videos

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// root begins all paths of the shape.
const root = "/v1/videos"

// Name is the name of the shape.
const Name dialogue.Shape = "videos"

// Descriptor holds the facts about the shape.
var Descriptor = shapes.Descriptor{
	Name: Name, Scope: "videos",
	Telemetry: shapes.Telemetry{Operation: "video_generation", Vendor: chunks.Vendor},
	Probe:     chunks.Probe,
}

var dialect = upstream.Dialect{Authorize: authorize, DecodeError: chunks.DecodeError}

// authorize sets the header in which upstreams expect the key.
func authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// Provider is an upstream that serves the videos routes.
type Provider struct {
	client     *upstream.Client
	idempotent bool
}

// New returns a Provider. idempotent says that the upstream honours Idempotency-Key. The vendor's
// documents do not promise it.
func New(client *upstream.Client, idempotent bool) *Provider {
	return &Provider{client: client, idempotent: idempotent}
}

var _ video.Upstream = (*Provider)(nil)

// Supports implements video.Upstream.
func (p *Provider) Supports(op video.Operation) bool {
	switch op {
	case video.Create, video.Remix, video.Edit, video.Extend:
		return true
	}
	return false
}

// Idempotent implements video.Upstream.
func (p *Provider) Idempotent() bool { return p.idempotent }

// Submit implements video.Upstream.
func (p *Provider) Submit(ctx context.Context, key string, spec *video.Spec,
	open video.Opener) (string, video.Status, error) {
	r, err := encode(spec, open)
	if err != nil {
		return "", video.Status{}, err
	}
	r.Model = spec.Model
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return p.askJob(ctx, r)
}

// Poll implements video.Upstream. An id that could lead out of its place in the path is video.ErrJobNotFound without a
// call.
func (p *Provider) Poll(ctx context.Context, id string) (video.Status, error) {
	if !isJobID(id) {
		return video.Status{}, video.ErrJobNotFound
	}
	_, s, err := p.askJob(ctx, upstream.Request{Method: http.MethodGet, Path: root + "/" + id})
	return s, orJobNotFound(err)
}

// askJob sends a request whose reply is a job.
func (p *Provider) askJob(ctx context.Context, r upstream.Request) (string, video.Status, error) {
	reply, err := p.client.SendWithKey(ctx, r, dialect)
	if err != nil {
		return "", video.Status{}, err
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil {
		return "", video.Status{}, err
	}
	id, s, ok := decode(body)
	if !ok {
		return "", video.Status{}, transfer.InvalidReply("the reply is not a video job")
	}
	s.PollAfter = pollAfter(reply.Header)
	if s.Error != nil {
		code, message := p.client.CleanFault(s.Error.Code, s.Error.Message)
		s.Error = &video.Fault{Code: orDefaultCode(code), Message: message}
	}
	return id, s, nil
}

// Content implements video.Upstream. The caller reads the content as it arrives, and closes it.
func (p *Provider) Content(ctx context.Context, id string, v video.Variant, byteRange string) (*video.Content, error) {
	if !isJobID(id) {
		return nil, video.ErrJobNotFound
	}
	r := upstream.Request{
		Method: http.MethodGet,
		Path:   root + "/" + id + "/content",
		Header: transfer.DownloadHeader(byteRange),
	}
	if v != video.Video {
		r.Query = "variant=" + string(v)
	}
	reply, err := p.client.SendWithKey(ctx, r, dialect)
	if err != nil {
		return nil, orNoVariant(orJobNotFound(err), v)
	}
	return transfer.NewContent(reply, v)
}

// Delete implements video.Upstream. A job that the upstream no longer has is video.ErrJobNotFound, which callers take
// as deleted.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if !isJobID(id) {
		return video.ErrJobNotFound
	}
	reply, err := p.client.SendWithKey(ctx, upstream.Request{Method: http.MethodDelete, Path: root + "/" + id}, dialect)
	if err != nil {
		return orJobNotFound(err)
	}
	reply.Close()
	return nil
}

// isJobID reports whether an id can be one of this shape.
func isJobID(id string) bool { return transfer.ValidID(id) && !strings.Contains(id, "/") }

// orJobNotFound replaces a 404 by video.ErrJobNotFound.
func orJobNotFound(err error) error {
	if upstream.NotFound(err) {
		return video.ErrJobNotFound
	}
	return err
}

// orNoVariant replaces a refusal of the variant by video.ErrNoVariant.
func orNoVariant(err error, v video.Variant) error {
	var f *upstream.Failure
	if v == video.Video || !errors.As(err, &f) || f.Class != upstream.CallerFault {
		return err
	}
	if f.Err.Param == "variant" || strings.Contains(strings.ToLower(f.Err.Message), "variant") {
		return video.ErrNoVariant
	}
	return err
}

// unsupported returns the failure for a job that the shape cannot express.
func unsupported(param, why string) error {
	return &upstream.Failure{Class: upstream.CallerFault, Err: dialogue.Unsupported(param, why)}
}
