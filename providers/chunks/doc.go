// Package chunks has the parts of the wire format that the chat and completions shapes (API formats) share:
// common fields of requests, the usage object, the error envelope, finish reasons, and streams
// of data-only server-sent events that end with [DONE]. The packages of the two shapes import
// it and do not import each other. It does not read messages, prompts or the contents of
// choices.
//
// Family implements the parts of a shape that are the same for both; the shapes embed it.
// A Checker and a Tap belong to one request and are not safe for concurrent use.
//
// # Files
//
//	family.go                   what both shapes implement alike
//	check.go field.go value.go  rules and fields of requests
//	patch.go                    changes of a request that passes through
//	tap.go emit.go usage.go     streams that pass through, their end, their usage
//	failure.go reason.go        errors and finish reasons, in both directions
//
// # Unknown words
//
// Servers of many vendors speak these shapes and add their own words. What a client may send is closed, as
// the vendor's documents say. What a server may send is open: an unknown finish reason, usage in other
// members and an error in other forms are read as well as they can be (reason.go, usage.go, failure.go).
package chunks
