package catalog

import "time"

// Model is an entry of the configuration: a name that clients use, or a pattern of names with a
// single *, and the providers that serve it.
type Model struct {
	Pattern string
	Aliases []string // further exact names
	// List has names that a pattern shows in lists of models, because the pattern itself is no name. If it is nil, these
	// are the names that its providers list (Catalog.WithLists). If it is empty, there are none.
	List []string
	// Targets share the load by weight; Fallback is tried after all of them.
	Targets, Fallback []Route
	Capabilities      *CapabilityOverrides
	MaxOutputTokens   int64 // replaces a missing max_tokens; 0 means 8192
	Price             *Price
	// OnDisconnect says what happens to a request whose client disconnects without having chosen a policy itself:
	// cancel, finish or detach. "" leaves the choice to the gateway.
	OnDisconnect string
	Hedge        *Hedge
}

// Hedge says when a further target starts for a request whose first target has sent nothing.
type Hedge struct {
	// Model is the name or the pattern of the model.
	Model string
	// After is the time after which it starts. 0 stands for the time within which 95 of 100 replies of the first target
	// have begun lately.
	After time.Duration
	// Most bounds the further targets of one request.
	Most int
}

// Route is a model at a provider. Its values take precedence over those of its Model.
type Route struct {
	Provider string
	// Model is the provider's name of the model. A * in it stands for the name in the request.
	// "" is the same as "*".
	Model           string
	Weight          int // 0 counts as 1
	Capabilities    *CapabilityOverrides
	MaxOutputTokens int64
	Price           *Price
	On              Conditions // for a fallback
}

// ModelInfo is an entry of a list of models.
type ModelInfo struct {
	ID      string
	OwnedBy string // the name of the first provider, or of the one whose list has the model
}

// defaultMaxOutputTokens replaces a missing max_tokens (decisions.md, text shapes).
const defaultMaxOutputTokens = 8192
