package fields_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/providers/fields"
)

// samples are texts on both sides of every rule of the grammar.
var samples = []string{
	`{}`, `[]`, `null`, `true`, `false`, `"a"`, `0`, ` {"a" : [ 1 , {"b":null} ] } `, "\t{\n}\r",
	``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `[1,]`, `[,]`, `[1 2]`, `{"a" 1}`, `{1:2}`,
	`{}{}`, `{},`, `]`, `}`, `[}`, `{]`,
	`nul`, `nulll`, `tru`, `truefalse`, `Null`, `+1`, `-`, `-0`, `01`, `-01`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+05`,
	`1e-`, `0.0e-0`, `1_0`, `NaN`, `0x1`,
	`"`, `"a`, `"\`, `"\"`, `"\"\\\/\b\f\n\r\t"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u00e9\u00E9"`, `"\uD83D\uDE00"`,
	`"\uD83D"`, `"\uDE00"`, `"\uD83D\u0041"`,
	`"\uD83Dx"`, `"\uD83D\n"`, `"\uD83D\uD83D"`, `"\u0000"`, `"\ud83d\ude0"`,
	"\"a\nb\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"caf\u00e9 \u4f60\u597d \U0001F600\"", "\"\xff\"", "\"\xc3\"",
	"\"\xe4\xbd\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
	"\"\xc0\xaf\"", "\"12345678\xe4\xbd\xa0\"", "\"1234567\xe4\xbd\xa01234567\"", "\"\uFFFD\"", "\xEF\xBB\xBF{}",
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"a":1},"b":{"a":1}}`, `[{"a":1},{"a":1}]`, `{"ab":1,"ba":2,"ab ":3}`,
	`{"":1,"":2}`, `{"\ud83d\ude00":1,"😀":2}`,
	names(31, false), names(33, false), names(33, true), names(200, false), names(200, true),
	strings.Repeat("[", 128) + strings.Repeat("]",
		128), `{"a":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}`,
}

// names is an object of n members, the last of which may repeat the first.
func names(n int, twice bool) string {
	var b strings.Builder
	b.WriteString(`{"n0":{}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,"n%d":{"n0":%d}`, i, i)
	}
	if twice {
		b.WriteString(`,"n0":1`)
	}
	return b.String() + "}"
}

func TestValidAgreesWithJSONText(t *testing.T) {
	for _, text := range samples {
		if got, want := fields.Valid([]byte(text)), jsontext.Value(text).IsValid(); got != want {
			t.Errorf("%.60q: got %v, want %v", text, got, want)
		}
	}
}

// Strings are read eight bytes at a time: pairs of bytes at every place.
func TestStringsAreReadAlikeAtEveryPlace(t *testing.T) {
	for at := range 18 {
		for first := range 256 {
			for _, second := range []byte("\"\\n \x1f\x80\xbf\xc3") {
				text := []byte(`"` + strings.Repeat("x", 20) + `"`)
				text[1+at], text[2+at] = byte(first), second
				if got, want := fields.Valid(text), jsontext.Value(text).IsValid(); got != want {
					t.Fatalf("%q: got %v, want %v", text, got, want)
				}
			}
		}
	}
}

func TestDepthHasABound(t *testing.T) {
	for _, row := range []struct{ open, end string }{{"[", "]"}, {`{"a":`, "}"}} {
		for depth, want := range map[int]bool{fields.MaxDepth: true, fields.MaxDepth + 1: false} {
			text := strings.Repeat(row.open, depth) + "1" + strings.Repeat(row.end, depth)
			if got := fields.Valid([]byte(text)); got != want {
				t.Errorf("%d times %s: got %v, want %v", depth, row.open, got, want)
			}
		}
	}
	if fields.Valid([]byte(strings.Repeat("[", 8<<20))) {
		t.Error("nothing but brackets is valid")
	}
}

// A walk by rules must find every flaw that a walk without rules finds, so that callers of Whole need no other check of
// the syntax.
func TestWalksSeeEveryFlaw(t *testing.T) {
	for _, text := range samples {
		if got, want := walk([]byte(text)), jsontext.Value(text).IsValid(); got != want {
			t.Errorf("%.60q: got %v, want %v", text, got, want)
		}
	}
}

func TestLenientReadersAcceptWhatParsersAccept(t *testing.T) {
	for _, text := range []string{`{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud83d"}`} {
		r := fields.NewLenientReader([]byte(text))
		r.Skip()
		if !r.Whole() {
			t.Errorf("%q is refused", text)
		}
		r.Free()
	}
	for _, text := range []string{`{"a":1,}`, "{\"a\":\"\n\"}", `{"a":"\u12"}`, `{} x`} {
		r := fields.NewLenientReader([]byte(text))
		r.Skip()
		if r.Whole() {
			t.Errorf("%q is accepted", text)
		}
		r.Free()
	}
}

// walk reads text level by level, every third value by skipping it.
func walk(text []byte) bool {
	r := fields.NewReader(text)
	defer r.Free()
	turn := 0
	var value func() error
	value = func() error {
		turn++
		switch kind := r.Peek(); {
		case turn%3 == 0:
		case kind == fields.Object:
			return r.Object(func([]byte) error { return value() })
		case kind == fields.Array:
			return r.Array(func(int) error { return value() })
		case kind == fields.String:
			_, err := r.Text()
			return err
		}
		r.Skip()
		return nil
	}
	return value() == nil && r.Whole()
}

func FuzzValid(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if deep(text) {
			return
		}
		want := jsontext.Value(text).IsValid()
		if got := fields.Valid(text); got != want {
			t.Fatalf("Valid(%q): got %v, want %v", text, got, want)
		}
		if got := walk(text); got != want {
			t.Fatalf("walk(%q): got %v, want %v", text, got, want)
		}
		lenient := fields.NewLenientReader(text)
		defer lenient.Free()
		lenient.Skip()
		if got, want := lenient.Whole(), json.Valid(text); got != want {
			t.Fatalf("lenient(%q): got %v, want %v", text, got, want)
		}
	})
}

// deep reports whether text might be nested deeper than is allowed here.
func deep(text []byte) bool {
	open := 0
	for _, c := range text {
		if c == '{' || c == '[' {
			open++
		}
	}
	return open > fields.MaxDepth
}

// conversation is a request of about size bytes of prose with some escapes and
// some characters beyond ASCII.
func conversation(size int) []byte {
	prose := strings.Repeat(
		`Once more the old man said \"jump\", and all 13 dogs slept on;\n in the caf\u00e9 a na`+
			"\u00efve \u4f60\u597d was heard. ",
		20,
	)
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"be kind"}`)
	for b.Len() < size {
		fmt.Fprintf(&b, `,{"role":"user","content":"%s"}`, prose)
	}
	b.WriteString(`],"temperature":0.7,"stream":false}`)
	return []byte(b.String())
}

// BenchmarkValid is the syntax check of one request, beside jsontext's.
func BenchmarkValid(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		body := conversation(size)
		for name, valid := range map[string]func() bool{
			"fields":   func() bool { return fields.Valid(body) },
			"jsontext": func() bool { return jsontext.Value(body).IsValid() },
		} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if !valid() {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}
