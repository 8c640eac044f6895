package catalog

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/modelname"
	"stagedoor/providers/shapes/registry"
)

// New builds a Catalog that charges what the configuration gives a price. It returns all mistakes in the
// configuration, and a nil Catalog if there are any.
func New(providers []Provider, models []Model) (*Catalog, []error) {
	return Build(providers, models, Pricing{})
}

// Build is New with rules for models that the configuration gives no price. Patterns are tried from the most
// specific one on: the one with the most fixed characters, and of two such the one with the longer beginning.
func Build(providers []Provider, models []Model, pricing Pricing) (*Catalog, []error) {
	if pricing.List == nil {
		pricing.List = Builtin()
	}
	b := builder{c: &Catalog{providers: map[string]*Provider{}, exact: map[string]*entry{}, pricing: pricing}}
	for i := range providers {
		b.addProvider(&providers[i])
	}
	for i := range models {
		b.addModel(&models[i])
	}
	if len(b.mistakes) > 0 {
		return nil, b.mistakes
	}
	b.addAliases(models)
	slices.SortStableFunc(b.c.patterns, func(x, y *entry) int {
		return cmp.Or(cmp.Compare(len(y.prefix)+len(y.suffix), len(x.prefix)+len(x.suffix)),
			cmp.Compare(len(y.prefix), len(x.prefix)))
	})
	return b.c.WithLists(nil), nil
}

// builder collects the mistakes of a configuration, so that an operator sees all of them at once.
// It goes on after a mistake, and the catalog is thrown away at the end.
type builder struct {
	c        *Catalog
	mistakes []error
	names    []string // exact names and patterns seen so far
}

// addMistake records a mistake. Building goes on, so that all mistakes are reported at once.
func (b *builder) addMistake(format string, args ...any) {
	b.mistakes = append(b.mistakes, fmt.Errorf(format, args...))
}

// addProvider checks a provider and keeps a copy, because the caller may change its slice later. A
// provider with mistakes is kept too, so that its models do not add the mistake of an unknown
// provider.
func (b *builder) addProvider(p *Provider) {
	at := fmt.Sprintf("provider %q", p.Name)
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{p.Name == "", "name is required"},
		{b.c.providers[p.Name] != nil, "is given twice"},
		{!known(p.Shape), fmt.Sprintf("shape %q is unknown", p.Shape)},
		{p.Shape != Sandbox && !absolute(p.BaseURL), "base_url must be an http or https address"},
		{min(p.Limits.RPM, p.Limits.TPM, p.Limits.Concurrency, p.Limits.Queue) < 0 || p.Limits.QueueTimeout < 0,
			"limits must not be negative"},
		{min(p.Timeouts.Connect, p.Timeouts.FirstByte, p.Timeouts.Idle, p.Timeouts.Total) < 0,
			"timeouts must not be negative"},
		{p.Retries < 0, "retries must not be negative"},
		{slices.Contains(p.APIKeys, ""), "an API key is empty"},
	} {
		if rule.broken {
			b.addMistake("%s: %s", at, rule.says)
		}
	}
	for _, shape := range p.Also {
		if !known(shape) {
			b.addMistake("%s: shape %q is unknown", at, shape)
		}
	}
	copied := *p
	b.c.providers[p.Name] = &copied
	b.c.order = append(b.c.order, &copied)
}

// absolute reports whether address is a full http or https address. Without the check, a host
// without a scheme would be read as a path.
func absolute(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// addModel checks a model and adds its entry. A name and an alias may not be the same as another
// one, since which of the two a request means would depend on the order of the file.
func (b *builder) addModel(m *Model) {
	at := fmt.Sprintf("model %q", m.Pattern)
	if m.Pattern == "" {
		b.addMistake("%s: a name or pattern is required", at)
	}
	if strings.Count(m.Pattern, "*") > 1 {
		b.addMistake("%s: more than one * in a pattern", at)
	}
	if len(m.Targets) == 0 {
		b.addMistake("%s: a target is required", at)
	}
	for _, name := range append([]string{m.Pattern}, m.Aliases...) {
		if slices.Contains(b.names, name) {
			b.addMistake("%s: the name %q is given twice", at, name)
		}
		b.names = append(b.names, name)
	}
	for _, alias := range m.Aliases {
		if alias == "" || strings.Contains(alias, "*") {
			b.addMistake("%s: alias %q must be an exact name", at, alias)
		}
	}
	b.checkCommon(at, m.Capabilities, m.MaxOutputTokens, m.Price)

	e := &entry{name: m.Pattern, list: m.List}
	e.prefix, e.suffix, e.pattern = strings.Cut(m.Pattern, "*")
	for i := range m.Targets {
		e.targets = append(e.targets, b.candidate(at, m, &m.Targets[i], e.pattern))
		e.weight += e.targets[i].weight
	}
	for i := range m.Fallback {
		e.rest = append(e.rest, b.candidate(at, m, &m.Fallback[i], e.pattern))
	}
	if e.pattern {
		b.c.patterns = append(b.c.patterns, e)
	} else {
		b.c.exact[m.Pattern] = e
	}
	b.c.entries = append(b.c.entries, e)
	e.keepPlan()
}

// owner returns the provider of the first target, or "" if there is none.
func (e *entry) owner() string {
	if len(e.targets) == 0 {
		return ""
	}
	return e.targets[0].Provider.Name
}

// keepPlan stores the plan if it is the same for every request. Most models have one target, and their
// requests then share the slice, which must not be changed.
func (e *entry) keepPlan() {
	plan := slices.Concat(e.targets, e.rest)
	if len(e.targets) == 1 && !slices.ContainsFunc(plan, func(c Candidate) bool { return c.targets == nil }) {
		e.plan = withKnownPrice(plan)
	}
}

// checkCommon checks the settings that a model and each of its targets may have.
func (b *builder) checkCommon(at string, o *CapabilityOverrides, maxOutputTokens int64, p *Price) {
	if maxOutputTokens < 0 {
		b.addMistake("%s: max_output_tokens must not be negative", at)
	}
	if o != nil && o.Thinking != "" {
		if _, ok := thinkingStyles[o.Thinking]; !ok {
			b.addMistake("%s: thinking %q is not none, budget, effort or implicit", at, o.Thinking)
		}
	}
	if p != nil && slices.ContainsFunc(p.amounts(), func(n *int64) bool { return *n < 0 }) {
		b.addMistake("%s: prices must not be negative", at)
	}
}

// candidate resolves one target of a model: settings of the target come before those of the model,
// and those before the defaults. For a model with a fixed name, everything that depends on the name
// is looked up now, so that a request does no work for it. For a pattern, this happens when a
// request brings the name.
func (b *builder) candidate(at string, m *Model, r *Route, pattern bool) Candidate {
	p := b.c.providers[r.Provider]
	if p == nil {
		b.addMistake("%s: provider %q is unknown", at, r.Provider)
		p = new(Provider)
	}
	if r.Weight < 0 {
		b.addMistake("%s: weight must not be negative", at)
	}
	if strings.Count(r.Model, "*") > 1 {
		b.addMistake("%s: more than one * in %q", at, r.Model)
	}
	b.checkCommon(at, r.Capabilities, r.MaxOutputTokens, r.Price)
	c := Candidate{
		Provider:        p,
		Model:           cmp.Or(r.Model, "*"),
		weight:          max(r.Weight, 1),
		overrides:       [2]*CapabilityOverrides{m.Capabilities, r.Capabilities},
		maxOutputTokens: cmp.Or(r.MaxOutputTokens, m.MaxOutputTokens, defaultMaxOutputTokens),
		OnDisconnect:    m.OnDisconnect,
		exactMax:        r.MaxOutputTokens > 0 || m.MaxOutputTokens > 0,
		Price:           cmp.Or(r.Price, m.Price),
		On:              r.On,
		Hedge:           m.Hedge,
		route:           cmp.Or(r.Model, "*"),
		pricing:         &b.c.pricing,
		vendor:          b.c.pricing.vendorOf(p),
	}
	if !pattern {
		c.Model = strings.Replace(c.Model, "*", modelname.Vendor(m.Pattern), 1)
	}
	if !strings.Contains(c.Model, "*") {
		c.lookUp()
		c.keepTargets()
	}
	return c
}

// keepTargets computes the targets of a candidate whose model name is fixed. There is one for each shape,
// since a provider may serve several.
func (c *Candidate) keepTargets() {
	targets := make([]dialogue.Target, 0, len(registry.All))
	for _, shape := range registry.All {
		targets = append(targets, c.Target(shape.Name))
	}
	c.targets = targets
}

// addAliases adds the further names of every model. The vendors' own names of media models come
// last, so that configured names take precedence.
func (b *builder) addAliases(models []Model) {
	for i := range models {
		for _, alias := range models[i].Aliases {
			if e := b.entry(models[i].Pattern); e != nil {
				b.c.exact[alias] = e
			}
		}
	}
	for i := range models {
		m := &models[i]
		for _, name := range append([]string{m.Pattern}, m.Aliases...) {
			for _, other := range []string{modelname.Vendor(name), modelname.Public(name)} {
				if b.c.exact[other] == nil && b.c.exact[name] != nil {
					b.c.exact[other] = b.c.exact[name]
				}
			}
		}
	}
}

// entry returns the entry that addModel has made for pattern, or nil.
func (b *builder) entry(pattern string) *entry {
	if e := b.c.exact[pattern]; e != nil {
		return e
	}
	for _, e := range b.c.patterns {
		if e.name == pattern {
			return e
		}
	}
	return nil
}
