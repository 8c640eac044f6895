// Package schema rewrites JSON Schemas for upstreams that support only a part of JSON Schema, and
// decides whether a model can be held to a schema at all. If it cannot, the request is sent without
// the schema and does not fail. The package is for the schemas of structured output and of tools.
// It does not validate values against a schema.
//
// # Usage
//
// DecideOutput returns the output constraint for a target, already in the target's dialect.
// ForMessages, ForGemini, ForGeminiJSON and FromGemini convert one schema between dialects, and the
// functions whose names begin with Tool do so for the parameters of tools.
//
// # Example
//
// A schema of a chat client, and the same for a model that takes Google's OpenAPI subset. The bound
// that the subset lacks moves into the description, where the model can at least read it:
//
//	{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0}}}
//	{"type":"OBJECT","properties":{"n":{"type":"INTEGER","description":"{exclusiveMinimum: 0}"}}}
//
// # How a rewrite works
//
// A document is parsed into nodes (node.go). A walk goes down from the root and makes a new node
// for each schema: expand inlines its $ref and merges its allOf, and then a dialect copies the
// keywords that it has and notes the others (describe.go). Original nodes are never changed,
// because several places may refer to them.
//
// # Hostile schemas
//
// Schemas come from clients. So every walk is bounded in depth, in the number of nodes that it
// makes and in the bytes that it copies, and a chain of $ref is followed once. A rewritten schema
// keeps the order of its members and the spelling of its numbers. Keywords count only where a
// schema is expected: a property with the name "minimum" is data.
package schema
