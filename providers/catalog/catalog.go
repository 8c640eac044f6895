package catalog

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// Catalog is the whole offer. It is immutable and safe for concurrent use; so
// is everything it returns, which must not be written to.
type Catalog struct {
	providers map[string]*Provider
	order     []*Provider // as configured
	exact     map[string]*entry
	patterns  []*entry // most specific first
	infos     []ModelInfo
}

// entry is a Model made ready.
type entry struct {
	name           string // the pattern as configured
	prefix, suffix string // around the *, for patterns
	pattern        bool
	targets, rest  []Candidate // by weight; in order
	weight         int         // sum over targets
	// plan is the answer if there is only one, whatever is asked and picked.
	plan []Candidate
}

// Candidate is one provider to try, with the model under the name it has there.
type Candidate struct {
	Provider *Provider
	Model    string
	Price    *Price // nil: free

	weight          int
	overrides       [2]*CapabilityOverrides // of the model, of the route
	maxOutputTokens int64
	exactMax        bool
	targets         []dialogue.Target // of the text shapes, if the name is fixed
}

// Target is the candidate as the encoder of a shape sees it.
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
	for _, o := range c.overrides {
		o.apply(&t.Caps)
	}
	return t
}

// MaxOutput returns the most output tokens that the model gives to one choice. exact tells
// that the catalogue says so; otherwise it is a default.
func (c *Candidate) MaxOutput() (tokens int64, exact bool) { return c.maxOutputTokens, c.exactMax }

// Provider finds a provider by name; nil: there is none.
func (c *Catalog) Provider(name string) *Provider { return c.providers[name] }

// FirstServing finds the first provider, in the order of the configuration, that serves a
// shape; nil: there is none. The image vendor's routes are served by it where no
// entry names their model.
func (c *Catalog) FirstServing(shape dialogue.Shape) *Provider {
	if i := slices.IndexFunc(c.order, func(p *Provider) bool { return p.Serves(shape) }); i >= 0 {
		return c.order[i]
	}
	return nil
}

// Models lists the exact names, in the order of the configuration. Patterns
// are left out: nobody can ask for them.
func (c *Catalog) Models() []ModelInfo { return c.infos }

// Resolved is a name that the catalogue knows.
type Resolved struct {
	entry *entry
	// Name is what the name counts as: an alias is resolved to its model.
	Name string
}

// Resolve finds the entry for a name: an exact one, else that of the most
// specific pattern. A pattern for the documents' names of media models is one for
// the vendors', too, and the other way round (decisions.md, names). No pattern
// matches a name that would lead elsewhere in a provider's path.
func (c *Catalog) Resolve(name string) (Resolved, bool) {
	if e := c.exact[name]; e != nil {
		if e.pattern {
			return Resolved{e, name}, true
		}
		return Resolved{e, e.name}, true
	}
	if name == "" || climbs(name) {
		return Resolved{}, false
	}
	public, vendor := PublicName(name), VendorName(name)
	for _, e := range c.patterns {
		if e.matches(name) || e.matches(public) || e.matches(vendor) {
			return Resolved{e, name}, true
		}
	}
	return Resolved{}, false
}

func (e *entry) matches(name string) bool {
	return len(name) >= len(e.prefix)+len(e.suffix) && strings.HasPrefix(name, e.prefix) &&
		strings.HasSuffix(name, e.suffix)
}

// Plan is the order in which to try: one target chosen by weight, the other
// targets, the fallbacks. pick returns a number in [0,n). The plan is never
// empty and must not be written to.
func (r Resolved) Plan(pick func(n int) int) []Candidate {
	e := r.entry
	if e.plan != nil {
		return e.plan
	}
	plan := make([]Candidate, 0, len(e.targets)+len(e.rest))
	first := e.choose(pick)
	plan = append(plan, e.targets[first])
	plan = append(plan, e.targets[:first]...)
	plan = append(plan, e.targets[first+1:]...)
	plan = append(plan, e.rest...)
	for i := range plan {
		plan[i].named(r.Name)
	}
	return plan
}

func (e *entry) choose(pick func(n int) int) int {
	if len(e.targets) == 1 {
		return 0
	}
	left := pick(e.weight)
	return max(slices.IndexFunc(e.targets, func(c Candidate) bool {
		left -= c.weight
		return left < 0
	}), 0)
}

// named puts the name that was asked for in the place of *.
func (c *Candidate) named(name string) {
	if c.targets == nil {
		c.Model = strings.Replace(c.Model, "*", VendorName(name), 1)
	}
}
