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
package catalog
