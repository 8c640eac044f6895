package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// matchMap compares a document with a map from pointers to matchers and returns what does not match. Pointers that
// start with ~ lead into view, the neutral view of the document, or nil if it has none.
func matchMap(doc any, want object, view any) (bad []string) {
	for _, ptr := range names(want) {
		if rest, ok := strings.CutPrefix(ptr, "~"); ok {
			bad = append(bad, match(pointer(view, rest), want[ptr], ptr)...)
			continue
		}
		at := ptr
		if at == "" {
			at = "/"
		}
		bad = append(bad, match(pointer(doc, ptr), want[ptr], at)...)
	}
	return bad
}

// match returns what is wrong with got, or nothing if it matches. at names the place in the messages. Scalars are
// equal, arrays match element by element, objects partially; an object of $ operators holds if all of them do.
func match(got, want any, at string) []string {
	if ops, ok := operators(want); ok {
		var bad []string
		for _, op := range names(ops) {
			bad = append(bad, matchOperator(got, op, ops[op], at)...)
		}
		return bad
	}
	if got == any(missing) {
		return []string{fmt.Sprintf("%s: missing, want %s", at, show(want, 200))}
	}
	switch want := want.(type) {
	case object:
		o, ok := got.(object)
		if !ok {
			return []string{fmt.Sprintf("%s: want object, got %s", at, show(got, 200))}
		}
		var bad []string
		for _, k := range names(want) {
			bad = append(bad, match(member(o, k), want[k], at+"/"+k)...)
		}
		return bad
	case array:
		a, ok := got.(array)
		if !ok || len(a) != len(want) {
			return []string{fmt.Sprintf("%s: want array of %d, got %s", at, len(want), show(got, 300))}
		}
		var bad []string
		for i, w := range want {
			bad = append(bad, match(a[i], w, fmt.Sprintf("%s/%d", at, i))...)
		}
		return bad
	}
	if equal(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", at, show(want, 200), show(got, 200))}
}

// operators returns a matcher as an object of operators, and false if it is a plain value.
func operators(m any) (object, bool) {
	o, ok := m.(object)
	if !ok || len(o) == 0 {
		return nil, false
	}
	for k := range o {
		if !strings.HasPrefix(k, "$") {
			return nil, false
		}
	}
	return o, true
}

// member returns a member, or missing, which matchers can ask for.
func member(o object, k string) any {
	if v, ok := o[k]; ok {
		return v
	}
	return missing
}

// matchOperator knows the operators that say something about a missing value and
// leaves the others to the table.
func matchOperator(got any, op string, arg any, at string) []string {
	wrong := func(format string, args ...any) []string {
		return []string{fmt.Sprintf("%s: %s; got %s", at, fmt.Sprintf(format, args...), show(got, 300))}
	}
	absent := got == any(missing) || got == nil
	switch op {
	case "$absent", "$present":
		want := !isEmpty(arg)
		if (absent == (op == "$absent")) == want {
			return nil
		}
		return wrong("want %s %v", op, want)
	case "$not":
		if len(match(got, arg, at)) > 0 {
			return nil
		}
		return wrong("must not match %s", show(arg, 200))
	case "$or":
		var tried []string
		for _, x := range asArray(arg) {
			bad := match(got, x, at)
			if len(bad) == 0 {
				return nil
			}
			tried = append(tried, bad[0])
		}
		return wrong("no $or branch matched: %s", strings.Join(tried, " | "))
	case "$and":
		var bad []string
		for _, x := range asArray(arg) {
			bad = append(bad, match(got, x, at)...)
		}
		return bad
	}
	if got == any(missing) {
		return wrong("missing (wanted %s)", op)
	}
	judge, ok := judges[op]
	if !ok {
		return wrong("unknown operator %s in the case", op)
	}
	if judge(got, arg) {
		return nil
	}
	return wrong("want %s %s", op, show(arg, 300))
}

// judges decide the operators that fail on a missing value.
var judges map[string]func(got, arg any) bool

// init fills the table of operators.
func init() {
	// Filled here because the judges of arrays call match, which reads the table.
	judges = map[string]func(got, arg any) bool{
		"$eq": equal,
		"$in": func(got, arg any) bool {
			return slices.ContainsFunc(asArray(arg), func(x any) bool { return equal(got, x) })
		},
		"$type":     judgeType,
		"$regex":    judgeRegex,
		"$contains": judgeContains,
		"$gt":       func(got, arg any) bool { o, ok := compare(got, arg); return ok && o > 0 },
		"$gte":      func(got, arg any) bool { o, ok := compare(got, arg); return ok && o >= 0 },
		"$lt":       func(got, arg any) bool { o, ok := compare(got, arg); return ok && o < 0 },
		"$lte":      func(got, arg any) bool { o, ok := compare(got, arg); return ok && o <= 0 },
		"$len":      judgeLength,
		"$any":      func(got, arg any) bool { n, hits := count(got, arg); return n >= 0 && hits > 0 },
		"$all":      func(got, arg any) bool { n, hits := count(got, arg); return n >= 0 && hits == n },
		"$none":     func(got, arg any) bool { n, hits := count(got, arg); return n >= 0 && hits == 0 },
		"$subseq":   judgeSubsequence,
		"$json": func(got, arg any) bool {
			v, err := parse([]byte(asText(got)))
			return err == nil && len(match(v, arg, "")) == 0
		},
		"$deep_contains":  func(got, arg any) bool { return textContains(got, asText(arg)) },
		"$deep_lacks":     func(got, arg any) bool { return !textContains(got, asText(arg)) },
		"$deep_no_key":    func(got, arg any) bool { return !hasKey(got, words(arg)) },
		"$closed_objects": func(got, arg any) bool { return closed(got) == !isEmpty(arg) },
		"$no_keywords":    judgeNoKeywords,
		"$refs_resolve":   func(got, arg any) bool { return (len(danglingRefs(got)) == 0) == !isEmpty(arg) },
	}
}

// judgeType compares types. An integer is a number as well.
func judgeType(got, arg any) bool {
	t, want := typeName(got), words(arg)
	return want[t] || t == "integer" && want["number"]
}

// judgeRegex matches a text against a regular expression.
func judgeRegex(got, arg any) bool {
	s, ok := got.(string)
	if !ok {
		return false
	}
	re, err := regexp.Compile(asText(arg))
	return err == nil && re.MatchString(s)
}

// judgeContains finds a text in a text, or an item in a list.
func judgeContains(got, arg any) bool {
	switch got := got.(type) {
	case string:
		s, ok := arg.(string)
		return ok && strings.Contains(got, s)
	case array:
		return slices.ContainsFunc(got, func(x any) bool { return len(match(x, arg, "")) == 0 })
	}
	return false
}

// judgeLength matches the number of characters, items or members.
func judgeLength(got, arg any) bool {
	n := 0
	switch got := got.(type) {
	case string:
		n = utf8.RuneCountInString(got)
	case array:
		n = len(got)
	case object:
		n = len(got)
	default:
		return false
	}
	return len(match(number(n), arg, "")) == 0
}

// count is the length of an array and how many of its elements match; -1 if got is
// no array.
func count(got, arg any) (n, hits int) {
	a, ok := got.(array)
	if !ok {
		return -1, 0
	}
	for _, x := range a {
		if len(match(x, arg, "")) == 0 {
			hits++
		}
	}
	return len(a), hits
}

// judgeSubsequence reports whether items that match come in this order, with any others between them.
func judgeSubsequence(got, arg any) bool {
	a, ok := got.(array)
	want := asArray(arg)
	i := 0
	for _, x := range a {
		if i < len(want) && len(match(x, want[i], "")) == 0 {
			i++
		}
	}
	return ok && i == len(want)
}

// textContains reports whether any text inside v contains s.
func textContains(v any, s string) bool {
	return slices.ContainsFunc(texts(v), func(t string) bool { return strings.Contains(t, s) })
}

// hasKey reports whether any object inside v has one of the keys.
func hasKey(v any, keys map[string]bool) bool {
	return !walk(v, func(x any) bool {
		for k := range asObject(x) {
			if keys[k] {
				return false
			}
		}
		return true
	})
}

// closed reports whether all objects of a schema refuse other members.
func closed(schema any) bool {
	return !slices.ContainsFunc(schemaNodes(schema), func(n map[string]any) bool {
		return isObjectSchema(n) && n["additionalProperties"] != false
	})
}

// judgeNoKeywords reports whether a schema uses none of the keywords.
func judgeNoKeywords(got, arg any) bool {
	forbidden := words(arg)
	for _, n := range schemaNodes(got) {
		for k := range n {
			if forbidden[k] {
				return false
			}
		}
	}
	return true
}

// words reads a string or an array of strings as a set.
func words(v any) map[string]bool {
	if s, ok := v.(string); ok {
		return set(s)
	}
	out := map[string]bool{}
	for _, x := range asArray(v) {
		out[asText(x)] = true
	}
	return out
}
