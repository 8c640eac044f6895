package fields

import (
	"strconv"
	"strings"
)

// A Fault is the first rule that a text breaks, and the place.
type Fault struct {
	Flaw   Flaw
	Offset int // of the first byte at fault, or the length of a text that ends too early
	// Path is the path of the member for RepeatedName and MisspelledName, of the object for TooManyNames, of the list
	// for TooManyItems, and else "".
	Path string
	Name string // the right spelling, for MisspelledName
}

// Rule returns the end of a sentence that begins with the name of the text.
func (f Fault) Rule() string { return f.Flaw.rule(MaxDepth) }

// Explain returns the first rule of Valid that text breaks. It takes linear time.
func Explain(text []byte) Fault { return ExplainNames(text, nil) }

// ExplainNames is Explain for a text that was read with names.
func ExplainNames(text []byte, names *Names) Fault {
	r := NewReader(text).Knowing(names)
	defer r.Free()
	r.Skip()
	end := r.pos
	switch {
	case r.Whole():
		return Fault{}
	case r.flaw == Sound: // something stands behind the value, or there is no value
		return Fault{Flaw: Malformed, Offset: end}
	case r.flaw == RepeatedName:
		return Fault{Flaw: r.flaw, Offset: r.at, Path: pathAt(text, r.at, true)}
	case r.flaw == MisspelledName:
		path := pathAt(text, r.at, true)
		return Fault{
			Flaw:   r.flaw,
			Offset: r.at,
			Path:   path,
			Name:   names.nameOf(path[strings.LastIndexByte(path, '.')+1:]),
		}
	case r.flaw == TooManyNames || r.flaw == TooLongName || r.flaw == TooManyItems:
		return Fault{Flaw: r.flaw, Offset: r.at, Path: pathAt(text, r.at, false)}
	}
	return Fault{Flaw: r.flaw, Offset: r.at}
}

// pathAt returns the path of the member whose name begins at offset, or of the object around offset. The text before
// offset must be valid.
func pathAt(text []byte, offset int, member bool) string {
	var path []step
	inName := false // the next string is a name
	for i := 0; i < len(text) && (i < offset || member && i == offset); i++ {
		switch text[i] {
		case '{':
			path, inName = append(path, step{name: []byte{}}), true
		case '[':
			path, inName = append(path, step{}), false
		case '}', ']':
			path = path[:len(path)-1]
		case ',':
			last := &path[len(path)-1]
			last.index++
			inName = last.name != nil
		case '"':
			r := Reader{buf: text, pos: i, lenient: true}
			r.text()
			if inName {
				path[len(path)-1].name = []byte(Unquote(text[i:r.pos]))
				inName = false
			}
			i = r.pos - 1
		}
	}
	if !member && len(path) > 0 {
		path = path[:len(path)-1]
	}
	var b []byte
	for i, s := range path {
		if i > 0 {
			b = append(b, '.')
		}
		if s.name == nil {
			b = strconv.AppendInt(b, int64(s.index), 10)
		} else {
			b = append(b, s.name...)
		}
	}
	return string(b)
}
