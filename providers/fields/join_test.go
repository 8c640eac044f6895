package fields_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
)

func TestFragmentsOfATextAreJoinedWithoutLosingACharacter(t *testing.T) {
	for _, test := range []struct {
		name      string
		fragments []string
		want      string
	}{
		{"no escapes", []string{`"a"`, `"b"`}, "ab"},
		{"a pair", []string{`"a\ud83d"`, `"\ude80b"`}, "a🚀b"},
		{"a pair in capitals", []string{`"\uD83D"`, `"\uDE80"`}, "🚀"},
		{"a pair over an empty fragment", []string{`"\ud83d"`, `""`, `"\ude80"`}, "🚀"},
		{"a pair over a value that is no text", []string{`"\ud83d"`, `7`, `{"x":"\u0041"}`, `"\ude80"`}, "🚀"},
		{"half at the end", []string{`"a\ud83d"`}, "a\uFFFD"},
		{"half before another escape", []string{`"\ud83d"`, `"\u0041b"`}, "\uFFFDAb"},
		{"half before another escape in one fragment", []string{`"x\ud83d\u0041b"`}, "x\uFFFDAb"},
		{"half before a half", []string{`"\ud83d"`, `"\ud83d"`, `"\ude80"`}, "\uFFFD🚀"},
		{"second half alone", []string{`"\ude80"`, `"b"`}, "\uFFFDb"},
		{"an escaped backslash", []string{`"\\ud83d"`, `"b"`}, `\ud83db`},
		{"an escaped backslash before a half", []string{`"\\\ud83d"`, `"\ude80"`}, `\🚀`},
		{"a replacement character", []string{"\"\uFFFD\tb\""}, "\uFFFD\tb"},
	} {
		var j fields.FragmentJoiner
		got := ""
		for _, raw := range test.fragments {
			got += j.Add(gjson.Parse(raw))
		}
		waits := j.Waits()
		rest := j.Rest()
		if waits != (rest != "") || j.Waits() {
			t.Errorf("%s: Waits %v before the rest %q", test.name, waits, rest)
		}
		if got += rest; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestAFragmentWithoutAHalfIsNotCopied(t *testing.T) {
	var j fields.FragmentJoiner
	v := gjson.Parse(`"gr\u00fc\u00df dich"`)
	if n := testing.AllocsPerRun(100, func() { j.Add(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
