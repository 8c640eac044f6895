package imagegen

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
)

// Input is a client's request before its rules are checked. Fields and files are in their order.
type Input struct {
	fields []field
	files  []picture.Attachment
	body   []byte // nil if the request is a form
}

// field is a value in JSON, or a text of a form.
type field struct {
	name  string
	value gjson.Result
	text  bool
}

// FromJSON returns the Input of a body that is one JSON object. A route with a document has its parameters in a member
// of that name. The error is a *dialogue.Error for a body without it.
func (r *Route) FromJSON(body []byte) (*Input, error) {
	in := &Input{body: body}
	if r.document == "" {
		return in, in.addMembers(gjson.ParseBytes(body))
	}
	document := gjson.GetBytes(body, r.document)
	if !document.Exists() || document.Type == gjson.Null {
		return nil, dialogue.Missing(r.document)
	}
	if !document.IsObject() {
		return nil, dialogue.Invalid(r.document, "must be an object")
	}
	return in, in.addMembers(document)
}

// addMembers adds the members of an object as fields. A null counts as not given.
func (in *Input) addMembers(object gjson.Result) error {
	object.ForEach(func(name, value gjson.Result) bool {
		if value.Type != gjson.Null {
			in.fields = append(in.fields, field{name: name.String(), value: value})
		}
		return true
	})
	return nil
}

// Text is a field of a form.
type Text struct{ Name, Value string }

// FromForm returns the Input of a form. If the route has a document, the fields are the members of the JSON object
// in the text of that name, and all other texts are ignored.
func (r *Route) FromForm(texts []Text, attached []picture.Attachment) (*Input, error) {
	in := &Input{files: attached}
	document := false
	for _, t := range texts {
		if r.document != "" && t.Name == r.document {
			if document {
				return nil, dialogue.Invalid(r.document, once)
			}
			document = true
			if err := in.addDocument(t); err != nil {
				return nil, err
			}
			continue
		}
		if r.document != "" {
			continue // texts beside the document are ignored, because the vendor has no place for them
		}
		in.fields = append(in.fields,
			field{name: t.Name, value: gjson.Result{Type: gjson.String, Str: t.Value}, text: true})
	}
	if r.document != "" && !document {
		return nil, dialogue.Missing(r.document)
	}
	return in, nil
}

// addDocument adds the fields of the JSON object in a text of a form. Misspelled names in it are
// refused, as they are in a JSON body.
func (in *Input) addDocument(t Text) error {
	if err := MemberNames.CheckObject(t.Name, t.Value); err != nil {
		return err
	}
	return in.addMembers(gjson.Parse(t.Value))
}

// once is the rule of a field that cannot be repeated.
const once = "must not be given more than once"

// get returns the first field of this name.
func (in *Input) get(name string) (field, bool) {
	for _, f := range in.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// has reports whether a field was given, as a value or as a file.
func (in *Input) has(name string) bool {
	_, ok := in.get(name)
	return ok || len(in.file(name)) > 0
}

// word returns the text of a field, or "" if it was not given.
func (in *Input) word(name string) string {
	f, _ := in.get(name)
	return f.value.Str
}

// file returns the files of a field.
func (in *Input) file(name string) []*picture.File {
	var out []*picture.File
	for _, f := range in.files {
		if f.Name == name {
			out = append(out, f.File)
		}
	}
	return out
}

// count returns how often a field was given.
func (in *Input) count(name string) int {
	n := len(in.file(name))
	for _, f := range in.fields {
		if f.name == name {
			n++
		}
	}
	return n
}

// string returns the value of a field, and false if it is not a text.
func (f *field) string() (string, bool) { return f.value.Str, f.value.Type == gjson.String }

// whole returns the value of a field, and false if it is not an integer. It takes digits only, in
// JSON without quotes.
func (f *field) whole() (int64, bool) {
	digits := f.value.Str
	if !f.text {
		digits = f.value.Raw
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && digits[0] != '+'
}

// json returns the value of a field, and false if it is not an object or array. In a form that is
// written as text.
func (f *field) json() (gjson.Result, bool) {
	if !f.text {
		return f.value, f.value.IsObject() || f.value.IsArray()
	}
	if !fields.Valid([]byte(f.value.Str)) {
		return gjson.Result{}, false
	}
	v := gjson.Parse(f.value.Str)
	return v, v.IsObject() || v.IsArray()
}

// raw returns the value of a field as JSON.
func (f *field) raw() json.RawMessage {
	if f.text {
		return json.RawMessage(gjson.AppendJSONString(nil, f.value.Str))
	}
	return json.RawMessage(f.value.Raw)
}
