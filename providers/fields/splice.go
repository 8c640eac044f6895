package fields

import (
	"encoding/json"
	"slices"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Member is where a member of an object stands in the text.
type Member struct {
	Name       string
	Start      int // of the name's quote
	Value, End int // of the value
}

// Members lists the members of the object text, in order. Names are views of
// text where they hold no escapes.
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

// View looks at text with gjson without copying it. The result, and what is
// taken from it, is good as long as text is not written to; what shall outlive
// text must be cloned.
func View(text []byte) gjson.Result {
	return gjson.Parse(TextOf(text))
}

// TextOf returns text as a string without copying it. text must not be written to afterwards,
// but may be appended to.
func TextOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// Raw returns v as it is written, without copying it. It is good as long as the text that
// v was read from, and must not be written to.
func Raw(v gjson.Result) json.RawMessage {
	return unsafe.Slice(unsafe.StringData(v.Raw), len(v.Raw))
}

// MemberOf is the member of object called name, which may come from outside:
// gjson's Get would read a path of its own language in it.
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

// Elements lists where the elements of the array text stand.
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

// Splice returns text with the edits made, which must not overlap. text itself
// is returned if there are none, and never written to.
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

// Without returns the object or array text without the listed members, commas
// mended; everything else stays as it was written.
func Without(text []byte, all []Member, drop func(i int) bool) []byte {
	return Splice(text, Drop(all, drop))
}

// Drop lists the edits of Without. They keep clear of the members that stay.
func Drop(all []Member, drop func(i int) bool) []Edit {
	var edits []Edit
	kept := -1 // the last member that stays
	for i := range all {
		if !drop(i) {
			kept = i
			continue
		}
		switch {
		case kept >= 0: // from behind the one before
			edits = append(edits, Edit{Start: all[i-1].End, End: all[i].End})
		case i+1 < len(all): // up to the one after
			edits = append(edits, Edit{Start: all[i].Start, End: all[i+1].Start})
		default:
			edits = append(edits, Edit{Start: all[i].Start, End: all[i].End})
		}
	}
	return edits
}
