package gemini

import (
	"strconv"

	"stagedoor/providers/dialogue"
)

// flaw is a broken rule and where it was broken. The path is put together on the way from the value
// up to the body, so that a request without flaws builds no paths.
type flaw struct {
	path    string
	rule    string
	missing bool
	unknown bool // a part of an unknown type, which only a translation must refuse
}

// broken returns a flaw of the member at path.
func broken(path, rule string) *flaw { return &flaw{path: path, rule: rule} }

// missing returns the flaw of a member that must be there.
func missing(path string) *flaw { return &flaw{path: path, missing: true} }

// in puts the name of a member before the path and returns f, which may be nil.
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

// next stores the flaw of one more element of a list in *first, unless f, that of an earlier
// element, is worse: an unknown part is the weakest flaw. It reports whether the rest of the list
// must be checked.
func (f *flaw) next(bad *flaw, first **flaw) bool {
	if f == nil || bad != nil && !bad.unknown {
		*first = bad
	}
	return *first == nil || (*first).unknown
}

// at puts the index of an element before the path and returns f, which may be nil.
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
