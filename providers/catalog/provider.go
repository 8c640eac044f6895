package catalog

import (
	"slices"
	"time"

	"stagedoor/providers/dialogue"
)

// Shapes of providers that have no dialogue over HTTP.
const (
	Sandbox  dialogue.Shape = "sandbox" // the embedded simulator
	Images   dialogue.Shape = "images"
	Imagegen dialogue.Shape = "imagegen"
	Videos   dialogue.Shape = "videos"
	Veo      dialogue.Shape = "veo"
)

var textShapes = []dialogue.Shape{
	dialogue.Chat,
	dialogue.Responses,
	dialogue.Completions,
	dialogue.Messages,
	dialogue.Gemini,
}

var knownShapes = append([]dialogue.Shape{Sandbox, Images, Imagegen, Videos, Veo}, textShapes...)

// Limits bound what is sent to a provider; zero is no limit.
type Limits struct {
	RPM, TPM     int // requests and tokens per minute
	Concurrency  int
	Queue        int           // how many may wait
	QueueTimeout time.Duration // and how long
}

// Timeouts of one upstream call; zero takes the default of providers/upstream.
type Timeouts struct {
	Connect, FirstByte, Idle, Total time.Duration
}

// Provider is an upstream: an address that speaks one or more shapes.
type Provider struct {
	Name string
	// Shape is what requests of other shapes are translated to.
	Shape dialogue.Shape
	// Also are further shapes the address speaks: requests in them pass untouched.
	Also      []dialogue.Shape
	BaseURL   string
	APIKeys   []string
	Limits    Limits
	Timeouts  Timeouts
	Retries   int
	Headers   map[string]string
	PassTrace bool // send traceparent
	// Idempotent: it honours Idempotency-Key, so that a submission may be repeated.
	Idempotent bool
	// PassUnknownResponses: a previous_response_id that is not known here is left to
	// the provider.
	PassUnknownResponses bool
}

// Serves reports whether the provider speaks a shape itself.
func (p *Provider) Serves(shape dialogue.Shape) bool {
	return p.Shape == shape || slices.Contains(p.Also, shape)
}
