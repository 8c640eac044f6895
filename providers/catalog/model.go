package catalog

// Model is an entry of the catalogue: a name clients ask for, or a pattern of
// names with a single *, and who serves it.
type Model struct {
	Pattern string
	Aliases []string // further exact names
	// Targets share the load by weight; Fallback is tried after all of them.
	Targets, Fallback []Route
	Capabilities      *CapabilityOverrides
	MaxOutputTokens   int64 // stands in for a missing max_tokens; 0: 8192
	Price             *Price
}

// Route is a model at a provider. What it gives takes precedence over what its
// Model gives.
type Route struct {
	Provider string
	// Model is the provider's name for it. A * in it stands for the name that
	// was asked for; "" is the same as "*".
	Model           string
	Weight          int // 0 counts as 1
	Capabilities    *CapabilityOverrides
	MaxOutputTokens int64
	Price           *Price
}

// ModelInfo is an entry of a list of models.
type ModelInfo struct {
	ID      string
	OwnedBy string // the name of the first provider
}

// defaultMaxOutputTokens stands in for a missing max_tokens (decisions.md, text
// shapes).
const defaultMaxOutputTokens = 8192
