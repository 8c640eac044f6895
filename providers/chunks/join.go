package chunks

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// FragmentJoiner decodes the fragments of one text. A fragment can end within a character, after
// the first of two surrogate escapes. The joiner keeps that half for the next fragment, because
// each half alone decodes to U+FFFD.
type FragmentJoiner struct{ half string }

// Add returns the text of the next fragment, which is a JSON string.
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

// Rest returns U+FFFD if the text ended within a character, else "".
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
