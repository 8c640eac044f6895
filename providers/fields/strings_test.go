package fields_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/providers/fields"
)

// Characters of each length, whole and broken, are read alike at every place of the eight bytes.
func TestEachCharacterIsReadAtEveryPlace(t *testing.T) {
	bounds := []byte{0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, '"', '\\'}
	for lead := 0x80; lead < 0x100; lead++ {
		for _, second := range bounds {
			for _, third := range []byte{'x', 0x80, 0xBF, '"'} {
				for at := range 9 {
					chars := string([]byte{byte(lead), second, third, 0x80})
					text := `"` + strings.Repeat("x", at) + chars + `1234567890123456"`
					if got, want := fields.Valid([]byte(text)), jsontext.Value(text).IsValid(); got != want {
						t.Fatalf("%q: got %v, want %v", text, got, want)
					}
				}
			}
		}
	}
}

func TestEscapesWithCodesAreReadAtEveryPlace(t *testing.T) {
	for _, escapes := range []string{`\u00e9`, `\u00e9\u4f60`, `\u00e9\n\u4f60`, `\ud83d\ude00\u0041`, `\u00e9\ud83d`,
		`\u00e`, `\u00e9\u12g4`, `\u00e9\\u12g4`, `\u00e9\`, `\u00e9"`} {
		for at := range 9 {
			for _, rest := range []string{``, `x`, `12345678`, `123456789012345678`} {
				text := `"` + strings.Repeat("x", at) + escapes + rest + `"`
				if got, want := fields.Valid([]byte(text)), jsontext.Value(text).IsValid(); got != want {
					t.Errorf("%s: got %v, want %v", text, got, want)
				}
			}
		}
	}
}

// An error names the first byte of the character or escape that is not valid.
func TestFaultsInStringsHaveTheirPlace(t *testing.T) {
	for bad, lenient := range map[string]bool{"\n": true, `\x`: true, `\u12g4`: true, `\ud83d\n`: false, "\xff": false,
		"\xe4\xbdx": false, "\xed\xa0\x80": false, "\xf4\x90\x80\x80": false} {
		for at := range 18 {
			before := "é" + strings.Repeat("x", at)
			text := []byte(`{"a":"` + before + bad + `1234567890"}`)
			fault := fields.Explain(text)
			if want := len(`{"a":"` + before); fault.Flaw != fields.Malformed || fault.Offset != want {
				t.Errorf("%q: got flaw %v at %d, want %d", text, fault.Flaw, fault.Offset, want)
			}
			if got := fields.ValidLenient(text); got == lenient {
				t.Errorf("%q: lenient readers say %v", text, got)
			}
		}
	}
}

// A text that ends within a string is said to end too early, except within a character or an escape.
func TestTextsThatEndInAStringEndThere(t *testing.T) {
	for n := range 20 {
		text := `{"name":"é\n` + strings.Repeat("x", n)
		for _, more := range []string{"", `\`, `\u00`, "\xe4\xbd"} {
			fault := fields.Explain([]byte(text + more))
			if fault.Flaw != fields.Malformed || fault.Offset != len(text) {
				t.Errorf("%q: got flaw %v at %d, want %d", text+more, fault.Flaw, fault.Offset, len(text))
			}
		}
	}
}
