package fields

import (
	"encoding/json"
	"slices"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Member is the place of a member in the text of its object.
type Member struct {
	Name       string
	Start      int // offset of the name's quote
	Value, End int // offsets of the value
}

// Members returns the members of the object text in order. Names without escapes are views of text.
func Members(text []byte) []Member {
	r := NewLenientReader(text)
	defer r.Free()
	list := make([]Member, 0, 8)
	if r.Peek() != Object || !r.open('}') {
		return list
	}
	var in scope
	for {
		r.space()
		m := Member{Start: r.pos}
		name := r.member(&in)
		if r.flaw != Sound {
			return list
		}
		m.Name = unsafe.String(unsafe.SliceData(name), len(name))
		r.space()
		m.Value = r.pos
		r.value()
		m.End = r.pos
		list = append(list, m)
		if !r.more('}') {
			return list
		}
	}
}

// View returns a gjson result that reads text without copying it. It is valid until text is written to. Clone parts of
// it that must live longer.
func View(text []byte) gjson.Result {
	return gjson.Parse(TextOf(text))
}

// TextOf returns text as a string without copying it. text must not be written to afterwards,
// but may be appended to.
func TextOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// Raw returns the text of v without copying it. It is valid as long as the text from which v was read, and must not be
// written to.
func Raw(v gjson.Result) json.RawMessage {
	return unsafe.Slice(unsafe.StringData(v.Raw), len(v.Raw))
}

// MemberOf returns the member of object called name, which may come from outside. gjson's Get would read such a name as
// a path in its own language.
func MemberOf(object gjson.Result, name string) (found gjson.Result) {
	if !object.IsObject() {
		return found
	}
	object.ForEach(func(key, v gjson.Result) bool {
		if key.Str == name {
			found = v
		}
		return !found.Exists()
	})
	return found
}

// Elements returns the places of the elements of the array text.
func Elements(text []byte) []Member {
	r := NewLenientReader(text)
	defer r.Free()
	var list []Member
	if r.Peek() != Array {
		return list
	}
	_ = r.Array(func(int) error {
		r.space()
		m := Member{Start: r.pos, Value: r.pos}
		r.Skip()
		m.End = r.pos
		list = append(list, m)
		return nil
	})
	return list
}

// Edit replaces text[Start:End] with With.
type Edit struct {
	Start, End int
	With       []byte
}

// Splice returns text with the edits, which must not overlap. It returns text itself if there are none, and never
// writes to it.
func Splice(text []byte, edits []Edit) []byte {
	if len(edits) == 0 {
		return text
	}
	slices.SortFunc(edits, func(a, b Edit) int { return a.Start - b.Start })
	size := len(text)
	for _, e := range edits {
		size += len(e.With)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(out, text[at:e.Start]...)
		out = append(out, e.With...)
		at = e.End
	}
	return append(out, text[at:]...)
}

// Without returns the object or array text without some members, and with correct commas. The rest stays as it was
// written.
func Without(text []byte, all []Member, drop func(i int) bool) []byte {
	return Splice(text, Drop(all, drop))
}

// Drop returns the edits of Without. They do not overlap members that stay.
func Drop(all []Member, drop func(i int) bool) []Edit {
	var edits []Edit
	kept := -1 // the index of the last member that stays
	for i := range all {
		if !drop(i) {
			kept = i
			continue
		}
		switch {
		case kept >= 0: // from the end of the member before
			edits = append(edits, Edit{Start: all[i-1].End, End: all[i].End})
		case i+1 < len(all): // up to the next member
			edits = append(edits, Edit{Start: all[i].Start, End: all[i+1].Start})
		default:
			edits = append(edits, Edit{Start: all[i].Start, End: all[i].End})
		}
	}
	return edits
}
