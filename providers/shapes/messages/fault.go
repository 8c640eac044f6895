package messages

import (
	"strconv"

	"stagedoor/providers/dialogue"
)

// fault is a broken rule and where it was broken. The place is written on the
// way out, so that a request without faults builds no paths.
type fault struct {
	path string
	rule string // "": the field is missing
	// unknown is set for a content block of an unknown type, which only a translation must refuse.
	unknown bool
}

// broken returns the fault of a value that breaks a rule.
func broken(rule string) *fault { return &fault{rule: rule} }

// missing returns the fault of a member that must be there.
func missing(name string) *fault { return &fault{path: name} }

// in puts the name of a member before the path of the fault and returns it. It accepts nil, so that
// rules can be chained without an if: rule(v).in("content").
func (f *fault) in(name string) *fault {
	if f == nil {
		return nil
	}
	if f.path != "" {
		name += "." + f.path
	}
	f.path = name
	return f
}

// at puts the index of an element before the path of the fault and returns it. It accepts nil.
func (f *fault) at(index int) *fault {
	if f == nil {
		return nil
	}
	return f.in(strconv.Itoa(index))
}

// error returns the 400 for the client, which names the path: "messages.0.content.2.source".
func (f *fault) error() *dialogue.Error {
	if f.unknown {
		return dialogue.UnknownPart(f.path)
	}
	if f.rule == "" {
		return dialogue.Missing(f.path)
	}
	return dialogue.Invalid(f.path, f.rule)
}
