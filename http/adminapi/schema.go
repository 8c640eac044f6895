package adminapi

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// schemas are the JSON Schemas of this package's types, by name: made from the
// types themselves, so that what is described is what is read and written.
type schemas map[string]any

// of is a reference to the schema of v's type.
func (s schemas) of(v any) map[string]any { return s.schema(reflect.TypeOf(v)) }

func (s schemas) schema(t reflect.Type) map[string]any {
	if o, ok := reflect.Zero(t).Interface().(interface{ element() any }); ok {
		return orNull(s.of(o.element()))
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
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

func orNull(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

// generic finds the element of a generic type's name, List[pkg/path.User].
var generic = regexp.MustCompile(`^(\w+)\[(?:.*\.)?(\w+)\]$`)

func (s schemas) object(t reflect.Type) map[string]any {
	name := generic.ReplaceAllString(t.Name(), "$2$1")
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

// members adds the fields of a struct, those of embedded ones as its own.
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

// annotate adds what the tags of a field say.
func annotate(schema map[string]any, f reflect.StructField) map[string]any {
	value := schema // what is not null, if the field can be null
	if alternatives, ok := schema["anyOf"].([]any); ok {
		value = alternatives[0].(map[string]any)
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		var words []any
		for w := range strings.SplitSeq(enum, ",") {
			words = append(words, wordOf(w, value["type"] == "integer"))
		}
		value["enum"] = words
	}
	for tag, keyword := range map[string]string{"min": "minimum", "max": "maximum"} {
		if text := f.Tag.Get(tag); text != "" {
			value[keyword] = wordOf(text, true)
		}
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		schema["description"] = doc
	}
	return schema
}

func wordOf(text string, number bool) any {
	if !number {
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err) // a slip in a tag of this package
	}
	return n
}
