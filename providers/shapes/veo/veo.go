package veo

import (
	"context"
	"net/http"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// version begins all paths of the API.
const version = "/v1beta/"

// Name is the name of the shape.
const Name dialogue.Shape = "veo"

// Descriptor holds the facts about the shape. Only upstreams have it, so it has no scope.
var Descriptor = shapes.Descriptor{
	Name:      Name,
	Telemetry: shapes.Telemetry{Operation: "video_generation", Vendor: string(Name)},
	Probe:     shapes.Probe{Path: version + "models", Pages: "pageSize=1000", After: "pageToken", Authorize: authorize},
}

var dialect = upstream.Dialect{Authorize: authorize, DecodeError: decodeError}

// authorize sets the header in which Google expects the key.
func authorize(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }

// Provider is an upstream with Veo models.
type Provider struct {
	client     *upstream.Client
	idempotent bool
}

// New returns a Provider. idempotent says that the upstream honours Idempotency-Key. The vendor does
// not; a relay in front of it may.
func New(client *upstream.Client, idempotent bool) *Provider {
	return &Provider{client: client, idempotent: idempotent}
}

var _ video.Upstream = (*Provider)(nil)

// Supports implements video.Upstream.
func (p *Provider) Supports(op video.Operation) bool { return op == video.Create || op == video.Extend }

// Idempotent implements video.Upstream.
func (p *Provider) Idempotent() bool { return p.idempotent }

// Submit implements video.Upstream. The id is the operation's name. A video that is extended is looked up first,
// because only its operation has the address. The Idempotency-Key lets a call be repeated after a lost reply without a
// second job, where the upstream heeds it.
func (p *Provider) Submit(ctx context.Context, key string, spec *video.Spec,
	open video.Opener) (string, video.Status, error) {
	parameters, err := parametersOf(spec)
	if err != nil {
		return "", video.Status{}, err
	}
	uri, err := p.source(ctx, spec.Source)
	if err != nil {
		return "", video.Status{}, err
	}
	r := request(spec, parameters, uri, open)
	r.Model = spec.Model
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	op, err := p.askOperation(ctx, r)
	if err != nil {
		return "", video.Status{}, err
	}
	if op.status.State == video.InProgress {
		op.status.State = video.Queued // the vendor does not report that work has begun
	}
	return op.name, op.status, nil
}

// source returns the address of the video to extend, or "" if the video is in the request. A lookup that fails is
// classified as NotSent, because the job itself was not submitted yet.
func (p *Provider) source(ctx context.Context, s *video.Source) (string, error) {
	if s == nil || s.File != nil {
		return "", nil
	}
	op, err := p.findOperation(ctx, s.ID)
	if err == video.ErrJobNotFound || err == nil && op.uri == "" {
		return "", unsupported("video", "the provider of this model no longer has it")
	}
	if f, ok := err.(*upstream.Failure); ok && f.Class != upstream.Cancelled {
		f.Class = upstream.NotSent
	}
	return op.uri, err
}

// Poll implements video.Upstream.
func (p *Provider) Poll(ctx context.Context, id string) (video.Status, error) {
	op, err := p.findOperation(ctx, id)
	return op.status, err
}

// findOperation returns the operation of this name, or video.ErrJobNotFound.
func (p *Provider) findOperation(ctx context.Context, id string) (operation, error) {
	if !transfer.ValidID(id) {
		return operation{}, video.ErrJobNotFound
	}
	op, err := p.askOperation(ctx, upstream.Request{Method: http.MethodGet, Path: version + id})
	if upstream.NotFound(err) {
		err = video.ErrJobNotFound
	}
	return op, err
}

// askOperation sends a request whose reply is an operation.
func (p *Provider) askOperation(ctx context.Context, r upstream.Request) (operation, error) {
	reply, err := p.client.SendWithKey(ctx, r, dialect)
	if err != nil {
		return operation{}, err
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil {
		return operation{}, err
	}
	op, ok := decode(body)
	if !ok {
		return operation{}, transfer.InvalidReply("the reply is not an operation")
	}
	if f := op.status.Error; f != nil {
		_, message := p.client.CleanFault(f.Code, f.Message)
		op.status.Error = &video.Fault{Code: f.Code, Message: message}
	}
	return op, nil
}

// Content implements video.Upstream. The operation is read first, because it has the address of the video. Other
// variants than the video are video.ErrNoVariant, and an operation without an address is video.ErrJobNotFound.
func (p *Provider) Content(ctx context.Context, id string, v video.Variant, byteRange string) (*video.Content, error) {
	if v != video.Video {
		return nil, video.ErrNoVariant
	}
	op, err := p.findOperation(ctx, id)
	if err != nil {
		return nil, err
	}
	if op.uri == "" {
		return nil, video.ErrJobNotFound
	}
	reply, err := p.client.SendWithKey(ctx,
		upstream.Request{Method: http.MethodGet, Location: op.uri, Header: transfer.DownloadHeader(byteRange)}, dialect)
	if upstream.NotFound(err) {
		return nil, video.ErrJobNotFound
	}
	if err != nil {
		return nil, err
	}
	return transfer.NewContent(reply, v)
}

// Delete implements video.Upstream. It does nothing, because the vendor has no call for it.
func (p *Provider) Delete(context.Context, string) error { return nil }

// modelPath returns the path of the call that creates a job.
func modelPath(model string) string {
	return version + "models/" + strings.TrimPrefix(model, "models/") + ":predictLongRunning"
}

// unsupported returns the failure for a job that Veo cannot make. It is made before any call, so
// that the job's hold is released.
func unsupported(param, why string) error {
	return &upstream.Failure{Class: upstream.CallerFault, Err: dialogue.Unsupported(param, why)}
}
