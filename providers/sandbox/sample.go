package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
)

// tries is how often a sample is made anew, with other choices, when the
// schema's finer rules (oneOf, not, if) refuse it.
const tries = 12

// Sample makes a JSON value that satisfies a JSON Schema, as far as it can tell
// how: the same one for the same schema. For what is not a schema it makes an
// empty object.
func Sample(raw json.RawMessage) json.RawMessage {
	if !fields.ValidLenient(raw) {
		return json.RawMessage("{}")
	}
	root := gjson.ParseBytes(raw)
	s := sampler{root: root}
	first := s.sample()
	if !s.delicate || s.spent() || len(raw) > mostChecked {
		return first
	}
	check := compile(raw)
	if check == nil || accepts(check, first) {
		return first
	}
	for try := 1; try < tries; try++ {
		again := sampler{root: root, try: try}
		if v := again.sample(); accepts(check, v) {
			return v
		}
	}
	return first
}

func compile(raw []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if c.AddResource("sandbox:schema", doc) != nil {
		return nil
	}
	compiled, err := c.Compile("sandbox:schema")
	if err != nil {
		return nil
	}
	return compiled
}

// noLoader keeps schemas from reaching for files and networks.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("only local references") }

func accepts(s *jsonschema.Schema, v []byte) bool {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
	return err == nil && s.Validate(doc) == nil
}

const (
	sampleDepth = 24   // levels a sample may have at all
	fullDepth   = 4    // levels that get their optional members
	sampleNodes = 8000 // schemas and values looked at
	sampleWork  = 4 << 20
	sampleBytes = 64 << 10 // of a sample; what would follow is null
	longest     = 4096     // characters of a string
	mostItems   = 64
	mostWords   = 1000     // of an enum that are looked at
	mostChecked = 16 << 10 // bytes of a schema that a sample is checked against
)

// sampler makes one value. try varies its choices.
type sampler struct {
	root     gjson.Result
	try      int
	nodes    int
	work     int  // bytes of schemas looked at
	delicate bool // the schema has rules the sampler does not understand itself
}

// spent reports whether the schema has cost as much as any may.
func (s *sampler) spent() bool { return s.nodes > sampleNodes || s.work > sampleWork }

func (s *sampler) sample() []byte { return s.value(nil, s.view(s.root, 0), 0, 0) }

// view is a schema with everything that must hold at the same time: allOf, the
// target of $ref, one of anyOf and oneOf.
type view []gjson.Result

func (s *sampler) view(schema gjson.Result, depth int) view {
	v := view{schema}
	s.nodes++
	s.work += len(schema.Raw)
	if !schema.IsObject() || depth > sampleDepth || s.spent() {
		return v
	}
	if ref := schema.Get("$ref"); ref.Exists() {
		if target := s.resolve(ref.Str); target.Exists() {
			v = append(v, s.view(target, depth+1)...)
		}
	}
	schema.Get("allOf").ForEach(func(_, part gjson.Result) bool {
		v = append(v, s.view(part, depth+1)...)
		return len(v) < mostItems
	})
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := firstOf(schema.Get(key), mostItems); len(branches) > 0 {
			s.delicate = true
			v = append(v, s.view(branches[s.branch(branches, depth)], depth+1)...)
		}
	}
	for _, key := range []string{"not", "if", "dependentSchemas", "patternProperties", "propertyNames", "contains", "dependentRequired"} {
		s.delicate = s.delicate || schema.Get(key).Exists()
	}
	if s.try%2 == 1 {
		if then := schema.Get("then"); then.Exists() {
			v = append(v, s.view(then, depth+1)...)
		}
	}
	return v
}

// branch chooses among alternatives: deep down one that ends.
func (s *sampler) branch(branches []gjson.Result, depth int) int {
	if depth < fullDepth {
		return s.try % len(branches)
	}
	for i, b := range branches {
		if !b.Get("$ref").Exists() && b.Get("type").Str != "object" && b.Get("type").Str != "array" {
			return i
		}
	}
	return s.try % len(branches)
}

func (s *sampler) resolve(ref string) gjson.Result {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil {
		return gjson.Result{}
	}
	at := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		at = member(at, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
	}
	return at
}

// member looks a name up without gjson's path syntax, which names may contain.
func member(v gjson.Result, name string) gjson.Result {
	var found gjson.Result
	if v.IsArray() {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < mostWords {
			if list := firstOf(v, i+1); i < len(list) {
				found = list[i]
			}
		}
		return found
	}
	v.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return !found.Exists()
	})
	return found
}

// get is the first word any of the schemas has on a keyword.
func (v view) get(keyword string) gjson.Result {
	for _, schema := range v {
		if r := schema.Get(keyword); r.Exists() {
			return r
		}
	}
	return gjson.Result{}
}

// least and most are the strictest bounds of a keyword.
func (v view) least(keyword string) (gjson.Result, bool) {
	return v.strictest(keyword, func(a, b float64) bool { return a > b })
}

func (v view) most(keyword string) (gjson.Result, bool) {
	return v.strictest(keyword, func(a, b float64) bool { return a < b })
}

func (v view) strictest(keyword string, stricter func(a, b float64) bool) (best gjson.Result, found bool) {
	for _, schema := range v {
		if r := schema.Get(keyword); r.Type == gjson.Number && (!found || stricter(r.Num, best.Num)) {
			best, found = r, true
		}
	}
	return best, found
}

// value appends a value; number tells siblings apart that must differ.
func (s *sampler) value(dst []byte, v view, depth, number int) []byte {
	s.nodes++
	if depth > sampleDepth || s.spent() || len(dst) > sampleBytes {
		return append(dst, "null"...)
	}
	if c := v.get("const"); c.Exists() {
		return append(dst, c.Raw...)
	}
	if words := v.enum(); len(words) > 0 {
		return append(dst, words[(s.try+number)%len(words)].Raw...)
	}
	switch v.kind(s.try) {
	case "object":
		return s.object(dst, v, depth)
	case "array":
		return s.array(dst, v, depth)
	case "integer":
		return append(dst, v.number(true, false, number)...)
	case "number":
		return append(dst, v.number(false, s.try >= 2, number)...)
	case "boolean":
		return append(dst, strconv.FormatBool((s.try+number)%2 == 0)...)
	case "null":
		return append(dst, "null"...)
	}
	return appendJSONString(dst, v.text(number))
}

// enum lists what every enum of the view allows.
func (v view) enum() []gjson.Result {
	var words []gjson.Result
	first := true
	for _, schema := range v {
		e := schema.Get("enum")
		if !e.IsArray() {
			continue
		}
		some := firstOf(e, mostWords)
		if first {
			words, first = some, false
			continue
		}
		allowed := make(map[string]bool, len(some))
		for _, w := range some {
			allowed[w.Raw] = true
		}
		words = slices.DeleteFunc(words, func(w gjson.Result) bool { return !allowed[w.Raw] })
	}
	return words
}

// firstOf lists the first n elements of an array.
func firstOf(array gjson.Result, n int) []gjson.Result {
	var list []gjson.Result
	array.ForEach(func(_, v gjson.Result) bool {
		list = append(list, v)
		return len(list) < n
	})
	return list
}

// kind chooses a type: one that is named, else one that the keywords imply.
func (v view) kind(try int) string {
	if kinds := v.kinds(); len(kinds) > 0 {
		return kinds[try%len(kinds)]
	}
	for _, implied := range []struct{ keyword, kind string }{
		{"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"}, {"patternProperties", "object"}, {"minProperties", "object"},
		{"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"}, {"contains", "array"},
		{"minimum", "number"}, {"maximum", "number"}, {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}, {"multipleOf", "number"},
	} {
		if v.get(implied.keyword).Exists() {
			return implied.kind
		}
	}
	return "string"
}

// kinds are the types every schema of the view allows, null last.
func (v view) kinds() []string {
	var kinds []string
	null, first := false, true
	for _, schema := range v {
		t := schema.Get("type")
		if !t.Exists() {
			continue
		}
		names := map[string]bool{}
		listed := firstOf(t, mostItems)
		for _, n := range listed {
			names[n.Str] = true
		}
		if first {
			for _, n := range listed {
				if n.Str != "null" {
					kinds = append(kinds, n.Str)
				}
			}
			null, first = names["null"], false
			continue
		}
		kept := kinds[:0:0]
		for _, k := range kinds {
			switch {
			case names[k], k == "integer" && names["number"]:
				kept = append(kept, k)
			case k == "number" && names["integer"]:
				kept = append(kept, "integer")
			}
		}
		kinds, null = kept, null && names["null"]
	}
	if null {
		kinds = append(kinds, "null")
	}
	return kinds
}
