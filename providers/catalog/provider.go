package catalog

import (
	"slices"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// Sandbox is the shape of a provider that is the embedded simulator.
const Sandbox dialogue.Shape = "sandbox"

// known reports whether a provider can have this shape.
func known(shape dialogue.Shape) bool { return shape == Sandbox || registry.Describe(shape) != nil }

// Limits bounds the requests that are sent to a provider. Zero is no limit.
type Limits struct {
	RPM, TPM     int // requests and tokens per minute
	Concurrency  int
	Queue        int           // number of requests that may wait
	QueueTimeout time.Duration // longest wait
}

// Timeouts bounds the phases of one upstream call. Zero means the default of providers/upstream.
type Timeouts struct {
	Connect, FirstByte, Idle, Total time.Duration
}

// Provider is an upstream: an address that serves one or more shapes.
type Provider struct {
	Name string
	// Shape is the shape to which requests of other shapes are translated.
	Shape dialogue.Shape
	// Also lists further shapes that the address serves. Requests in them are passed through.
	Also    []dialogue.Shape
	BaseURL string
	// Vendor is the vendor whose prices in the list of models apply, or "*" for a cloud that serves several. "" leaves
	// that to the host of BaseURL.
	Vendor   string
	APIKeys  []string
	Limits   Limits
	Timeouts Timeouts
	Retries  int
	Headers  map[string]string
	// Idempotent says that the provider honours Idempotency-Key, so that a submission may be
	// repeated.
	Idempotent bool
	// PassUnknownResponses passes a previous_response_id that the gateway does not know to the
	// provider.
	PassUnknownResponses bool
}

// Serves reports whether the provider takes requests of a shape without translation.
func (p *Provider) Serves(shape dialogue.Shape) bool {
	return p.Shape == shape || slices.Contains(p.Also, shape)
}
