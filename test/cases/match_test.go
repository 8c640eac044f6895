package cases

import "testing"

func mustParse(t *testing.T, text string) any {
	t.Helper()
	v, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestMatchersHoldAsTheCasesMeanThem(t *testing.T) {
	for _, c := range []struct {
		got, want string
		holds     bool
	}{
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993`, `9007199254740993`, true},
		{`1`, `1.0`, true},
		{`0.1`, `0.1`, true},
		{`true`, `1`, false},
		{`"1"`, `1`, false},
		{`null`, `null`, true},
		{`{"a":1,"b":2}`, `{"a":1}`, true},
		{`{"a":1,"b":2}`, `{"$eq":{"a":1}}`, false},
		{`[1,2]`, `[1]`, false},
		{`[1,{"x":2,"y":3}]`, `[{"$gt":0},{"x":2}]`, true},
		{`{"a":null}`, `{"a":{"$absent":true}}`, true},
		{`{}`, `{"a":{"$absent":true}}`, true},
		{`{}`, `{"a":{"$present":true}}`, false},
		{`{}`, `{"a":{"$not":{"$eq":1}}}`, true},
		{`{}`, `{"a":{"$lacks":1}}`, false},
		{`5`, `{"$or":[4,{"$gte":5}]}`, true},
		{`5`, `{"$and":[{"$gt":1},{"$lt":5}]}`, false},
		{`3`, `{"$in":[1,2]}`, false},
		{`1.0`, `{"$type":"integer"}`, true},
		{`1`, `{"$type":"number"}`, true},
		{`"x"`, `{"$type":["number","null"]}`, false},
		{`"abc"`, `{"$regex":"^a.c$"}`, true},
		{`"abc"`, `{"$contains":"bc"}`, true},
		{`[1,{"k":2}]`, `{"$contains":{"k":2}}`, true},
		{`"héllo"`, `{"$len":5}`, true},
		{`[1,2,3]`, `{"$len":{"$gt":3}}`, false},
		{`[1,2,3]`, `{"$any":2}`, true},
		{`[1,2,3]`, `{"$all":{"$lt":3}}`, false},
		{`[]`, `{"$none":1}`, true},
		{`3`, `{"$none":1}`, false},
		{`[1,9,2,9,3]`, `{"$subseq":[1,2,3]}`, true},
		{`[2,1]`, `{"$subseq":[1,2]}`, false},
		{`"{\"a\":9007199254740993}"`, `{"$json":{"a":9007199254740993}}`, true},
		{`"{"`, `{"$json":{}}`, false},
		{`{"a":[{"b":"deep text"}]}`, `{"$deep_contains":"p te"}`, true},
		{`{"secret":"x"}`, `{"$deep_lacks":"secret"}`, true},
		{`{"a":[{"b":1}]}`, `{"$deep_no_key":["c","b"]}`, false},
		{`{"type":"object","properties":{"p":{"type":"object","additionalProperties":false}},"additionalProperties":false}`, `{"$closed_objects":true}`, true},
		{`{"anyOf":[{"type":["object","null"]}]}`, `{"$closed_objects":true}`, false},
		{`{"properties":{"pattern":{"type":"string"}}}`, `{"$no_keywords":["pattern"]}`, true},
		{`{"properties":{"p":{"pattern":"x"}}}`, `{"$no_keywords":["pattern"]}`, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{"$refs_resolve":true}`, true},
		{`{"items":{"$ref":"#/$defs/b"}}`, `{"$refs_resolve":true}`, false},
		{`1`, `{"$no_such_operator":1}`, false},
	} {
		bad := match(mustParse(t, c.got), mustParse(t, c.want), "")
		if holds := len(bad) == 0; holds != c.holds {
			t.Errorf("%s against %s: holds %v, want %v: %q", c.got, c.want, holds, c.holds, bad)
		}
	}
}

func TestPointersFollowRFC6901AndCountFromTheEnd(t *testing.T) {
	doc := mustParse(t, `{"a":[1,2,{"x/y":{"~":3}}],"":4}`)
	for ptr, want := range map[string]string{"": "", "/a/0": "1", "/a/-2": "2", "/a/-1/x~1y/~0": "3"} {
		got := pointer(doc, ptr)
		if want != "" && compact(got) != want {
			t.Errorf("%q: got %s, want %s", ptr, show(got, 80), want)
		}
	}
	for _, ptr := range []string{"/a/3", "/a/-4", "/a/x", "/b", "/a/0/0"} {
		if got := pointer(doc, ptr); got != any(missing) {
			t.Errorf("%q: got %s, want it missing", ptr, show(got, 80))
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add(`{"a":[1,"b",null]}`, `{"a":{"$contains":{"$or":[1,{"$type":"string"}]}}}`)
	f.Add(`[1e400,-0]`, `[{"$gt":0},{"$eq":0}]`)
	f.Fuzz(func(t *testing.T, got, want string) {
		g, err := parse([]byte(got))
		if err != nil {
			return
		}
		if bad := match(g, g, ""); len(bad) > 0 {
			if _, ops := operators(g); !ops && !hasOperators(g) {
				t.Errorf("%s does not match itself: %q", got, bad)
			}
		}
		if w, err := parse([]byte(want)); err == nil {
			match(g, w, "")
		}
	})
}

// hasOperators tells whether a matcher inside v means something else than itself.
func hasOperators(v any) bool {
	return !walk(v, func(x any) bool {
		_, ops := operators(x)
		return !ops
	})
}
