package chunks

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// FragmentJoiner decodes the string fragments of one text. A fragment may end with half
// a character, the first of two surrogate escapes; it is kept for the next
// fragment, since decoding either half alone gives U+FFFD (translation.md 12.4).
type FragmentJoiner struct{ half string }

// Add decodes the next fragment, a JSON string.
func (j *FragmentJoiner) Add(v gjson.Result) string {
	if j.half == "" && !endsHalf(v.Raw) {
		return v.Str
	}
	raw := `"` + j.half + v.Raw[1:]
	j.half = ""
	if endsHalf(raw) {
		cut := len(raw) - len(`\ud83d"`)
		j.half = raw[cut : len(raw)-1]
		raw = raw[:cut] + `"`
	}
	return gjson.Parse(raw).Str
}

// Rest is what remains of a text whose other half never came.
func (j *FragmentJoiner) Rest() string {
	if j.half == "" {
		return ""
	}
	j.half = ""
	return string(utf8.RuneError)
}

// endsHalf reports whether the string raw ends with the escape of a high surrogate.
func endsHalf(raw string) bool {
	at := len(raw) - len(`\ud83d"`)
	if at < 1 || raw[at] != '\\' || raw[at+1] != 'u' || raw[at+2]|0x20 != 'd' {
		return false
	}
	switch raw[at+3] {
	case '8', '9', 'a', 'b', 'A', 'B':
	default:
		return false
	}
	backslashes := 0
	for i := at; i > 0 && raw[i] == '\\'; i-- {
		backslashes++
	}
	return backslashes%2 == 1
}
