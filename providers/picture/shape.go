package picture

import (
	"context"
	"io"
	"net/http"

	"stagedoor/providers/dialogue"
)

// Shape is one kind of upstream that makes pictures.
type Shape struct {
	Name dialogue.Shape
	// MakesPictures is set if a provider of the shape can be expected to make pictures when a
	// pattern for all models leads to it. Where only some models do, it is false.
	MakesPictures bool
	Codec
}

// Codec translates between the neutral form and a shape. Implementations keep no state and are
// safe for concurrent use.
type Codec interface {
	// Encode writes r for an upstream of this shape, which knows the model as model. A
	// parameter that the shape does not have is recorded in rep if the picture is nearly the
	// same without it. Otherwise Encode returns a *dialogue.Error that names the field of the
	// client's request. r.N is at most MaxImages. Where it must convert a mask, it waits for the owner's turn until ctx
	// ends.
	Encode(ctx context.Context, r *Request, model string, rep *dialogue.Report) (*Call, error)
	// MaxImages returns the most images that one call to model can make, at least 1. A request for more
	// is divided into several calls.
	MaxImages(r *Request, model string) int

	// Body reads a whole reply to a Call that Encode made of r. The slices of the Reply may
	// point into body. An error is a *dialogue.Error: dialogue.BadUpstream for a body of
	// another form, any other for a refusal that came with the status 200.
	Body(r *Request, body []byte) (*Reply, error)
	// Event reads one server-sent event in the same way. It returns nil for an event that the
	// client does not need. data is valid only until the Event has been delivered.
	Event(r *Request, name string, data []byte) (*Event, error)

	// DecodeError reads an upstream's refusal (status >= 400). The caller decides which of it
	// the client gets.
	DecodeError(status int, header http.Header, body []byte) *dialogue.Error
	// Authorize sets the header in which upstreams of this shape expect the key.
	Authorize(h http.Header, key string)
}

// Simplifier is implemented by a Codec of which some upstreams refuse fields that others take.
type Simplifier interface {
	// Simplify returns the request to send after a refusal, and the names of the fields that it
	// lacks. It returns nil if no field can be left out that the refusal may be about.
	Simplify(r *Request, model string, refused *dialogue.Error) (less *Request, lost []string)
}

// NonStreaming implements the part of Codec that a shape without streams does not need. Embed
// it in such a shape.
type NonStreaming struct{}

// Event implements Codec.
func (NonStreaming) Event(*Request, string, []byte) (*Event, error) {
	return nil, dialogue.BadUpstream("a stream that was not asked for")
}

// Call is a request for an upstream. Its method is always POST.
type Call struct {
	Path   string // relative to the provider's base_url: "/images/generations"
	Query  string // without "?"
	Header http.Header
	Body   Content
	Stream bool // the reply will be server-sent events
	// Passthrough is set if Body is the client's own, in which at most a few values were replaced.
	Passthrough bool
}

// Content is the body of a Call. Its length and type are known before it is sent. It can be
// opened more than once, because a call may be repeated; use one reader at a time.
type Content interface {
	Open() (io.ReadCloser, error)
	Len() int64
	ContentType() string
}

// Simulator makes the events of a reply without an upstream. header is the client's. It returns
// errors of emit unchanged. Any other error is a *dialogue.Error for the client, or a failure
// that counts as one of the upstream.
type Simulator func(ctx context.Context, r *Request, header http.Header, emit func(*Event) error) error
