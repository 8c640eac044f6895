package cases

import (
	"fmt"
	"strings"
)

// Where JSON Schema keeps subschemas. Property names are not keywords, so a walk
// must know the difference.
var (
	schemaMaps  = []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
	schemaLists = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemaOnes  = []string{"items", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems"}
)

// schemaNodes lists every object in a schema position, outermost first.
func schemaNodes(v any) []object {
	var out []object
	if list, ok := v.(array); ok {
		for _, x := range list {
			out = append(out, schemaNodes(x)...)
		}
		return out
	}
	o, ok := v.(object)
	if !ok {
		return nil
	}
	out = append(out, o)
	for _, k := range schemaMaps {
		m := asObject(o[k])
		for _, name := range names(m) {
			out = append(out, schemaNodes(m[name])...)
		}
	}
	for _, k := range schemaLists {
		out = append(out, schemaNodes(asArray(o[k]))...)
	}
	for _, k := range schemaOnes {
		out = append(out, schemaNodes(o[k])...)
	}
	if more, ok := o["additionalProperties"].(object); ok {
		out = append(out, schemaNodes(more)...)
	}
	return out
}

// danglingRefs lists each $ref that is not local or leads nowhere.
func danglingRefs(schema any) []string {
	var out []string
	for _, n := range schemaNodes(schema) {
		ref, ok := n["$ref"].(string)
		if !ok || ref == "#" {
			continue
		}
		if !strings.HasPrefix(ref, "#") || pointer(schema, ref[1:]) == any(missing) {
			out = append(out, ref)
		}
	}
	return out
}

// isObjectSchema reports whether a schema is one of objects.
func isObjectSchema(n object) bool {
	if n["type"] == "object" {
		return true
	}
	for _, t := range asArray(n["type"]) {
		if t == "object" {
			return true
		}
	}
	_, ok := n["properties"]
	return ok
}

// geminiKeywords and geminiTypes are those of the Schema object in the reference of the Gemini API.
var geminiKeywords = set("anyOf", "default", "description", "enum", "example", "format", "items", "maxItems",
	"maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable",
	"pattern", "properties", "propertyOrdering", "required", "title", "type")

var geminiTypes = set("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")

// geminiSubset judges a schema that stands where only the OpenAPI subset may.
func geminiSubset(schema any, where string) (bad []string) {
	for _, n := range schemaNodes(schema) {
		for _, k := range names(n) {
			if !geminiKeywords[k] {
				bad = append(bad, fmt.Sprintf("%s: keyword %q is not in Gemini's Schema", where, k))
			}
		}
		if t := n["type"]; t != nil && !geminiTypes[strings.ToUpper(asText(t))] {
			bad = append(bad, fmt.Sprintf("%s: type must be one Gemini type name, got %s", where, show(t, 80)))
		}
		for _, e := range asArray(n["enum"]) {
			if _, ok := e.(string); !ok {
				bad = append(bad, where+": enum values must be strings")
				break
			}
		}
		properties := asObject(n["properties"])
		for _, r := range asArray(n["required"]) {
			if _, ok := properties[asText(r)]; !ok {
				bad = append(bad, fmt.Sprintf("%s: required names unknown property %s", where, show(r, 80)))
			}
		}
	}
	return bad
}

// set returns a set of words.
func set(words ...string) map[string]bool {
	out := make(map[string]bool, len(words))
	for _, w := range words {
		out[w] = true
	}
	return out
}
