// Package cases reads, plays and judges cross-shape translation cases: one client
// request, what the upstream must see, what it answers, what the client must see.
//
// The package is the yardstick, so it knows nothing of the gateway's own packages:
// it has its own reading of JSON (exact numbers), of event streams, and of the rules
// that every upstream request and every client stream must keep.
//
//	Load -> Case -> Runner.Play -> mismatches
//	                  |   Upstream: the scripted provider
//	                  |   matchers, neutral view, folds, invariants
//
// The rules for streams (Decode, Fold, ClientRules) are exported for other suites
// that judge what a client received, such as the fault catalogue.
//
// # Cases
//
// A case is a file of JSON with one or more exchanges. Values in it may be matchers, such as {"$type": "string"}, and
// placeholders that take values from an earlier reply ($client). A case that leaves a member out does not care about
// it.
//
// # Files
//
//	case.go check.go runner.go             cases, playing them, judging the outcome
//	upstream.go upstream*.go               the scripted provider, and the rules that its requests must keep
//	client*.go fold*.go whole.go           the rules for streams and documents, and what a stream adds up to
//	neutral*.go                            requests in one form, in which those of two shapes can be compared
//	match.go placeholder.go                matchers and placeholders
//	value.go stream.go schema.go spelling.go shape.go   reading of JSON, events, schemas and names
package cases
