package gemini

import (
	"strconv"

	"stagedoor/providers/dialogue"
)

// flaw is a broken rule on its way up to the document's root, where its path is
// complete. Paths are only put together when there is something to complain of.
type flaw struct {
	path    string
	rule    string
	missing bool
	unknown bool // a part of an unknown type, which only a translation must refuse
}

func broken(path, rule string) *flaw { return &flaw{path: path, rule: rule} }

func missing(path string) *flaw { return &flaw{path: path, missing: true} }

// in moves a flaw below a field.
func (f *flaw) in(name string) *flaw {
	switch {
	case f == nil:
		return nil
	case f.path == "":
		f.path = name
	default:
		f.path = name + "." + f.path
	}
	return f
}

// next puts the flaw of one more element of a list into *first unless f, that of an earlier one, is worse. It reports
// whether the list is to be read on, as it is behind an unknown part.
func (f *flaw) next(bad *flaw, first **flaw) bool {
	if f == nil || bad != nil && !bad.unknown {
		*first = bad
	}
	return *first == nil || (*first).unknown
}

// at moves a flaw below an element of an array.
func (f *flaw) at(i int) *flaw {
	if f == nil {
		return nil
	}
	return f.in(strconv.Itoa(i))
}

// err returns f as an error. It is nil, and not a typed nil, if f is nil.
func (f *flaw) err() error {
	switch {
	case f == nil:
		return nil
	case f.missing:
		return dialogue.Missing(f.path)
	}
	return dialogue.Invalid(f.path, f.rule)
}
