// Package shapes defines what a shape is. A shape is the API format of one vendor: its routes and the JSON of its
// requests, replies and stream events, such as OpenAI's chat completions. Each package below knows exactly one shape
// and provides a Shape; shapes/registry lists them. ARCHITECTURE.md ("How to add a shape") has the checklist for a new
// one.
//
// # Usage
//
// A Shape has four parts and a Descriptor. Inbound serves clients of the shape, Outbound calls
// upstreams of it, Passthrough serves clients whose upstream has the same shape, and Counter
// counts tokens. The Descriptor holds all facts that other packages need: the routes and their
// scope, names for telemetry, default capabilities. Code outside a shape's folder reads the
// Descriptor and its Traits and never compares the names of shapes.
//
// # Where to look
//
//	descriptor.go  the facts about a shape, and the packages that read them
//	shapes.go      the four parts, and the values that they exchange
//	answer.go      how many bytes of answer an event has, for estimates
//	fault.go       a broken rule and the path to it, for the checks of requests
package shapes
