package media

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"

	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/actors/videojob"
	"stagedoor/http/auth"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/share"
)

// Options are the dependencies of the handlers.
type Options struct {
	Logger *slog.Logger
	Env    *dialogue.Env
	Auth   *auth.Authenticator
	// Images runs requests for pictures.
	Images *images.Service
	// Videos makes videos, and State tells how they stand.
	Videos *videojob.Service
	State  *state.State
	// Catalog is the one in force.
	Catalog func() *catalog.Catalog
	// Limits are the keys' own.
	Limits *throttle.Keys
	// Watchers is the pool of long polls, among others that watch; nil: they are not
	// bounded.
	Watchers *share.Pool
	// Ledger charges the users of keys for models that have a price.
	Ledger *ledger.Client
	// Content is what was made and is handed out by address.
	Content *Content
	// Scratch is where large uploads wait on disk; "" is the system's place for
	// such.
	Scratch string
}

// Doors are the handlers of the media shapes. Safe for concurrent use.
type Handlers struct{ Options }

// New makes the doors.
func New(o Options) *Handlers {
	if o.Watchers == nil {
		o.Watchers = share.New(share.Watchers, 0, 1)
	}
	return &Handlers{Options: o}
}

// resolve is the name under which the catalogue knows a model.
func (hs *Handlers) resolve(model string) string {
	if entry, ok := hs.Catalog().Resolve(model); ok {
		return entry.Name
	}
	return model
}

// planFor is what to try for a model, nil if nobody serves it.
func (hs *Handlers) planFor(model string) []catalog.Candidate {
	entry, ok := hs.Catalog().Resolve(model)
	if !ok {
		return nil
	}
	return entry.Plan(rand.IntN)
}

// readAll reads a body that is one JSON document.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	u, err := newUpload(w, r, limit)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(u)
}
