// Package fields reads client requests field by field and states the rules that
// several shapes share: ranges, closed word lists, metadata, stop sequences. It
// makes one pass over text that is known to be JSON, builds nothing, and names
// the field when a rule is broken. It is not a JSON parser: grammar is checked
// before, and damaged text only has to do no harm.
package fields
