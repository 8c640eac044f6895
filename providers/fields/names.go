package fields

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
)

// Names are the member names of the requests of a shape: those that the gateway reads and
// those that the vendor documents. A decoder that disregards case, as encoding/json does, takes
// "Model" for "model", so a request with such a name would mean one thing to the gateway and
// another to its provider. Readers with Names refuse such a name.
//
// Names that fold to none of them pass. The values of such members are not read by the gateway,
// so that the names inside them pass as well. The same holds for the places that Except lists.
type Names struct {
	words map[string]*word // by folded name
	lower bool             // all are made of small letters, digits and underscores
	camel bool
	long  string
	root  *place
}

// word is a name with its permitted spellings.
type word struct {
	name  string
	other [2]string
}

// place is a node of the paths that Except got. Arrays are transparent.
type place struct {
	free  bool // the names in the value are the client's own
	below map[string]*place
}

// NewNames returns Names that must be written exactly as they are here.
func NewNames(list ...string) *Names {
	n := &Names{words: make(map[string]*word, len(list)), lower: true, root: new(place)}
	n.add(list...)
	return n
}

// add enters names under their folded form. For names in camel case, the snake case of a name and
// the name with an underscore before it are spellings that pass, too.
func (n *Names) add(list ...string) {
	for _, name := range list {
		w := &word{name: name}
		if n.camel {
			w.other = [2]string{snake(name), "_" + name}
		}
		n.words[string(n.fold(nil, []byte(name)))] = w
		n.lower = n.lower && plainLower([]byte(name))
	}
}

// Except leaves the names in some values to the client, such as those of a schema, of arguments
// and of labels. A path gives the names that lead to the value, as in tools.function.parameters,
// and passes through arrays. The names of a path are added to n.
func (n *Names) Except(paths ...string) *Names {
	for _, path := range paths {
		at := n.root
		for name := range strings.SplitSeq(path, ".") {
			n.add(name)
			next := at.below[name]
			if next == nil {
				next = new(place)
				if at.below == nil {
					at.below = make(map[string]*place)
				}
				at.below[name] = next
			}
			at = next
		}
		at.free = true
	}
	return n
}

// All returns the names, sorted.
func (n *Names) All() []string {
	all := make([]string, 0, len(n.words))
	for _, w := range n.words {
		all = append(all, w.name)
	}
	slices.Sort(all)
	return all
}

// WithLongList permits the list of this name at the top of a request to hold more objects than MaxItems. Each object of
// the list and one object below it, such as a message with its block, do not count. The shape must bound the length of
// the list itself.
func (n *Names) WithLongList(name string) *Names {
	n.long = name
	return n
}

// NewCamelNames returns Names in lowerCamelCase that may also be written in snake_case, and with
// an underscore before them: the spellings of JSON for protocol buffers and of its SDKs. Two
// spellings in one object are a repetition.
func NewCamelNames(list ...string) *Names {
	n := &Names{words: make(map[string]*word, len(list)), camel: true, root: new(place)}
	n.add(list...)
	return n
}

// snake returns a name in camel case as snake case: maxTokens as max_tokens.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// longest is the longest name that is looked up, in bytes. A folded letter takes up to three bytes.
const longest = 128

// read returns the name that name stands for, and whether its spelling is permitted.
func (n *Names) read(name []byte) (as []byte, ok bool) {
	if len(name) > longest {
		return name, true
	}
	var buf [longest]byte
	w := n.words[string(n.fold(buf[:0], name))]
	switch {
	case w == nil:
		return name, true
	case string(name) == w.name:
		return name, true
	case n.camel && (string(name) == w.other[0] || string(name) == w.other[1]):
		return []byte(w.name), true
	}
	return name, false
}

// CheckField returns the error for the name of a form's field that folds to a name of n, or
// whose last part does, as in video[ID]. Else it returns nil. A nil n has no names.
func (n *Names) CheckField(field string) error {
	if n == nil {
		return nil
	}
	outer, inner, _ := strings.Cut(field, "[")
	for _, name := range []string{outer, strings.TrimSuffix(inner, "]")} {
		if _, ok := n.read([]byte(name)); !ok {
			return dialogue.MisspelledName(field, n.nameOf(name))
		}
	}
	return nil
}

// CheckBody returns an error unless the body of a request is one JSON object by the rules of ValidObject. names may be
// nil.
func CheckBody(body []byte, names *Names) error {
	if ValidObject(body, names) {
		return nil
	}
	fault := ExplainNames(body, names)
	switch {
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return dialogue.InvalidJSON("is empty, a JSON object is expected")
	case fault.Flaw == Sound:
		return dialogue.InvalidJSON("must be a JSON object")
	case fault.Flaw == RepeatedName:
		return repeated(fault.Path)
	case fault.Flaw == MisspelledName:
		return dialogue.MisspelledName(shortParam(fault.Path), fault.Name)
	case fault.Flaw.OverLimit():
		e := dialogue.InvalidJSON(fault.Rule())
		e.Param = shortParam(fault.Path)
		return e
	case fault.Offset == len(body):
		return dialogue.InvalidJSON("is not valid JSON: it ends too early")
	}
	return dialogue.InvalidJSON("is not valid JSON, see byte " + strconv.Itoa(fault.Offset))
}

// repeated returns the error for a member at path whose name its object has already.
func repeated(path string) error {
	return dialogue.RepeatedName(shortParam(path))
}

// maxParam bounds a client's own names in an error, in bytes.
const maxParam = 256

// shortParam cuts a path that consists of the client's own names.
func shortParam(path string) string {
	if len(path) <= maxParam {
		return path
	}
	return strings.ToValidUTF8(path[:maxParam], "") + "..."
}

// CheckObject returns the error for a form's field that must hold a JSON object by the rules of
// ValidObject and does not.
func (n *Names) CheckObject(field, text string) error {
	if ValidObject(bytesOf(text), n) {
		return nil
	}
	switch fault := ExplainNames(bytesOf(text), n); {
	case fault.Flaw == MisspelledName:
		return dialogue.MisspelledName(field+"."+fault.Path, fault.Name)
	case fault.Flaw == RepeatedName:
		return repeated(field + "." + fault.Path)
	case fault.Flaw == Sound:
		return dialogue.Invalid(field, "must be a JSON object")
	default:
		return dialogue.Invalid(field, "must be a JSON object, and "+fault.Rule())
	}
}

// nameOf returns the name of which misspelled is another spelling.
func (n *Names) nameOf(misspelled string) string {
	if w := n.words[string(n.fold(nil, []byte(misspelled)))]; w != nil {
		return w.name
	}
	return ""
}

// fold appends name with its letters in one case, by Unicode's simple folding. The names in n are ASCII, so of the
// other characters only those matter that fold to ASCII, such as the Kelvin sign and the long s.
func (n *Names) fold(dst, name []byte) []byte {
	for i := 0; i < len(name); {
		c, size := rune(name[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(name[i:])
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				if f < utf8.RuneSelf {
					c = f
					break
				}
			}
		}
		i += size
		switch {
		case 'A' <= c && c <= 'Z':
			dst = append(dst, byte(c)+'a'-'A')
		case c == '_' && n.camel:
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// plainLower reports whether a name cannot fold to any other name of lower-case letters.
func plainLower(name []byte) bool {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// step returns the place of the value of a member, or nil if Except has no path through it, and whether the client may
// choose the names in that value.
func (n *Names) step(from *place, name []byte) (to *place, free bool) {
	if len(name) > longest {
		return nil, true
	}
	w := n.words[string(name)]
	if w == nil || n.camel {
		var buf [longest]byte
		w = n.words[string(n.fold(buf[:0], name))]
	}
	if w == nil {
		return nil, true
	}
	if from != nil {
		to = from.below[w.name]
	}
	return to, to != nil && to.free
}
