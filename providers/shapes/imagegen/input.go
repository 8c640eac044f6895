package imagegen

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
)

// Input is a request as it came, before its rules are looked at: fields and
// files in their order.
type Input struct {
	fields []field
	files  []picture.Attachment
	body   []byte // the JSON it came as, if it did
}

// field is a value in JSON, or a text of a form.
type field struct {
	name  string
	value gjson.Result
	text  bool
}

// FromJSON reads a body that is one JSON object.
func (r *Route) FromJSON(body []byte) (*Input, error) {
	in := &Input{body: body}
	if r.document == "" {
		return in, in.members(gjson.ParseBytes(body))
	}
	document := gjson.GetBytes(body, r.document)
	if !document.Exists() || document.Type == gjson.Null {
		return nil, dialogue.Missing(r.document)
	}
	if !document.IsObject() {
		return nil, dialogue.Invalid(r.document, "must be an object")
	}
	return in, in.members(document)
}

// members takes the members of an object. One that is null was not given.
func (in *Input) members(object gjson.Result) error {
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

// FromForm takes the texts and files of a form. Where the route has a document,
// it is a JSON object in a text of that name.
func (r *Route) FromForm(texts []Text, attached []picture.Attachment) (*Input, error) {
	in := &Input{files: attached}
	document := false
	for _, t := range texts {
		if r.document != "" && t.Name == r.document {
			if document {
				return nil, dialogue.Invalid(r.document, once)
			}
			document = true
			if err := in.document(t); err != nil {
				return nil, err
			}
			continue
		}
		if r.document != "" {
			continue // beside the document nothing is looked for, nor is there a place to send it
		}
		in.fields = append(
			in.fields,
			field{name: t.Name, value: gjson.Result{Type: gjson.String, Str: t.Value}, text: true},
		)
	}
	if r.document != "" && !document {
		return nil, dialogue.Missing(r.document)
	}
	return in, nil
}

func (in *Input) document(t Text) error {
	if !fields.Valid([]byte(t.Value)) {
		return dialogue.Invalid(t.Name, "must be a JSON object, as text, and is not valid JSON")
	}
	document := gjson.Parse(t.Value)
	if !document.IsObject() {
		return dialogue.Invalid(t.Name, "must be a JSON object, as text")
	}
	return in.members(document)
}

const once = "must not be given more than once"

// get finds a field.
func (in *Input) get(name string) (field, bool) {
	for _, f := range in.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func (in *Input) has(name string) bool {
	_, ok := in.get(name)
	return ok || len(in.file(name)) > 0
}

// word is a field's text, "" if it was not given.
func (in *Input) word(name string) string {
	f, _ := in.get(name)
	return f.value.Str
}

// file lists the files of a field.
func (in *Input) file(name string) []*picture.File {
	var out []*picture.File
	for _, f := range in.files {
		if f.Name == name {
			out = append(out, f.File)
		}
	}
	return out
}

func (in *Input) count(name string) int {
	n := len(in.file(name))
	for _, f := range in.fields {
		if f.name == name {
			n++
		}
	}
	return n
}

// string is the field's value if it is a text.
func (f *field) string() (string, bool) { return f.value.Str, f.value.Type == gjson.String }

// whole is the field's value if it is an integer: digits only, in JSON without
// quotes.
func (f *field) whole() (int64, bool) {
	digits := f.value.Str
	if !f.text {
		digits = f.value.Raw
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && digits[0] != '+'
}

// json is the field's value if it is an object or array. A form has it as text.
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

// raw is the field's value in JSON.
func (f *field) raw() json.RawMessage {
	if f.text {
		return json.RawMessage(gjson.AppendJSONString(nil, f.value.Str))
	}
	return json.RawMessage(f.value.Raw)
}
