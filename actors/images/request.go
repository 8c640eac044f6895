package images

import (
	"context"
	"io"
	"net/http"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Request is one request, which has been checked and routed. It is not changed after Begin.
type Request struct {
	ID      string // request id
	Picture *picture.Request
	Header  http.Header // the client's, for the sandbox
	// Plan lists the candidates to try, in order; never empty.
	Plan []catalog.Candidate
	// Key is the id of the key that the request came with. Owner is its user, or the key if it
	// has no user: throttles let owners take turns.
	Key, Owner string
	// KeyGeneration is that of the keys when the key was found good; see flow.Registry.Guard.
	KeyGeneration uint64
	Class         int
	Tokens        int // the estimate the throttles reserve
	// Meter, if set, holds and settles the request's money.
	Meter Meter
	// Dry, if set, keeps the calls of the request, of which none is sent.
	Dry *engine.DryRun
	// Keep makes a picture available under an address of the gateway's own. It is
	// called unless Picture.Inline, and must be durable when it returns.
	Keep func(ctx context.Context, mediaType string, content io.Reader) (address string, err error)
}

// Meter keeps the money of one request. Its calls come one after the other, but
// from several goroutines.
type Meter interface {
	// Begin holds what the attempt at a candidate may cost, before it is made. An error ends the request.
	Begin(ctx context.Context, c *catalog.Candidate) *dialogue.Error
	// Settle charges for the request and ends its hold. For a good reply it is called before the client sees it, and an
	// error is sent instead. It is called when all is over for any other request, and for one whose Settle failed.
	Settle(ctx context.Context, o *Outcome) *dialogue.Error
}

// Meta describes the attempts of the request.
type Meta struct {
	Provider string
	Model    string // the upstream's name
	Losses   string // X-Stagedoor-Losses
	Queued   time.Duration
	Attempts int
}

// Outcome holds the end of a request: Reply or Err.
type Outcome struct {
	Meta
	Reply *picture.Reply
	Err   *dialogue.Error
	// Delivered counts the images to be paid for.
	Delivered int
	Usage     *picture.Usage
	// Accepted says that the provider answered a call of the last attempt with a 2xx status.
	Accepted bool
	// Made counts the images that the provider delivered, also if the client has left since.
	Made int
	// Partials are the partial images that were passed on, Begun the images that had one,
	// and Whole those of them whose last partial image is the picture.
	Partials, Begun, Whole int
	// Committed says that the client has seen a partial image.
	Committed bool
}

// window limits the partial images that wait for the client. Each is megabytes.
const window = 2

// Partial is a partial image on its way to the client.
type Partial struct {
	Image *picture.Partial
	Meta  *Meta // how the request is served
}
