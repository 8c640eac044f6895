package fields_test

import (
	"slices"
	"testing"

	"stagedoor/providers/fields"
)

func TestNamesAreFoundWithoutParsing(t *testing.T) {
	for text, want := range map[string][]string{
		``:       nil,
		`:`:      nil,
		`":`:     nil,
		`"" : 1`: {"", "1"},
		`{"a":1,"b" : {"c"	:	null}}`: {
			"a", `1,"b" : {"c"	:	null}}`, "b", `{"c"	:	null}}`, "c", "null}}",
		},
		`{"url":"https://x"}`:  {"url", `"https://x"}`},
		`{"a":"\"error\": 1"}`: {"a", `"\"error\": 1"}`, `error\`, `1"}`},
		`{"a":`:                {"a", ""},
	} {
		var got []string
		for name, value := range fields.Mentioned([]byte(text)) {
			got = append(got, string(name), string(value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for range fields.Mentioned([]byte(`{"a":1,"b":2}`)) {
		break // the iterator must not go on
	}
}
