package adminapi

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// schemas holds the JSON Schemas of this package's types by name. They are generated from the types
// that are decoded and encoded, so the description cannot differ from what is read and written.
type schemas map[string]any

// of returns the schema of v's type. A struct becomes a reference to an entry of s.
func (s schemas) of(v any) map[string]any { return s.schema(reflect.TypeOf(v)) }

// schema returns the schema of a type. A pointer may be null.
func (s schemas) schema(t reflect.Type) map[string]any {
	if o, ok := reflect.Zero(t).Interface().(interface{ element() any }); ok {
		return orNull(s.of(o.element()))
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[jsontext.Value]():
		return map[string]any{}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.schema(t.Elem())}
	case t.Kind() == reflect.Interface:
		return map[string]any{} // any value
	case t.Kind() == reflect.Pointer:
		return orNull(s.schema(t.Elem()))
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.schema(t.Elem())}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	return s.object(t)
}

// orNull returns the schema of a value that may also be null.
func orNull(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

// genericName matches the name of a generic type: List[pkg/path.User].
var genericName = regexp.MustCompile(`^(\w+)\[(?:.*\.)?(\w+)\]$`)

// object adds the schema of a struct to s and returns a reference to it.
func (s schemas) object(t reflect.Type) map[string]any {
	name := genericName.ReplaceAllString(t.Name(), "$2$1")
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if s[name] != nil {
		return ref
	}
	s[name] = map[string]any{} // a type that contains itself stops here
	properties, required := map[string]any{}, []string{}
	s.members(t, properties, &required)
	object := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		object["required"] = required
	}
	s[name] = object
	return ref
}

// members adds the fields of a struct. Fields of embedded structs are added as its own.
// A pointer with omitzero is a member that may be absent and is never null. Without omitzero it is
// always there and may be null. Replies and changes use the two forms for two meanings.
func (s schemas) members(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			s.members(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := strings.Contains(options, "omitzero")
		schema := s.schema(f.Type)
		if optional && f.Type.Kind() == reflect.Pointer {
			schema = s.schema(f.Type.Elem()) // absent, but not null
		}
		properties[name] = annotate(schema, f)
		if !optional {
			*required = append(*required, name)
		}
	}
}

// annotate adds the constraints and the description in the tags of f to its schema.
func annotate(schema map[string]any, f reflect.StructField) map[string]any {
	value := schema // if the field can be null, the schema of its other values
	if alternatives, ok := schema["anyOf"].([]any); ok {
		value = alternatives[0].(map[string]any)
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		var words []any
		for w := range strings.SplitSeq(enum, ",") {
			words = append(words, enumValue(w, value["type"] == "integer"))
		}
		value["enum"] = words
	}
	for tag, keyword := range map[string]string{"min": "minimum", "max": "maximum"} {
		if text := f.Tag.Get(tag); text != "" {
			value[keyword] = enumValue(text, true)
		}
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		schema["description"] = doc
	}
	return schema
}

// enumValue returns the value of a tag as JSON has it.
func enumValue(text string, number bool) any {
	if !number {
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err) // a wrong tag in types.go
	}
	return n
}
