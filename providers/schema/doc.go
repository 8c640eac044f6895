// Package schema rewrites JSON Schemas for upstreams that understand only a
// part of JSON Schema, and decides whether a wish for structured output can be
// honoured at all (gateway.md 4.8). It is for the schemas of structured output
// and of tools; it does not validate values against a schema, and it knows no
// wire format beyond the schema itself.
//
// Schemas come from clients, so they may be hostile: every walk is bounded in
// depth and in the number of nodes it makes, and a chain of $ref is followed
// once. A rewritten schema keeps the order of its members and the spelling of
// its numbers. Keywords are only looked for where a schema stands: a property
// that is called "minimum" is data.
package schema
