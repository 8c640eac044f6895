// Package catalog says which models the gateway offers, which providers serve a model and in
// which order, what each can do, and what it costs. It reads no files and makes no calls.
//
// # Usage
//
//	c, mistakes := catalog.New(providers, models)
//	entry, ok := c.Resolve("gpt-4o")
//	for _, candidate := range entry.Plan(rand.IntN) {
//		target := candidate.Target(shape.Name)
//		...
//	}
//
// # Concurrency
//
// A Catalog never changes, so that reading it needs no lock. A new configuration is a new
// Catalog.
//
// # Files
//
//	catalog.go model.go provider.go build.go       the catalogue, what it is made of, and how it is made
//	select.go capabilities.go families.go          which targets suit a request, by what models can do
//	conditions.go patterns.go dots.go              routes with conditions, and patterns of names
//	list.go pricing.go price.go                    the built-in list of models, prices, estimates
//	changes.go                                     what differs between two catalogues
package catalog
