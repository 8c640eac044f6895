package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stagedoor/providers/fields"
)

// Bounds of the work that a schema can cause. A few bytes may ask for a billion items of a million characters.
const (
	largestSchema = 128 << 10 // bytes; a larger one gets an empty object
	mostChecked   = 16 << 10  // bytes of a schema that samples are validated against
	sampleNodes   = 8000      // schemas and values handled for a sample
	sampleBytes   = 64 << 10  // of a sample; the rest of it is null
	sampleDepth   = 24        // levels of a sample
	fullDepth     = 4         // levels that get their optional members
	longestText   = 4096      // characters of a string
	mostItems     = 64
	mostWords     = 1000 // of an enum
	mostTries     = 12
)

// Sample returns a JSON value that satisfies a JSON Schema, the same value for the same schema. It tries other choices
// while validation fails (oneOf, not, if) and then returns its first sample. Input that is no schema gets an empty object.
func Sample(raw json.RawMessage) json.RawMessage {
	if len(raw) > largestSchema || !fields.ValidLenient(raw) {
		return json.RawMessage("{}")
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return json.RawMessage("{}")
	}
	s := sampler{root: root}
	v := s.value(s.flatten(nil, root, 0), 0, 0)
	first, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	var check *jsonschema.Schema
	for try := 0; try < mostTries && !s.spent() && len(raw) <= mostChecked; try++ {
		if try > 0 {
			s = sampler{root: root, try: try}
			v = s.value(s.flatten(nil, root, 0), 0, 0)
		}
		// References can make validation take exponential time.
		if s.validate(root, v); s.spent() {
			break
		}
		if check == nil {
			if check = compileSchema(root); check == nil {
				break
			}
		}
		if check.Validate(v) == nil {
			if valid, err := json.Marshal(v); err == nil {
				return valid
			}
		}
	}
	return first
}

// compileSchema returns nil for an invalid schema.
func compileSchema(root any) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if c.AddResource("sandbox:schema", root) != nil {
		return nil
	}
	// A nil schema is the only consequence of an error.
	compiled, _ := c.Compile("sandbox:schema")
	return compiled
}

// noLoader keeps schemas from loading files and addresses.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("only local references") }

// sampler makes one value. try varies its choices.
type sampler struct {
	root       any
	try        int
	nodes, len int // handled so far, for the bounds
}

func (s *sampler) spent() bool { return s.nodes > sampleNodes }

// allOf is a list of schemas that a value must satisfy at the same time.
type allOf []map[string]any

// flatten adds a schema to all, with its allOf, the target of its $ref, and one of its anyOf and oneOf.
func (s *sampler) flatten(all allOf, schema any, depth int) allOf {
	m, ok := schema.(map[string]any)
	if s.nodes++; !ok || depth > sampleDepth || s.spent() {
		return all
	}
	all = append(all, m)
	if ref, ok := m["$ref"].(string); ok {
		all = s.flatten(all, s.resolve(ref), depth+1)
	}
	for _, part := range list(m["allOf"]) {
		all = s.flatten(all, part, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := list(m[key]); len(branches) > 0 {
			all = s.flatten(all, s.chooseBranch(branches, depth), depth+1)
		}
	}
	if s.try%2 == 1 {
		all = s.flatten(all, m["then"], depth+1)
	}
	return all
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// chooseBranch returns one of several alternatives, in deep levels one that ends.
func (s *sampler) chooseBranch(branches []any, depth int) any {
	for _, b := range branches {
		if m, ok := b.(map[string]any); ok && depth >= fullDepth && m["$ref"] == nil && m["type"] != "object" &&
			m["type"] != "array" {
			return b
		}
	}
	return branches[s.try%len(branches)]
}

// resolve follows a JSON pointer into the schema.
func (s *sampler) resolve(ref string) any {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil {
		return nil
	}
	at := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			if pointer != "" {
				at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// get returns the first value of a keyword.
func (all allOf) get(keyword string) any {
	for _, m := range all {
		if v, ok := m[keyword]; ok {
			return v
		}
	}
	return nil
}

// bound returns the strictest value of a keyword, or otherwise. sign is 1 if greater values are stricter, else -1.
func (all allOf) bound(keyword string, otherwise, sign float64) (best float64, spelling json.Number) {
	best = otherwise
	for _, m := range all {
		n, ok := m[keyword].(json.Number)
		f, err := n.Float64()
		if ok && err == nil && (spelling == "" || f*sign > best*sign) {
			best, spelling = f, n
		}
	}
	return best, spelling
}

// value makes a value. number distinguishes siblings that must differ.
func (s *sampler) value(all allOf, depth, number int) any {
	if s.nodes++; depth > sampleDepth || s.spent() || s.len > sampleBytes {
		return nil
	}
	for _, m := range all {
		if c, ok := m["const"]; ok {
			return s.count(c)
		}
	}
	if words := s.enum(all); len(words) > 0 {
		return s.count(words[(s.try+number)%len(words)])
	}
	switch all.kind(s.try) {
	case "object":
		return s.object(all, depth)
	case "array":
		return s.array(all, depth)
	case "integer":
		return s.count(all.number(true, false, number))
	case "number":
		return s.count(all.number(false, s.try >= 2, number))
	case "boolean":
		return (s.try+number)%2 == 0
	case "null":
		return nil
	}
	return s.count(all.text(number))
}

// count adds the length of v to that of the sample.
func (s *sampler) count(v any) any {
	b, _ := json.Marshal(v)
	s.len += len(b)
	return v
}

// enum returns the words that every enum allows.
func (s *sampler) enum(all allOf) (words []any) {
	first := true
	for _, m := range all {
		some := list(m["enum"])
		some = some[:min(len(some), mostWords)]
		switch s.nodes += len(some) / 8; {
		case m["enum"] == nil:
		case first:
			words, first = slices.Clone(some), false
		default:
			allowed := map[string]bool{}
			for _, w := range some {
				b, _ := json.Marshal(w)
				allowed[string(b)] = true
			}
			words = slices.DeleteFunc(words, func(w any) bool { b, _ := json.Marshal(w); return !allowed[string(b)] })
		}
	}
	return words
}

// impliedKinds are the types that keywords imply where none is named.
var impliedKinds = map[string][]string{
	"object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties"},
	"array":  {"items", "prefixItems", "minItems", "contains"},
	"number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

// kind chooses a type that every schema allows, null last.
func (all allOf) kind(try int) string {
	kinds := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	named := false
	for _, m := range all {
		var names []any
		switch t := m["type"].(type) {
		case string:
			names = []any{t}
		case []any:
			names = t[:min(len(t), mostItems)]
		default:
			continue
		}
		if !named { // in the order of the first schema
			kinds = nil
			for _, n := range names {
				if text, ok := n.(string); ok && text != "null" {
					kinds = append(kinds, text)
				}
			}
			if slices.Contains(names, any("null")) {
				kinds = append(kinds, "null")
			}
			named = true
			continue
		}
		if slices.Contains(names, any("integer")) && !slices.Contains(names, any("number")) {
			for i := range kinds {
				kinds[i] = strings.Replace(kinds[i], "number", "integer", 1)
			}
		}
		kinds = slices.DeleteFunc(kinds, func(k string) bool {
			return !slices.Contains(names, any(k)) && (k != "integer" || !slices.Contains(names, any("number")))
		})
	}
	if named && len(kinds) > 0 {
		return kinds[try%len(kinds)]
	}
	for _, kind := range []string{"object", "array", "number"} {
		for _, keyword := range impliedKinds[kind] {
			if all.get(keyword) != nil {
				return kind
			}
		}
	}
	return "string"
}

func (s *sampler) object(all allOf, depth int) any {
	properties, required := map[string][]any{}, map[string]bool{}
	for _, m := range all {
		members, _ := m["properties"].(map[string]any)
		for name, schema := range members {
			properties[name] = append(properties[name], schema)
		}
		for _, name := range list(m["required"]) {
			if text, ok := name.(string); ok {
				required[text] = true
			}
		}
		s.nodes += (len(members) + len(list(m["required"]))) / 8
	}
	out, other := map[string]any{}, all.get("additionalProperties")
	add := func(name string, schemas []any) {
		var of allOf
		for _, schema := range schemas {
			of = s.flatten(of, schema, depth+1)
		}
		s.len += len(name)
		out[name] = s.value(of, depth+1, len(out))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		wanted := required[name] || depth < fullDepth && s.try%3 != 2
		if wanted && !slices.Contains(properties[name], any(false)) && s.len <= sampleBytes {
			add(name, properties[name])
		}
		delete(required, name)
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if s.len <= sampleBytes {
			add(name, []any{other})
		}
	}
	least, _ := all.bound("minProperties", 0, 1)
	for i := 0; len(out) < int(min(least, mostItems)) && other != false; i++ {
		add("extra"+strconv.Itoa(i), []any{other})
	}
	return out
}

func (s *sampler) array(all allOf, depth int) any {
	places, items := list(all.get("prefixItems")), all.get("items")
	if list(items) != nil {
		places, items = list(items), all.get("additionalItems")
	}
	contained := all.get("contains")
	least, spelling := all.bound("minItems", 0, 1)
	most, _ := all.bound("maxItems", math.Inf(1), -1)
	length := max(int(min(max(least, 0), mostItems)), min(len(places), mostItems))
	if contained != nil || spelling == "" && depth < fullDepth && s.try%3 != 2 && items != false {
		length = max(length, 1)
	}
	out := []any{}
	for i := range int(min(float64(length), max(most, 0))) {
		var of allOf
		switch {
		case i < len(places):
			of = s.flatten(of, places[i], depth+1)
		case i == len(places) && contained != nil:
			of = s.flatten(s.flatten(of, contained, depth+1), items, depth+1)
		default:
			of = s.flatten(of, items, depth+1)
		}
		out = append(out, s.value(of, depth+1, i))
	}
	return out
}

// number makes a number within the bounds. fraction asks for one that is not an integer.
func (all allOf) number(integer, fraction bool, number int) json.Number {
	low, lowSpelling := all.bound("minimum", math.Inf(-1), 1)
	high, highSpelling := all.bound("maximum", math.Inf(1), -1)
	above, _ := all.bound("exclusiveMinimum", math.Inf(-1), 1)
	below, _ := all.bound("exclusiveMaximum", math.Inf(1), -1)
	step, _ := all.bound("multipleOf", 0, 1)
	unit := 1.0
	if room := min(high, below) - max(low, above); !integer && room > 0 {
		unit = min(1, room/4)
	}
	lowest, highest := max(low, above+unit), min(high, below-unit)
	if integer && step == 0 {
		step = 1
	}
	n := 1 + float64(number)
	if n < lowest || n > highest {
		n = lowest + float64(number)*unit
		if math.IsInf(lowest, 0) {
			n = highest - float64(number)*unit
		}
	}
	if step > 0 {
		if n = math.Ceil(n/step) * step; n > highest {
			n = math.Floor(highest/step) * step
		}
	} else if fraction && n+unit/2 <= highest {
		n += unit / 2
	}
	n = min(max(n, lowest), highest)
	switch { // beyond the exact integers of a float64 the spelling of a bound is the safe one
	case math.IsInf(n, 0) || math.IsNaN(n):
		return "0"
	case n == low && number == 0 && step <= 1:
		return lowSpelling
	case n == high && number == 0 && step <= 1:
		return highSpelling
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
}

// formats has one string of each format.
var formats = map[any]string{
	"date-time":             "2025-01-02T03:04:05Z",
	"date":                  "2025-01-02",
	"time":                  "03:04:05Z",
	"duration":              "P1D",
	"email":                 "ada@example.com",
	"idn-email":             "ada@example.com",
	"hostname":              "example.com",
	"idn-hostname":          "example.com",
	"uri":                   "https://example.com/",
	"uri-reference":         "/a",
	"iri":                   "https://example.com/",
	"iri-reference":         "/a",
	"url":                   "https://example.com/",
	"ipv4":                  "192.0.2.1",
	"ipv6":                  "2001:db8::1",
	"json-pointer":          "/a",
	"regex":                 "a",
	"uuid":                  "00000000-0000-4000-8000-000000000000",
	"relative-json-pointer": "0",
	"uri-template":          "/{a}",
}

// text makes a string of the right format, pattern and length.
func (all allOf) text(number int) string {
	low, _ := all.bound("minLength", 0, 1)
	high, _ := all.bound("maxLength", longestText, -1)
	least, most := int(min(low, longestText)), int(min(max(high, 0), longestText))
	if pattern, ok := all.get("pattern").(string); ok {
		if s, ok := matchPattern(pattern, least, most); ok {
			return s
		}
	}
	if format, ok := all.get("format").(string); ok && formats[format] != "" {
		return formats[format]
	}
	s := "sandbox"
	if number > 0 {
		s += " " + strconv.Itoa(number)
	}
	s += strings.Repeat("x", max(least-utf8.RuneCountInString(s), 0))
	return s[max(len(s)-most, 0):] // the end has the number
}

// validate counts the schemas that a validator visits for v.
func (s *sampler) validate(schema, v any) {
	m, ok := schema.(map[string]any)
	if !ok || s.spent() {
		return
	}
	s.nodes++
	if ref, ok := m["$ref"].(string); ok {
		s.validate(s.resolve(ref), v)
	}
	s.validateAll(m, v, "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
	switch v := v.(type) {
	case map[string]any:
		properties, _ := m["properties"].(map[string]any)
		for name, member := range v {
			s.validate(properties[name], member)
			s.validate(m["propertyNames"], name)
			s.validateAll(m, member, "additionalProperties", "unevaluatedProperties", "patternProperties")
		}
	case []any:
		for _, item := range v {
			s.validateAll(m, item, "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
		}
	}
}

// validateAll validates v with the schema, the list of schemas or the map of schemas that each keyword has.
func (s *sampler) validateAll(m map[string]any, v any, keywords ...string) {
	for _, keyword := range keywords {
		switch parts := m[keyword].(type) {
		case []any:
			for _, part := range parts {
				s.validate(part, v)
			}
		case map[string]any:
			if keyword == "dependentSchemas" || keyword == "dependencies" || keyword == "patternProperties" {
				for _, part := range parts {
					s.validate(part, v)
				}
				continue
			}
			s.validate(parts, v)
		}
	}
}
