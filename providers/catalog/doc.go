// Package catalog knows which models the gateway offers: which providers serve
// a name, in which order they are tried, what each can do and what it costs. A
// Catalog is built once from plain values, checked as a whole, and never
// changes afterwards, so that reading it needs no lock; a new configuration is
// a new Catalog. It reads no files and calls nobody.
package catalog
