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
//
// # Usage
//
// A test starts an upstream of a vendor and points the gateway at it. The upstream answers as a model would that calls
// tools, and checks each request of the conversation by the rules of the vendor's documents. A Report says which
// requests it would have refused and what of earlier turns did not come back as it was.
//
// The agents of test/agents run against the same upstreams, so that what a real client sends is held to the same rules
// as what the translators make.
package strict
