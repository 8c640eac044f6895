package shapes

import (
	"strconv"

	"stagedoor/providers/dialogue"
)

// Fault is a rule that a request breaks, and the member that breaks it. A rule knows only the value
// that it checks. The path to the value is put together on the way out, so a request without faults
// builds no paths. In and At accept nil, so that rules can be chained without an if:
// rule(v).In("content").
type Fault struct {
	path string
	rule string // "": the member is missing
	// Unknown is set for a part of an unknown type, which only a translation must refuse. Such a
	// request can still pass through unchanged, so the fault counts only if nothing else is wrong.
	Unknown bool
}

// Broken returns the fault of a value that breaks a rule.
func Broken(rule string) *Fault { return &Fault{rule: rule} }

// Lacking returns the fault of an object without a member that it must have.
func Lacking(name string) *Fault { return &Fault{path: name} }

// UnknownPart returns the fault of a part whose type no document describes.
func UnknownPart() *Fault { return &Fault{Unknown: true} }

// In puts the name of a member before the path and returns f.
func (f *Fault) In(name string) *Fault {
	if f == nil {
		return nil
	}
	if f.path != "" && name != "" {
		name += "."
	}
	f.path = name + f.path
	return f
}

// At puts the index of an element before the path and returns f.
func (f *Fault) At(index int) *Fault { return f.In(strconv.Itoa(index)) }

// Next stores bad, the fault of one more element of a list, in *first, unless the fault that is
// there is worse. It reports whether the rest of the list must be checked: after an unknown part it
// must, because a broken rule is the better answer.
func (f *Fault) Next(first **Fault) bool {
	if *first == nil || f != nil && !f.Unknown {
		*first = f
	}
	return *first == nil || (*first).Unknown
}

// Refusal returns the 400 for the client, which names the path: "messages.0.content.2.source".
func (f *Fault) Refusal() *dialogue.Error {
	switch {
	case f.Unknown:
		return dialogue.UnknownPart(f.path)
	case f.rule == "":
		return dialogue.Missing(f.path)
	}
	return dialogue.Invalid(f.path, f.rule)
}
