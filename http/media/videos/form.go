package videos

import (
	"encoding/json"
	"strings"

	"stagedoor/providers/dialogue"
)

// Text is a field of a form.
type Text struct{ Name, Value string }

// Body makes the JSON object that a form's fields stand for. Clients flatten
// objects: input_reference[image_url] is {"input_reference":{"image_url":...}}.
func Body(fields []Text) ([]byte, error) {
	body := make(map[string]any, len(fields))
	for _, f := range fields {
		outer, inner, err := split(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := fieldValue(f)
		if err != nil {
			return nil, err
		}
		if !place(body, outer, inner, value) {
			return nil, dialogue.Invalid(f.Name, "must be given once")
		}
	}
	return json.Marshal(body)
}

// split returns the parts a and b of a name a[b]. inner is "" for a name without brackets.
func split(name string) (outer, inner string, err error) {
	outer, rest, nested := strings.Cut(name, "[")
	if !nested {
		return name, "", nil
	}
	inner, ok := strings.CutSuffix(rest, "]")
	if !ok || outer == "" || inner == "" || strings.ContainsAny(inner, "[]") {
		return "", "", dialogue.Invalid(name, "is no name of a field")
	}
	return outer, inner, nil
}

// objects are the fields whose value may be a JSON document in one part.
var objects = map[string]bool{referenceField: true, "video": true}

// fieldValue returns a field as JSON. Some fields may be objects, which clients send as JSON text.
func fieldValue(f Text) (any, error) {
	if objects[f.Name] && strings.HasPrefix(strings.TrimSpace(f.Value), "{") {
		if err := MemberNames.CheckObject(f.Name, f.Value); err != nil {
			return nil, err
		}
		return json.RawMessage(f.Value), nil
	}
	return f.Value, nil
}

// place puts a value where it belongs, unless there is one already.
func place(body map[string]any, outer, inner string, value any) bool {
	there, taken := body[outer]
	if inner == "" {
		body[outer] = value
		return !taken
	}
	if !taken {
		body[outer] = map[string]any{inner: value}
		return true
	}
	object, ok := there.(map[string]any)
	if !ok {
		return false
	}
	_, taken = object[inner]
	object[inner] = value
	return !taken
}
