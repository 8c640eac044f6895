package fields

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names are the member names that the gateway reads in requests of a shape. A
// decoder that disregards case, as encoding/json does, takes "Model" for "model", so
// a request with such a name would mean one thing to the gateway and another to its
// provider. Readers with Names refuse it. Other names are of no concern.
type Names struct {
	words map[string]*word // by folded name
	lower bool             // all are made of small letters, digits and underscores
	camel bool
	long  string
}

// word is a name and how else it may be written.
type word struct {
	name  string
	other [2]string
}

// NewNames makes Names that are read as they are written here.
func NewNames(list ...string) *Names {
	n := &Names{words: make(map[string]*word, len(list)), lower: true}
	for _, name := range list {
		n.words[string(n.fold(nil, []byte(name)))] = &word{name: name}
		n.lower = n.lower && plainLower([]byte(name))
	}
	return n
}

// WithLongList lets the list of this name at the top of a request hold more than
// MaxItems objects, and one object in a list of each. The shape bounds its length.
func (n *Names) WithLongList(name string) *Names {
	n.long = name
	return n
}

// NewCamelNames makes Names in lowerCamelCase that may also be written in
// snake_case, and with an underscore before them: the spellings of JSON for
// protocol buffers and of its SDKs. Two spellings in one object are a repetition.
func NewCamelNames(list ...string) *Names {
	n := &Names{words: make(map[string]*word, len(list)), camel: true}
	for _, name := range list {
		w := &word{name: name, other: [2]string{snake(name), "_" + name}}
		n.words[string(n.fold(nil, []byte(name)))] = w
	}
	return n
}

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

// longest is the longest name that is looked up, in bytes. A folded letter takes up
// to three.
const longest = 128

// read returns what a name counts as, and whether it is written as it must be.
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

// nameOf is the name that a misspelled one is taken for.
func (n *Names) nameOf(misspelled string) string {
	if w := n.words[string(n.fold(nil, []byte(misspelled)))]; w != nil {
		return w.name
	}
	return ""
}

// fold appends name with its letters in one case, by Unicode's simple folding. Names
// are ASCII, so only characters matter that fold to it: the Kelvin sign and the
// long s among others than ASCII.
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

// plainLower reports whether a name can fold to no other made of small letters.
func plainLower(name []byte) bool {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// freeForm reports whether the object under this name has names of the client's own
// choice: schemas, arguments, labels.
func freeForm(name []byte) bool {
	if len(name) < len("args") {
		return false
	}
	switch string(name) {
	case "parameters", "input_schema", "schema", "properties", "definitions", "$defs", "input", "args", "arguments", "metadata", "logit_bias",
		"variables", "headers", "labels", "response", "output", "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema",
		"_responseJsonSchema", "parametersJsonSchema", "parameters_json_schema", "responseFormatSchema":
		return true
	}
	return false
}
