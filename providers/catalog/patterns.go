package catalog

import (
	"slices"
	"strings"

	"stagedoor/providers/modelname"
)

// maxModels bounds the lists of models. Names that the configuration gives are not cut.
const maxModels = 10_000

// Patterns returns the names with a * as they are configured, in that sequence. A client can send any name that one of
// them matches, so pages and lists show them beside the exact names of Models.
func (c *Catalog) Patterns() []string {
	var all []string
	for _, e := range c.entries {
		if e.pattern {
			all = append(all, e.name)
		}
	}
	return all
}

// Listing returns the names of the providers whose own lists say which models are behind a pattern, so those that
// WithLists uses.
func (c *Catalog) Listing() []string {
	var all []string
	for _, e := range c.entries {
		for _, t := range e.targets {
			if e.expands(&t) && !slices.Contains(all, t.Provider.Name) {
				all = append(all, t.Provider.Name)
			}
		}
	}
	return all
}

// expands reports whether the list of the target's provider says which models are behind the pattern.
func (e *entry) expands(t *Candidate) bool {
	return e.pattern && e.list == nil && t.targets == nil && t.Provider.Shape != Sandbox
}

// WithLists returns a catalogue that shows the models behind its patterns, and is the same otherwise. lists has the
// names that providers list, by the provider's name. A model is shown once, and only where its owner serves it.
func (c *Catalog) WithLists(lists map[string][]string) *Catalog {
	shown := *c
	shown.infos = nil
	seen := make(map[string]bool)
	for _, e := range c.entries {
		show := func(name, owner string) {
			seen[name] = true
			shown.infos = append(shown.infos, ModelInfo{ID: name, OwnedBy: owner})
		}
		configured := e.list
		if !e.pattern {
			configured = []string{e.name}
		}
		for _, name := range configured {
			if r, ok := c.Resolve(name); ok && r.entry.owner() == e.owner() && !seen[name] {
				show(name, e.owner())
			}
		}
		for _, t := range e.targets {
			if !e.expands(&t) {
				continue
			}
			for _, upstream := range lists[t.Provider.Name] {
				name, ok := e.nameOf(&t, upstream)
				if !ok || seen[name] || len(shown.infos) >= maxModels {
					continue
				}
				if r, ok := c.Resolve(name); ok && r.entry == e {
					show(name, t.Provider.Name)
				}
			}
		}
	}
	return &shown
}

// nameOf returns the name by which clients of the pattern get a model of a target's provider. It reports false if the
// pattern does not lead to that model.
func (e *entry) nameOf(t *Candidate, upstream string) (name string, ok bool) {
	before, after, _ := strings.Cut(t.route, "*")
	name, ok = strings.CutPrefix(upstream, before)
	if ok {
		name, ok = strings.CutSuffix(name, after)
	}
	if ok && !e.matches(name) {
		name = modelname.Public(name)
		ok = e.matches(name)
	}
	return name, ok
}
