package images

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// input gives the parameters of a request, from JSON or from a form, so that both are checked by
// the same rules. A null, and an empty field of a form, count as not given. text, integer and flag
// return the zero value for a parameter that is not given, and an error for one of another type.
type input interface {
	given(name string) bool
	text(name string) (string, error)
	integer(name string, lo, hi int64) (int64, error)
	flag(name string) (bool, error)
	// rest returns the fields whose names are not in known.
	rest(known map[string]bool) []picture.Field
}

// document is the input of a JSON object, which must be valid.
type document struct {
	values map[string]gjson.Result
	names  []string // in the order of the client
}

// newDocument returns the parameters of a JSON object. Their values share memory with body.
func newDocument(body []byte) *document {
	d := &document{values: make(map[string]gjson.Result)}
	gjson.ParseBytes(body).ForEach(func(name, value gjson.Result) bool {
		if value.Type != gjson.Null {
			d.values[name.Str] = value
			d.names = append(d.names, name.Str)
		}
		return true
	})
	return d
}

func (d *document) given(name string) bool { return d.values[name].Exists() }

// text returns a string, or "" if it is absent.
func (d *document) text(name string) (string, error) {
	v := d.values[name]
	if v.Exists() && v.Type != gjson.String {
		return "", dialogue.Invalid(name, "must be a string")
	}
	return v.Str, nil
}

// integer returns a whole number from lo to hi, or 0 if it is absent.
func (d *document) integer(name string, lo, hi int64) (int64, error) {
	v := d.values[name]
	if !v.Exists() {
		return 0, nil
	}
	if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) || v.Num < float64(lo) || v.Num > float64(hi) {
		return 0, outside(name, lo, hi)
	}
	return int64(v.Num), nil
}

// flag returns a boolean, or false if it is absent.
func (d *document) flag(name string) (bool, error) {
	v := d.values[name]
	if v.Exists() && v.Type != gjson.True && v.Type != gjson.False {
		return false, dialogue.Invalid(name, "must be a boolean")
	}
	return v.Bool(), nil
}

// rest returns the members that are not known, in their order, as the client wrote them.
func (d *document) rest(known map[string]bool) []picture.Field {
	var out []picture.Field
	for _, name := range d.names {
		if !known[name] {
			out = append(out, picture.Field{Name: name, Value: json.RawMessage(d.values[name].Raw)})
		}
	}
	return out
}

// Text is a field of a form.
type Text struct{ Name, Value string }

// form is the input of the texts in a multipart body.
type form []Text

// find returns the first text of this name, or "".
func (f form) find(name string) string {
	for _, t := range f {
		if t.Name == name {
			return t.Value
		}
	}
	return ""
}

// twice returns the name of a known field that was sent more than once, or "".
func (f form) twice() string {
	seen := make(map[string]bool, len(f))
	for _, t := range f {
		if seen[t.Name] && known[t.Name] {
			return t.Name
		}
		seen[t.Name] = true
	}
	return ""
}

func (f form) given(name string) bool { return f.find(name) != "" }

func (f form) text(name string) (string, error) { return f.find(name), nil }

// integer returns a whole number from lo to hi, or 0 if it is absent.
func (f form) integer(name string, lo, hi int64) (int64, error) {
	v := f.find(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, outside(name, lo, hi)
	}
	return n, nil
}

// flag returns a boolean. Clients write it in the ways of their languages.
func (f form) flag(name string) (bool, error) {
	switch v := f.find(name); v {
	case "true", "True", "1":
		return true, nil
	case "", "false", "False", "0":
		return false, nil
	}
	return false, dialogue.Invalid(name, "must be true or false")
}

// rest returns the fields that are not known as strings of JSON, since a form has no types.
func (f form) rest(known map[string]bool) []picture.Field {
	var out []picture.Field
	for _, t := range f {
		if !known[t.Name] {
			value, err := json.Marshal(t.Value)
			if err != nil {
				continue // cannot happen: a string can always be encoded
			}
			out = append(out, picture.Field{Name: t.Name, Value: value})
		}
	}
	return out
}

// outside returns the error for a number that is not within its bounds.
func outside(name string, lo, hi int64) *dialogue.Error {
	return dialogue.Invalid(name, "must be an integer from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
}
