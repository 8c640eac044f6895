// Package upstream speaks HTTP to providers: pooled connections, four timeouts
// (connect, first byte, idle, total), a bounded reader of server-sent events,
// rotation of the provider's keys and the classification of everything that
// can go wrong into a handful of failure classes. It knows no shape: what a
// request or reply says is the business of providers/shapes.
package upstream
