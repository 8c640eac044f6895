package gemini

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
)

// camel brings a field name to lowerCamelCase. A leading underscore, which
// some SDKs send (_responseJsonSchema), goes too.
func camel(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '_' {
			out = append(out, name[i])
			continue
		}
		if i+1 < len(name) && len(out) > 0 && 'a' <= name[i+1] && name[i+1] <= 'z' {
			i++
			out = append(out, name[i]-'a'+'A')
		}
	}
	return string(out)
}

// eachMember calls f for every member of an object that is not null, under its
// lowerCamelCase name, until f is false.
func eachMember(object gjson.Result, f func(name string, v gjson.Result) bool) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		return v.Type == gjson.Null || f(camel(key.Str), v)
	})
}

// field returns the member of an object with this lowerCamelCase name.
func field(object gjson.Result, name string) (found gjson.Result) {
	eachMember(object, func(n string, v gjson.Result) bool {
		if n == name {
			found = v
		}
		return true
	})
	return found
}

// each calls f for the elements of an array, or for a single value that stands
// where an array should: proto JSON does not allow it, clients do it.
func each(v gjson.Result, f func(i int, v gjson.Result) bool) {
	if !v.IsArray() {
		f(0, v)
		return
	}
	i := -1
	v.ForEach(func(_, v gjson.Result) bool {
		i++
		return f(i, v)
	})
}

// number reads a number, also one in a string, in its own spelling.
func number(v gjson.Result) (json.Number, bool) {
	switch v.Type {
	case gjson.Number:
		return json.Number(v.Raw), true
	case gjson.String:
		if n := gjson.Parse(v.Str); n.Type == gjson.Number && fields.ValidLenientString(v.Str) {
			return json.Number(n.Raw), true
		}
	}
	return "", false
}

// integer reads a whole number in any spelling: 7, "7", 7.0.
func integer(v gjson.Result) (int64, bool) {
	n, ok := number(v)
	if !ok {
		return 0, false
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// boolean reads true, also in a string.
func boolean(v gjson.Result) bool {
	return v.Type == gjson.True || v.Type == gjson.String && v.Str == "true"
}

// raw returns the JSON of v in memory of its own, nil if v is missing.
func raw(v gjson.Result) json.RawMessage {
	if v.Raw == "" {
		return nil
	}
	return fields.Raw(v)
}

// str returns v's text if v is a string.
func str(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}
