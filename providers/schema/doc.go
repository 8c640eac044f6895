// Package schema rewrites JSON Schemas for upstreams that support only a part of JSON Schema, and decides whether a
// model can be held to a schema at all. If it cannot, the request is sent without the schema and does not fail. The
// package is for the schemas of structured output and of tools. It does not validate values against a schema.
//
// # Usage
//
// DecideOutput returns the output constraint for a target, already in the target's dialect.
// ForMessages, ForGemini, ForGeminiJSON and FromGemini convert one schema between dialects, and
// the functions whose names begin with Tool do so for the parameters of tools.
//
// # Hostile schemas
//
// Schemas come from clients. So every walk is bounded in depth, in the number of nodes that it
// makes and in the bytes that it copies, and a chain of $ref is followed once. A rewritten schema
// keeps the order of its members and the spelling of its numbers. Keywords count only where a
// schema is expected: a property with the name "minimum" is data.
package schema
