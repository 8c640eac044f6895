package catalog

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/modelname"
	"stagedoor/providers/shapes/registry"
)

// Catalog holds all providers and models. It is immutable and safe for concurrent use. Callers
// must not change what it returns.
type Catalog struct {
	providers map[string]*Provider
	order     []*Provider // as configured
	exact     map[string]*entry
	patterns  []*entry // most specific first
	infos     []ModelInfo
	entries   []*entry // as configured
	pricing   Pricing
}

// entry is a Model prepared for lookups.
type entry struct {
	name           string // the pattern as configured
	prefix, suffix string // around the *, for patterns
	pattern        bool
	list           []string    // the names that a pattern shows as configured; nil: those of its providers' lists
	targets, rest  []Candidate // by weight; in order
	weight         int         // sum over targets
	// plan is the result of Plan if that is the same for every request, else nil.
	plan []Candidate
}

// Candidate is one provider to try, with the provider's name of the model.
type Candidate struct {
	Provider *Provider
	Model    string
	Price    *Price // what the configuration says; nil if it says nothing
	// On is set for a fallback that is only tried for these reasons.
	On Conditions
	// OnDisconnect is copied from the Model.
	OnDisconnect string
	// Hedge is copied from the Model, or nil if it has none.
	Hedge *Hedge

	route           string // the model as configured
	weight          int
	overrides       [2]*CapabilityOverrides // of the model, of the route
	maxOutputTokens int64
	exactMax        bool
	targets         []dialogue.Target // of the text shapes, if the name is fixed
	pricing         *Pricing
	vendor          string
	listed          *Listed // what the list says of the model; nil if it does not have it
	ppm             int64   // of the listed price
}

// Target returns the candidate's model as the target of a request in a shape.
func (c *Candidate) Target(shape dialogue.Shape) dialogue.Target {
	for i := range c.targets {
		if c.targets[i].Shape == shape {
			return c.targets[i]
		}
	}
	t := dialogue.Target{
		Provider:        c.Provider.Name,
		Shape:           shape,
		Model:           c.Model,
		MaxOutputTokens: c.maxOutputTokens,
		Caps:            CapabilitiesOf(c.Model, shape),
	}
	// The larger of two statements counts, because a limit that is too small refuses requests for nothing.
	if c.listed != nil {
		t.Caps.ContextWindow = max(t.Caps.ContextWindow, c.listed.Context)
	}
	for _, o := range c.overrides {
		o.apply(&t.Caps)
	}
	return t
}

// Fixed returns a candidate whose model is one of the targets, of the same provider and name, in different shapes. It
// is for replaying a request without the catalogue that it was recorded with.
func Fixed(p *Provider, targets ...dialogue.Target) Candidate {
	return Candidate{Provider: p, Model: targets[0].Model, weight: 1, maxOutputTokens: targets[0].MaxOutputTokens,
		targets: targets}
}

// MaxOutput returns the most output tokens of the model for one choice. exact is false if the
// number is a default and not configured.
func (c *Candidate) MaxOutput() (tokens int64, exact bool) { return c.maxOutputTokens, c.exactMax }

// SendsMaximum reports whether the provider always gets a maximum of output tokens, so that a reply to a request
// without one has at most MaxOutput.
func (c *Candidate) SendsMaximum() bool {
	for _, shape := range append([]dialogue.Shape{c.Provider.Shape}, c.Provider.Also...) {
		if d := registry.Describe(shape); d == nil || !d.Traits.SendsMaximum {
			return false
		}
	}
	return true
}

// Route returns the provider's name of the model as it is configured, so with the * of a pattern.
func (c *Candidate) Route() string { return c.route }

// Provider returns the provider of this name, or nil.
func (c *Catalog) Provider(name string) *Provider { return c.providers[name] }

// FirstServing returns the first provider in the configuration that serves a shape, or nil. The
// image vendor's routes use it for models that have no entry.
func (c *Catalog) FirstServing(shape dialogue.Shape) *Provider {
	if i := slices.IndexFunc(c.order, func(p *Provider) bool { return p.Serves(shape) }); i >= 0 {
		return c.order[i]
	}
	return nil
}

// Models returns the exact names, and those that patterns show, in the order of the configuration. It leaves out
// patterns, because a client cannot send one as a model.
func (c *Catalog) Models() []ModelInfo { return c.infos }

// Resolved is the entry for a name, as Resolve found it.
type Resolved struct {
	entry *entry
	// Name is the name of the model: for an alias, that of the model it stands for.
	Name string
}

// Resolve returns the entry for a name: the exact one, else that of the most specific pattern. A
// pattern for the documents' names of media models also matches the vendors' names, and the
// other way round (decisions.md, names). No pattern matches a name that would lead to another
// path at a provider, or that is longer than those of requests may be.
func (c *Catalog) Resolve(name string) (Resolved, bool) {
	if e := c.exact[name]; e != nil {
		if e.pattern {
			return c.resolved(e, name)
		}
		return c.resolved(e, e.name)
	}
	if name == "" || leavesPath(name) || dialogue.CheckModel("", name) != nil {
		return Resolved{}, false
	}
	public, vendor := modelname.Public(name), modelname.Vendor(name)
	for _, e := range c.patterns {
		if e.matches(name) || e.matches(public) || e.matches(vendor) {
			return c.resolved(e, name)
		}
	}
	return Resolved{}, false
}

// resolved returns an entry, unless the configuration refuses models without a known price and it has no other.
func (c *Catalog) resolved(e *entry, name string) (Resolved, bool) {
	r := Resolved{e, name}
	if c.pricing.RefuseUnknown && len(r.Plan(func(int) int { return 0 })) == 0 {
		return Resolved{}, false
	}
	return r, true
}

// matches reports whether a name fits the pattern. The length is checked first, so that prefix and
// suffix do not overlap in a short name.
func (e *entry) matches(name string) bool {
	return len(name) >= len(e.prefix)+len(e.suffix) && strings.HasPrefix(name, e.prefix) &&
		strings.HasSuffix(name, e.suffix)
}

// Plan returns the candidates in the order in which to try them: one target chosen by weight,
// the other targets, and the fallbacks. pick returns a number in [0,n). The plan of what Resolve found is
// never empty. It must not be changed.
func (r Resolved) Plan(pick func(n int) int) []Candidate {
	e := r.entry
	if e.plan != nil {
		return e.plan
	}
	plan := make([]Candidate, 0, len(e.targets)+len(e.rest))
	first := e.chooseTarget(pick)
	plan = append(plan, e.targets[first])
	plan = append(plan, e.targets[:first]...)
	plan = append(plan, e.targets[first+1:]...)
	plan = append(plan, e.rest...)
	for i := range plan {
		plan[i].setName(r.Name)
	}
	return withKnownPrice(plan)
}

// withKnownPrice leaves out what the configuration refuses because its price is not known.
func withKnownPrice(plan []Candidate) []Candidate {
	return slices.DeleteFunc(plan, func(c Candidate) bool {
		return c.pricing != nil && c.pricing.RefuseUnknown && c.PriceUnknown()
	})
}

// chooseTarget returns the index of a target, each as often as its weight says. pick returns a
// random number below n; tests pass their own.
func (e *entry) chooseTarget(pick func(n int) int) int {
	if len(e.targets) == 1 {
		return 0
	}
	left := pick(e.weight)
	return max(slices.IndexFunc(e.targets, func(c Candidate) bool {
		left -= c.weight
		return left < 0
	}), 0)
}

// setName replaces the * in the model by the name in the request, and finds that model in the list. A candidate whose
// name is fixed stays as it is.
func (c *Candidate) setName(name string) {
	if c.targets == nil {
		c.Model = strings.Replace(c.Model, "*", modelname.Vendor(name), 1)
		c.lookUp()
	}
}
