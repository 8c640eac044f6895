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

// Sample returns a JSON value that satisfies a JSON Schema, the same value for the same schema. It tries
// other choices while validation fails (oneOf, not, if) and then returns its first sample. Input that is no
// schema gets an empty object. It stands in for a model that is held to a schema: clients and tests of the
// gateway get arguments of tools, and structured output, that their own validation accepts.
func Sample(raw json.RawMessage) json.RawMessage {
	first := json.RawMessage("{}")
	if len(raw) > largestSchema || !fields.ValidLenient(raw) {
		return first
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return first
	}
	var check *jsonschema.Schema
	for try := range mostTries {
		s := sampler{root: root, try: try}
		v := s.value([]any{root}, 0, 0)
		sample, err := json.Marshal(v)
		if err != nil {
			break
		}
		if try == 0 {
			first = sample
		}
		// References can make validation take exponential time.
		if s.countVisits(root, v); s.spent() || len(raw) > mostChecked {
			break
		}
		if check == nil {
			c := jsonschema.NewCompiler()
			c.UseLoader(noLoader{})
			if c.AddResource("sandbox:schema", root) != nil {
				break
			}
			if check, err = c.Compile("sandbox:schema"); err != nil {
				break
			}
		}
		if check.Validate(v) == nil {
			return sample
		}
	}
	return first
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

// spent reports whether the sampler has used up its bound of work. It then finishes with nulls.
func (s *sampler) spent() bool { return s.nodes > sampleNodes }

// merged is one schema made of several that a value must satisfy at the same time.
type merged struct {
	keywords   map[string]any // the strictest value of each number, else the first value
	properties map[string][]any
	required   map[string]bool
	kinds      []any
	words      []any // that enum and const allow
	never      bool
}

// merge adds a schema to m, with its allOf, the target of its $ref, and one of its anyOf and oneOf. Only odd tries add
// its then, because a schema whose if does not apply would otherwise be made stricter than it is.
func (s *sampler) merge(m *merged, schema any, depth int) {
	object, ok := schema.(map[string]any)
	if s.nodes++; !ok || depth > sampleDepth || s.spent() {
		m.never = m.never || schema == false
		return
	}
	for keyword, v := range object {
		s.mergeKeyword(m, keyword, v)
	}
	if ref, ok := object["$ref"].(string); ok {
		s.merge(m, s.resolve(ref), depth+1)
	}
	for _, part := range list(object["allOf"]) {
		s.merge(m, part, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches := list(object[keyword]); len(branches) > 0 {
			s.merge(m, s.chooseBranch(branches, depth), depth+1)
		}
	}
	if s.try%2 == 1 {
		s.merge(m, object["then"], depth+1)
	}
}

// mergeKeyword adds one keyword of a schema to m.
//
// Where a keyword occurs twice, the stricter number is kept, which is the smaller of two maxima and
// the larger of two minima. For keywords whose values cannot be compared the first one counts, and
// the validation of the sample shows whether that was right.
func (s *sampler) mergeKeyword(m *merged, keyword string, v any) {
	switch keyword {
	case "properties":
		members, _ := v.(map[string]any)
		s.nodes += len(members) / 8
		for name, member := range members {
			m.properties[name] = append(m.properties[name], member)
		}
	case "required":
		s.nodes += len(list(v)) / 8
		for _, name := range list(v) {
			if text, ok := name.(string); ok {
				m.required[text] = true
			}
		}
	case "type":
		kinds := list(v)
		if _, ok := v.(string); ok {
			kinds = []any{v}
		}
		if kinds = kinds[:min(len(kinds), mostItems)]; slices.Contains(kinds, any("number")) {
			kinds = append(slices.Clip(kinds), "integer")
		}
		m.kinds = intersect(m.kinds, kinds)
	case "enum":
		s.nodes += min(len(list(v)), mostWords) / 8
		m.words = intersect(m.words, list(v)[:min(len(list(v)), mostWords)])
	case "const":
		m.words = intersect(m.words, []any{v})
	default:
		earlier, found := m.keywords[keyword]
		if n, ok := v.(json.Number); ok && found {
			a, b := float(n, 0), float(earlier, 0)
			if strings.Contains(strings.ToLower(keyword), "max") {
				a, b = b, a
			}
			found = a <= b
		}
		if !found {
			m.keywords[keyword] = v
		}
	}
}

// list returns the elements of an array, or nil for any other value.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// float returns a JSON number, or otherwise for any other value.
func float(v any, otherwise float64) float64 {
	n, ok := v.(json.Number)
	if f, err := n.Float64(); ok && err == nil {
		return f
	}
	return otherwise
}

// intersect returns the values of a that b has, too. A nil slice stands for all values.
// Values are compared by their JSON, because maps and slices cannot be compared in Go.
func intersect(a, b []any) []any {
	if a == nil || b == nil {
		return append(slices.Clone(a), b...)
	}
	allowed := map[string]bool{}
	for _, v := range b {
		text, _ := json.Marshal(v) // values from JSON cannot fail
		allowed[string(text)] = true
	}
	return slices.DeleteFunc(a, func(v any) bool { text, _ := json.Marshal(v); return !allowed[string(text)] })
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
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return nil
	}
	at := s.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		switch v := at.(type) {
		case map[string]any:
			at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		}
	}
	return at
}

// value makes a value that satisfies several schemas. number distinguishes siblings that must differ. A const
// or an enum decides alone. The other keywords of the schema are not looked at then, and validation shows
// whether they agree.
func (s *sampler) value(schemas []any, depth, number int) (v any) {
	if s.nodes++; depth > sampleDepth || s.spent() || s.len > sampleBytes {
		return nil
	}
	m := merged{keywords: map[string]any{}, properties: map[string][]any{}, required: map[string]bool{}}
	for _, schema := range schemas {
		s.merge(&m, schema, depth)
	}
	kind := m.kind(s.try)
	switch {
	case len(m.words) > 0:
		v = m.words[(s.try+number)%len(m.words)]
	case kind == "object":
		return s.object(&m, depth)
	case kind == "array":
		return s.array(&m, depth)
	case kind == "integer", kind == "number":
		v = m.number(kind == "integer", s.try >= 2, number)
	case kind == "boolean":
		v = (s.try+number)%2 == 0
	case kind == "string":
		v = m.text(number)
	}
	b, _ := json.Marshal(v) // values from JSON cannot fail
	s.len += len(b)
	return v
}

// kind returns the name of a type that every schema allows, null last, or of the type that other keywords imply.
// Of several types the number try takes one, so that further tries take the others.
// A schema without a type is common: the keywords then show what the author had in mind.
func (m *merged) kind(try int) any {
	if len(m.kinds) > 0 {
		isNull := func(a any) bool { return a == "null" }
		if kinds := slices.DeleteFunc(slices.Clone(m.kinds), isNull); len(kinds) > 0 {
			return kinds[try%len(kinds)]
		}
		return "null"
	}
	if len(m.properties)+len(m.required) > 0 {
		return "object"
	}
	for _, row := range []struct{ kind, keywords string }{
		{"object", "additionalProperties patternProperties minProperties"},
		{"array", "items prefixItems minItems contains"},
		{"number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"},
	} {
		for keyword := range strings.FieldsSeq(row.keywords) {
			if m.keywords[keyword] != nil {
				return row.kind
			}
		}
	}
	return "string"
}

// object makes an object with its required members. Optional ones are added in upper levels, and in
// two of three tries, so that a schema whose optional members exclude each other is satisfied by
// another try.
func (s *sampler) object(m *merged, depth int) any {
	other := m.keywords["additionalProperties"]
	names := maps.Clone(m.required)
	for name, schemas := range m.properties {
		if (m.required[name] || depth < fullDepth && s.try%3 != 2) && !slices.Contains(schemas, any(false)) {
			names[name] = true
		}
	}
	least := int(min(float(m.keywords["minProperties"], 0), mostItems))
	for i := 0; len(names) < least && other != false; i++ {
		names["extra"+strconv.Itoa(i)] = true
	}
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		schemas, known := m.properties[name]
		if !known {
			schemas = []any{other}
		}
		if s.len += len(name); s.len <= sampleBytes {
			out[name] = s.value(schemas, depth+1, len(out))
		}
	}
	return out
}

// array makes an array of the least length that is allowed, and of one element if an empty one
// would do.
func (s *sampler) array(m *merged, depth int) any {
	places, items, contained := list(m.keywords["prefixItems"]), m.keywords["items"], m.keywords["contains"]
	if list(items) != nil {
		places, items = list(items), m.keywords["additionalItems"]
	}
	least := int(min(max(float(m.keywords["minItems"], 0), 0), mostItems))
	length := max(least, min(len(places), mostItems))
	if contained != nil || least == 0 && depth < fullDepth && s.try%3 != 2 && items != false {
		length = max(length, 1)
	}
	out := []any{}
	for i := range int(min(float64(length), max(float(m.keywords["maxItems"], mostItems), 0))) {
		schemas := []any{items}
		switch {
		case i < len(places):
			schemas = places[i : i+1]
		case i == len(places) && contained != nil:
			schemas = []any{contained, items}
		}
		out = append(out, s.value(schemas, depth+1, i))
	}
	return out
}

// number makes a number within the bounds. fraction asks for one that is not an integer. unit is the distance
// from an exclusive bound: 1 for integers, and for other numbers at most a quarter of the room between the
// bounds.
func (m *merged) number(integer, fraction bool, number int) json.Number {
	low, high := float(m.keywords["minimum"], math.Inf(-1)), float(m.keywords["maximum"], math.Inf(1))
	above := float(m.keywords["exclusiveMinimum"], math.Inf(-1))
	below := float(m.keywords["exclusiveMaximum"], math.Inf(1))
	step, unit := float(m.keywords["multipleOf"], 0), 1.0
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
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return "0"
	}
	// A bound may lie beyond the integers that a float64 holds exactly, so it is copied as it is spelled.
	for _, keyword := range []string{"minimum", "maximum"} {
		if bound, ok := m.keywords[keyword].(json.Number); ok && n == float(bound, 0) && number == 0 && step <= 1 {
			return bound
		}
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
}

// formats has one string of each format.
var formats = map[any]string{
	"date-time": "2025-01-02T03:04:05Z", "date": "2025-01-02", "time": "03:04:05Z", "duration": "P1D",
	"email": "ada@example.com", "idn-email": "ada@example.com", "hostname": "example.com",
	"idn-hostname": "example.com",
	"uri":          "https://example.com/", "iri": "https://example.com/", "url": "https://example.com/",
	"uri-reference": "/a", "iri-reference": "/a", "json-pointer": "/a", "relative-json-pointer": "0",
	"uri-template": "/{a}", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "regex": "a",
	"uuid": "00000000-0000-4000-8000-000000000000",
}

// text makes a string of the right format, pattern and length.
func (m *merged) text(number int) string {
	least := int(min(float(m.keywords["minLength"], 0), longestText))
	most := int(min(max(float(m.keywords["maxLength"], longestText), 0), longestText))
	if pattern, ok := m.keywords["pattern"].(string); ok {
		if s, ok := matchPattern(pattern, least, most); ok {
			return s
		}
	}
	if format, ok := m.keywords["format"].(string); ok && formats[format] != "" {
		return formats[format]
	}
	s := "sandbox"
	if number > 0 {
		s += " " + strconv.Itoa(number)
	}
	s += strings.Repeat("x", max(least-utf8.RuneCountInString(s), 0))
	return s[max(len(s)-most, 0):] // the end has the number
}

// Keywords by what their schemas apply to. Schemas of all other keywords apply to the value itself.
const (
	forMembers = " additionalProperties unevaluatedProperties patternProperties propertyNames items prefixItems " +
		"additionalItems unevaluatedItems contains "
	forNames   = " patternProperties dependentSchemas dependencies " // whose values are schemas under names
	notApplied = " $defs definitions const enum default examples "
)

// countVisits counts the schemas that a validator visits for v.
// The validator has no limit of its own. Its work is counted before it starts, with the same bound
// as the making of the sample, and a sample that would take too long is returned unchecked.
func (s *sampler) countVisits(schema, v any) {
	object, ok := schema.(map[string]any)
	if s.nodes++; !ok || s.spent() {
		return
	}
	if ref, ok := object["$ref"].(string); ok {
		s.countVisits(s.resolve(ref), v)
	}
	members := list(v)
	if m, ok := v.(map[string]any); ok {
		members = slices.Collect(maps.Values(m))
		properties, _ := object["properties"].(map[string]any)
		for name, member := range m {
			s.countVisits(properties[name], member)
		}
	}
	for keyword, part := range object {
		parts, values, padded := []any{part}, []any{v}, " "+keyword+" "
		if named, ok := part.(map[string]any); ok && strings.Contains(forNames, padded) {
			parts = slices.Collect(maps.Values(named))
		} else if l, ok := part.([]any); ok {
			parts = l
		} else if !ok || keyword == "properties" {
			continue
		}
		if strings.Contains(notApplied, padded) {
			continue
		}
		if strings.Contains(forMembers, padded) {
			values = members
		}
		for _, part := range parts {
			for _, value := range values {
				if _, ok := part.(map[string]any); ok {
					s.countVisits(part, value)
				}
			}
		}
	}
}
