package gemini

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
)

// camel returns a field name in lowerCamelCase. A leading underscore, which some SDKs send
// (_responseJsonSchema), is dropped. A name without underscores is returned without a copy.
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

// eachMember calls f for every member of an object that is not null, with its name in
// lowerCamelCase, until f returns false. It does nothing if object is not an object.
func eachMember(object gjson.Result, f func(name string, v gjson.Result) bool) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		return v.Type == gjson.Null || f(camel(key.Str), v)
	})
}

// field returns the member of an object with this lowerCamelCase name. It looks at all members, so
// use eachMember for several.
func field(object gjson.Result, name string) (found gjson.Result) {
	eachMember(object, func(n string, v gjson.Result) bool {
		if n == name {
			found = v
		}
		return true
	})
	return found
}

// each calls f for the elements of an array until f returns false. A value that is not an array
// counts as an array of one: proto JSON does not allow that, but clients send it.
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

// number returns a number in the client's own spelling, also one in a string.
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

// integer returns a whole number in any spelling: 7, "7", 7.0.
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

// boolean reports whether v is true, also as a string.
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

// str returns the text of a string, or "" for any other value.
func str(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}
