package picture

import (
	"context"
	"io"
	"net/http"

	"stagedoor/providers/dialogue"
)

// Shape is what the gateway knows of one kind of upstream. Values are stateless
// and safe for concurrent use.
type Shape interface {
	Name() dialogue.Shape

	// Encode writes r for an upstream of this shape, where its model is called
	// model. What the shape cannot say is recorded in rep if the picture is hardly
	// another for it, and else refused with a *dialogue.Error that names the
	// inbound field. r.N is at most MaxImages.
	Encode(r *Request, model string, rep *dialogue.Report) (*Call, error)
	// MaxImages is how many images one call can be asked for; at least 1.
	MaxImages(r *Request, model string) int

	// Body reads a whole reply to a Call made of r. Its slices may point into
	// body. An error is a *dialogue.Error: dialogue.BadUpstream for what is no
	// reply, anything else for a refusal with a status of 200.
	Body(r *Request, body []byte) (*Reply, error)
	// Event reads one server-sent event likewise; nil: it tells nothing. data is
	// only valid until the Event is handed on.
	Event(r *Request, name string, data []byte) (*Event, error)

	// DecodeError reads an upstream's refusal (status >= 400). The status is the
	// upstream's; what the client gets to see is decided by the caller.
	DecodeError(status int, header http.Header, body []byte) *dialogue.Error
	// Authorize sets the header this shape's upstreams want a key in.
	Authorize(h http.Header, key string)
}

// Simplifier is a Shape of which some upstreams refuse fields that others take.
type Simplifier interface {
	// Simplify is what to ask for instead after a refusal, and the names of what that
	// lost; nil: there is nothing to give up that the refusal may be about.
	Simplify(r *Request, model string, refused *dialogue.Error) (less *Request, lost []string)
}

// NonStreaming is the part of a Shape that never asks for a stream. Such shapes embed
// it.
type NonStreaming struct{}

// Event implements Shape.
func (NonStreaming) Event(*Request, string, []byte) (*Event, error) {
	return nil, dialogue.BadUpstream("a stream that was not asked for")
}

// Call is an upstream request in the making; it is always a POST.
type Call struct {
	Path   string // below the provider's base_url: "/images/generations"
	Query  string // without "?"
	Header http.Header
	Body   Content
	Stream bool // the reply will be server-sent events
}

// Content is the body of a Call: it can be read from its front more than once,
// one reader after the other, and knows its length and type.
type Content interface {
	Open() (io.ReadCloser, error)
	Len() int64
	ContentType() string
}

// Simulator makes the events of a reply without any upstream. header is the
// client's. An error of emit is to be returned as it is; any other is a
// *dialogue.Error that the client is told, or a failure of the upstream.
type Simulator func(ctx context.Context, r *Request, header http.Header, emit func(*Event) error) error
