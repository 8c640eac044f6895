// Package fields reads client requests field by field and has the rules that several shapes (API formats) share, such
// as ranges, closed lists of words, metadata and stop sequences. It also checks that texts from outside are JSON within
// limits.
//
// # Usage
//
// NewReader reads a request in one pass and builds no tree. Each rule consumes one value and names the field in its
// error. Valid and ValidObject check a text as a whole, and Explain finds the rule that a refused text breaks.
// NewLenientReader, ValidLenient and CheckEvent do the same for upstreams, whose texts may have repeated names. Splice
// edits a text in place of encoding it again. A FragmentJoiner decodes a text that an upstream streams in pieces.
//
// # Concurrency
//
// A Reader and a Nesting belong to one goroutine. Names may be shared after they are built.
//
// # Errors
//
// A rule returns a *dialogue.Error that names the field. Explain is slower than the check and is only called for a text
// that was refused, so that a good request does not pay for the reason of a bad one.
//
// # Files
//
//	reader.go names.go scope.go rules.go      reading a request: fields, repeated names, ranges and words
//	grammar.go limits.go nesting.go strings.go   what is valid JSON here, and how deep and long it may be
//	explain.go                                which rule a refused text breaks
//	splice.go mentioned.go join.go            editing a text in place, looking for a name, joining fragments
package fields
