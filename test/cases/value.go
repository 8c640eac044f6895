package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A JSON value here is nil, bool, json.Number, string, []any or map[string]any; a
// value that is not there at all is missing. Numbers stay text: 9007199254740993 is
// not its neighbour.

type missingValue struct{}

// missing stands for a value that is not there, which is not the same as null.
var missing = missingValue{}

type (
	object = map[string]any
	array  = []any
)

// parse reads one JSON document and nothing after it.
func parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the JSON document")
	}
	return v, nil
}

// show writes a value on one line for a failure message.
func show(v any, limit int) string {
	if v == any(missing) {
		return "<missing>"
	}
	s := compact(v)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "..."
}

// compact returns v as JSON without escapes for HTML.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pointer resolves an RFC 6901 pointer; an array index may count from the end (-1).
func pointer(doc any, ptr string) any {
	cur := doc
	for _, token := range tokens(ptr) {
		switch v := cur.(type) {
		case array:
			i, err := strconv.Atoi(token)
			if err != nil {
				return missing
			}
			if i < 0 {
				i += len(v)
			}
			if i < 0 || i >= len(v) {
				return missing
			}
			cur = v[i]
		case object:
			next, ok := v[token]
			if !ok {
				return missing
			}
			cur = next
		default:
			return missing
		}
	}
	return cur
}

// tokens splits a pointer and undoes its escapes.
func tokens(ptr string) []string {
	if ptr == "" || ptr == "/" {
		return nil
	}
	out := strings.Split(strings.TrimLeft(ptr, "/"), "/")
	for i, t := range out {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return out
}

// typeName is the JSON Schema name of a value's type; 1.0 is an integer.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case array:
		return "array"
	case object:
		return "object"
	case json.Number:
		if r, ok := rational(v); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	}
	return "missing"
}

// isWhole tells whether v is written as an integer, without point or exponent.
func isWhole(v any) bool {
	n, ok := v.(json.Number)
	return ok && !strings.ContainsAny(string(n), ".eE")
}

// rational is the exact value of an integer literal and the double nearest to any other: what a reader with
// big integers and ordinary floats sees. Two literals of one double are equal, as they are for most clients,
// while integers above 2^53 stay different.
func rational(n json.Number) (*big.Rat, bool) {
	if isWhole(n) {
		return new(big.Rat).SetString(string(n))
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, false
	}
	return new(big.Rat).SetFloat64(f), true
}

// compare orders two numbers; ok is false if one of them is none.
func compare(a, b any) (order int, ok bool) {
	x, xok := a.(json.Number)
	y, yok := b.(json.Number)
	if !xok || !yok {
		return 0, false
	}
	p, pok := rational(x)
	q, qok := rational(y)
	if !pok || !qok {
		return strings.Compare(string(x), string(y)), true
	}
	return p.Cmp(q), true
}

// equal is deep equality, numbers by value. Members that are null are not the same as missing ones.
func equal(a, b any) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	switch x := a.(type) {
	case array:
		y, ok := b.(array)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case object:
		y, ok := b.(object)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case json.Number:
		return false
	}
	switch b.(type) {
	case array, object:
		return false
	}
	return a == b
}

// walk calls f on v and on everything inside, until f returns false.
func walk(v any, f func(any) bool) bool {
	if !f(v) {
		return false
	}
	switch v := v.(type) {
	case array:
		for _, x := range v {
			if !walk(x, f) {
				return false
			}
		}
	case object:
		for _, k := range names(v) {
			if !walk(v[k], f) {
				return false
			}
		}
	}
	return true
}

// texts lists every string inside v; member names do not count.
func texts(v any) []string {
	var out []string
	walk(v, func(x any) bool {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
		return true
	})
	return out
}

// names returns the members of an object in the order of their names, so that reports are the same each time.
func names(o object) []string { return slices.Sorted(maps.Keys(o)) }

// clone is a deep copy, so that folding never writes into an event.
func clone(v any) any {
	switch v := v.(type) {
	case array:
		out := make(array, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	case object:
		out := make(object, len(v))
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	}
	return v
}

// The accessors below return the zero value for anything else than their type, so
// that a rule needs no type switch in each line.

func asObject(v any) object { o, _ := v.(object); return o }
func asArray(v any) array   { a, _ := v.(array); return a }
func asText(v any) string   { s, _ := v.(string); return s }

// asInt is the value of a small integer literal.
func asInt(v any) (int, bool) {
	if !isWhole(v) {
		return 0, false
	}
	n, err := strconv.Atoi(string(v.(json.Number)))
	return n, err == nil
}

// intOr is asInt with a value for everything else.
func intOr(v any, otherwise int) int {
	if n, ok := asInt(v); ok {
		return n
	}
	return otherwise
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// isEmpty reports whether a value is missing, null, false, zero, or a text, list or object of no length.
// Rules use it for members whose absence and whose zero mean the same to the vendor.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil, missingValue:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		r, ok := rational(v)
		return ok && r.Sign() == 0
	case array:
		return len(v) == 0
	case object:
		return len(v) == 0
	}
	return false
}

// firstFull returns the first value that is not empty, or nil.
func firstFull(values ...any) any {
	for _, v := range values {
		if !isEmpty(v) {
			return v
		}
	}
	return nil
}
