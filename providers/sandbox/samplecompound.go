package sandbox

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// property is a member an object can have, with all schemas it must satisfy.
type property struct {
	name    string
	schemas []gjson.Result
}

// properties joins the properties of all schemas of the view, in order.
func (v view) properties() []property {
	var out []property
	places := map[string]int{}
	for _, schema := range v {
		schema.Get("properties").ForEach(func(key, value gjson.Result) bool {
			i, known := places[key.Str]
			if !known {
				out = append(out, property{name: key.Str})
				i = len(out) - 1
				places[key.Str] = i
			}
			out[i].schemas = append(out[i].schemas, value)
			return len(out) < sampleNodes
		})
	}
	return out
}

func (v view) required() map[string]bool {
	out := map[string]bool{}
	for _, schema := range v {
		for _, name := range firstOf(schema.Get("required"), sampleNodes) {
			out[name.Str] = true
		}
	}
	return out
}

func (s *sampler) object(dst []byte, v view, depth int) []byte {
	required, count := v.required(), 0
	dst = append(dst, '{')
	add := func(name string, value func(dst []byte) []byte) {
		if count > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(appendJSONString(dst, name), ':'))
		count++
	}
	wanted := func(name string) bool { return required[name] || depth < fullDepth && s.try%3 != 2 }
	for _, p := range v.properties() {
		if !wanted(p.name) || slices.ContainsFunc(p.schemas, isFalse) {
			delete(required, p.name)
			continue
		}
		add(p.name, func(dst []byte) []byte { return s.value(dst, s.all(p.schemas, depth), depth+1, count) })
		delete(required, p.name)
	}
	other := v.get("additionalProperties")
	extra := func(dst []byte) []byte {
		if other.IsObject() {
			return s.value(dst, s.view(other, depth+1), depth+1, count)
		}
		return append(dst, `"sandbox"`...)
	}
	for _, name := range v.names() {
		if required[name] && len(dst) <= sampleBytes {
			add(name, extra)
		}
	}
	least, _ := v.least("minProperties")
	for i := 0; count < min(int(least.Num), mostItems) && !isFalse(other); i++ {
		add("extra"+strconv.Itoa(i), extra)
	}
	return append(dst, '}')
}

// names lists the required names in order.
func (v view) names() []string {
	var out []string
	seen := map[string]bool{}
	for _, schema := range v {
		for _, name := range firstOf(schema.Get("required"), sampleNodes) {
			if !seen[name.Str] {
				seen[name.Str] = true
				out = append(out, name.Str)
			}
		}
	}
	return out
}

func isFalse(r gjson.Result) bool { return r.Type == gjson.False }

// all is the view of several schemas at once.
func (s *sampler) all(schemas []gjson.Result, depth int) view {
	var v view
	for _, schema := range schemas {
		v = append(v, s.view(schema, depth+1)...)
	}
	return v
}

func (s *sampler) array(dst []byte, v view, depth int) []byte {
	places, items := firstOf(v.get("prefixItems"), sampleNodes), v.get("items")
	if items.IsArray() {
		places, items = firstOf(items, sampleNodes), v.get("additionalItems")
	}
	least, bound := v.least("minItems")
	most, limited := v.most("maxItems")
	length := max(int(min(least.Num, mostItems)), len(places))
	if !bound && length == 0 && depth < fullDepth && s.try%3 != 2 && !isFalse(items) {
		length = 1
	}
	contained := v.get("contains")
	if contained.Exists() {
		length = max(length, 1)
	}
	if limited {
		length = min(length, int(most.Num))
	}
	dst = append(dst, '[')
	for i := range length {
		if i > 0 {
			dst = append(dst, ',')
		}
		var of view
		switch {
		case i < len(places):
			of = s.view(places[i], depth+1)
		case i == len(places) && contained.Exists():
			of = append(s.view(contained, depth+1), s.view(items, depth+1)...)
		default:
			of = s.view(items, depth+1)
		}
		dst = s.value(dst, of, depth+1, i)
	}
	return append(dst, ']')
}
