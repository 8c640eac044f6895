package fields_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

func TestMembersStandWhereTheyAreWritten(t *testing.T) {
	text := []byte(` { "a" : 1 , "b\"c":"x,}\\" ,"d":[1,{"e":2}], "f" :null}`)
	want := map[string]string{"a": "1", `b"c`: `"x,}\\"`, "d": `[1,{"e":2}]`, "f": "null"}
	list := fields.Members(text)
	if len(list) != len(want) {
		t.Fatalf("got %d members, want %d", len(list), len(want))
	}
	for _, m := range list {
		if got := string(text[m.Value:m.End]); got != want[m.Name] {
			t.Errorf("%q: got %s, want %s", m.Name, got, want[m.Name])
		}
		if text[m.Start] != '"' {
			t.Errorf("%q does not start at a quote", m.Name)
		}
	}
}

func TestWithoutMendsCommas(t *testing.T) {
	text := []byte(`[1, 2, 3]`)
	all := fields.Elements(text)
	for mask, want := range []string{`[1, 2, 3]`, `[2, 3]`, `[1, 3]`, `[3]`, `[1, 2]`, `[2]`, `[1]`, `[]`} {
		got := string(fields.Without(text, all, func(i int) bool { return mask&(1<<i) != 0 }))
		if got != want {
			t.Errorf("mask %d: got %s, want %s", mask, got, want)
		}
	}
}

func TestRulesNameTheField(t *testing.T) {
	rows := []struct {
		name string
		rule fields.Rule
		text string
		want string // "" accepts
	}{
		{"integer written as 1.0", fields.Whole(0, 5), `1.0`, ""},
		{"integer written as 1e0", fields.Whole(0, 5), `1e0`, ""},
		{"half", fields.Whole(0, 5), `1.5`, "x"},
		{"string for integer", fields.Whole(0, 5), `"1"`, "x"},
		{"out of range", fields.Between(0, 2), `2.1`, "x"},
		{"null where allowed", fields.Nullable(fields.Between(0, 2)), `null`, ""},
		{"null where not", fields.Between(0, 2), `null`, "x"},
		{"stop word", fields.Stop, `"a"`, ""},
		{"five stops", fields.Stop, `["a","b","c","d","e"]`, "x"},
		{"stop of numbers", fields.Stop, `["a",1]`, "x.1"},
		{"bias", fields.LogitBias, `{"5":100}`, ""},
		{"bias too far", fields.LogitBias, `{"5":101}`, "x.5"},
		{"long metadata", fields.Metadata, `{"k":"` + strings.Repeat("\u00e9", 512) + `"}`, ""},
		{"too long metadata", fields.Metadata, `{"k":"` + strings.Repeat("e", 513) + `"}`, "x.k"},
		{"long key", fields.Metadata, `{"` + strings.Repeat("k", 65) + `":""}`, "x." + strings.Repeat("k", 64)},
		{"word", fields.OneOf("a", "b"), `"c"`, "x"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := fields.NewReader([]byte(`{"x":` + row.text + `}`))
			err := r.Object(func([]byte) error { return row.rule(r) })
			got := ""
			if e := new(dialogue.Error); errors.As(err, &e) {
				got = e.Param
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\\",{"b":null}]}`, `{"a"`, `{"a":}`, `[,]`, `"\`, `{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all := fields.Members(text)
		for _, m := range all {
			if m.Start > m.Value || m.Value > m.End || m.End > len(text) {
				t.Fatalf("member %+v of %q", m, text)
			}
			if json.Valid(text) && !json.Valid(text[m.Value:m.End]) {
				t.Fatalf("value %q of %q", text[m.Value:m.End], text)
			}
		}
		if !json.Valid(text) {
			return
		}
		if got := fields.Without(text, all, func(i int) bool { return i%2 == 0 }); !json.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		r := fields.NewReader(text)
		for range 3 {
			_ = fields.Metadata(r)
			_ = fields.Stop(r)
		}
	})
}
