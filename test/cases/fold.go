package cases

import "fmt"

// Fold joins a stream into the object that the shape's own SDK would build. Members
// that start with an underscore are about the stream: _error, _done, _stopped,
// _terminal. It also returns where a value had a type that no SDK could read.
func Fold(shape Shape, events []Event) (map[string]any, []string) {
	var f folder
	var out object
	switch shape {
	case Chat:
		out = f.chat(events)
	case Completions:
		out = f.completions(events)
	case Messages:
		out = f.messages(events)
	case Responses:
		out = f.responses(events)
	case Gemini:
		out = f.gemini(events)
	}
	return out, f.bad
}

// Failed reports whether a stream said that it failed.
func Failed(shape Shape, events []Event) bool {
	folded, _ := Fold(shape, events)
	return !isEmpty(folded["_error"])
}

// A folder collects what it could not read.
type folder struct {
	bad []string
}

// wrong records something that cannot be folded.
func (f *folder) wrong(format string, args ...any) {
	f.bad = append(f.bad, fmt.Sprintf(format, args...))
}

// text reads a string; null and absent are "". Any other type is recorded as a mistake, because the SDK of
// the shape would fail on it.
func (f *folder) text(o object, k string) string {
	v, ok := o[k]
	if !ok || v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.wrong("%s must be a string, got %s", k, show(v, 80))
	}
	return s
}

// list reads an array; null and absent are empty.
func (f *folder) list(o object, k string) array {
	v, ok := o[k]
	if !ok || v == nil {
		return nil
	}
	a, ok := v.(array)
	if !ok {
		f.wrong("%s must be an array, got %s", k, show(v, 80))
	}
	return a
}

// child reads an object; null and absent are empty.
func (f *folder) child(o object, k string) object {
	v, ok := o[k]
	if !ok || v == nil {
		return nil
	}
	c, ok := v.(object)
	if !ok {
		f.wrong("%s must be an object, got %s", k, show(v, 80))
	}
	return c
}

// join appends a text delta to o[k], if the delta has one.
func (f *folder) join(o object, k string, from object, name string) {
	if from[name] != nil {
		o[k] = asText(o[k]) + f.text(from, name)
	}
}

// keepFirst copies members that the first chunk to have them decides. The vendors repeat these members in
// each chunk, and SDKs take those of the first one.
func keepFirst(to, from object, keys ...string) {
	for _, k := range keys {
		if _, ok := to[k]; !ok && from[k] != nil {
			to[k] = from[k]
		}
	}
}

// A row keeps objects by index, in order of index. Streams name the object that a piece belongs to by its
// index, and the pieces of several objects may be mixed.
type row map[int]object

// at finds the object of an index or makes it.
func (r row) at(i int, make func() object) object {
	o, ok := r[i]
	if !ok {
		o = make()
		r[i] = o
	}
	return o
}

// sorted returns the items in the order of their indexes.
func (r row) sorted() array {
	out := array{}
	for _, i := range sortedKeys(r) {
		out = append(out, r[i])
	}
	return out
}
