// Package cases reads, plays and judges cross-shape translation cases: one client
// request, what the upstream must see, what it answers, what the client must see.
//
// The package measures the gateway, so it uses none of the gateway's own packages:
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
// A case is a file of JSON with one or more exchanges; Case, Exchange and Outcome describe its members. What a case
// leaves out is not compared. Unless it says otherwise, the upstream is called once, the status is 200, the header
// x-structured-output-degraded is absent, and the rules of the shapes hold (upstreamRules, ClientRules, WholeRules).
// Every reply has X-Request-Id.
//
// Expectations are maps from JSON pointers (RFC 6901) to matchers. An index of a list may be negative and then counts
// from the end. In expectations about the upstream's request, a pointer that begins with ~ is one into the neutral view
// of the request (neutral.go), in which requests of all shapes have the same members. So one expectation holds for each
// upstream: {"~/calls/0/name": "weather"}.
//
// # Matchers
//
// A value matches itself. Numbers are compared by value, so 1.0 matches 1. Lists match element by element, and an
// object matches one that has more members. An object whose members all begin with $ is a list of operators that must
// all hold:
//
//	$absent, $present        true: the value is missing or null, or is neither
//	$eq, $in                 equal to the value, or to one of a list; unlike a plain object, $eq allows no more members
//	$not, $or, $and          matchers that must not match, of which one must, or all must
//	$type                    the JSON Schema name of the type, or a list of them; an integer is a number as well
//	$regex                   a text in which the expression (RE2) is found
//	$contains                a text with the text, or a list with an element that matches
//	$gt, $gte, $lt, $lte     numbers
//	$len                     the number of characters, elements or members, itself a matcher
//	$any, $all, $none        a list of which one, every or no element matches
//	$subseq                  a list with elements that match these in this order, with any others between them
//	$json                    a text that is JSON and matches
//	$deep_contains           some text inside the value contains the text; $deep_lacks: none does
//	$deep_no_key             no object inside the value has one of the keys
//	$closed_objects          true: all objects of a JSON Schema have additionalProperties false
//	$no_keywords             a JSON Schema without the keywords
//	$refs_resolve            true: each $ref of a JSON Schema has its target in it
//
// Operators other than $absent, $present, $not, $or and $and do not hold of a missing value.
//
// # Placeholders
//
// A follow-up request repeats parts of the reply before it, as clients do. What the pointer leads into is the reply's
// document, or the document that its events add up to (Fold).
//
//	{"$client": "/ptr"}                        the value
//	{"$client_splice": "/ptr"}                 in a list: the elements of the list there
//	{"$client_strip": {"ptr": "", "drop": []}} the value, or each element of a list, without some members
//
// The answer of an upstream can quote the request that the upstream has just received, because the gateway makes ids
// and names that a case cannot know. The text behind | is used if there is no such value.
//
//	{{up:/ptr|text}}     a text or a number of the request
//	{{upkey:/ptr|text}}  the name of the first member of an object of the request
//	{{gen:b64:N}}        N zero bytes in base64, for large bodies; also in requests of clients
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
