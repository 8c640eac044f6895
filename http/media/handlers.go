package media

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/actors/recording"
	"stagedoor/actors/throttle"
	"stagedoor/actors/videojob"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Options configure Handlers.
type Options struct {
	Logger *slog.Logger
	Env    *dialogue.Env
	Auth   *auth.Authenticator
	// Images runs requests for pictures.
	Images *images.Service
	// Videos runs video jobs, and State has their records.
	Videos *videojob.Service
	State  *state.State
	// Heartbeat is the time after which a stream begins although it has no event yet. 0 means never.
	Heartbeat time.Duration
	// Catalog returns the current catalogue.
	Catalog func() *catalog.Catalog
	// Limits enforces the limits of keys.
	Limits *throttle.Keys
	// Watchers limits long polls, together with other requests that watch. Nil means no
	// limit.
	Watchers *share.Pool
	// Ledger charges the users of keys for models that have a price.
	Ledger *ledger.Client
	// Attach, if not nil, keeps replies for clients that repeat or leave their requests for pictures.
	Attach *attach.Service
	// Content stores pictures and serves them at signed addresses.
	Content *Content
	// Flow has requests that were refused put into the log of requests. It may be nil.
	Flow *flow.Registry
	// Recorder keeps the requests of keys that are recorded, but those that read. It may be nil.
	Recorder *recording.Recorder
	// Scratch is the directory for large uploads. An empty string means the system's
	// temporary directory.
	Scratch string
}

// Handlers has the HTTP handlers of the media shapes. It is safe for concurrent use.
type Handlers struct{ Options }

// New returns Handlers.
func New(o Options) *Handlers {
	if o.Watchers == nil {
		o.Watchers = share.New(share.Watchers, 0, 1)
	}
	return &Handlers{Options: o}
}

// resolve returns the name of a model in the catalogue, or model itself if it is not there.
func (hs *Handlers) resolve(model string) string {
	if entry, ok := hs.Catalog().Resolve(model); ok {
		return entry.Name
	}
	return model
}

// planFor returns the candidates for a model in the order in which to try them, or nil if the model is
// not in the catalogue.
func (hs *Handlers) planFor(model string) []catalog.Candidate {
	entry, ok := hs.Catalog().Resolve(model)
	if !ok {
		return nil
	}
	return entry.Plan(rand.IntN)
}
