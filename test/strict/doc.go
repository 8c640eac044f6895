// Package strict has upstreams that check a conversation as their vendors do, and plays agents' tool
// loops against them. An upstream of a vendor gives out reasoning with a proof, remembers it, and
// refuses a request that breaks a rule of the vendor: about the pairing of calls and results, about
// ids, unknown members, the order of parts, and about proofs that it did not give out or that stand
// on other content. It also notes reasoning of its own that the vendor would take back and that did
// not come back. The package is for tests only.
//
// # Files
//
//	vendor.go rules.go   the upstreams, and the rules of each vendor
//	agents.go loop.go    agents as the vendors' clients are, and their tool loops
//	plan.go              what an agent does in each turn
//
// A new rule needs a request that breaks it in rules_test.go, because a rule that never fails proves nothing.
package strict
