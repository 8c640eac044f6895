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
package cases
