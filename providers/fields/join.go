package fields

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// FragmentJoiner decodes the fragments of one text, each a JSON string of its own. An upstream that cuts at any UTF-16
// unit ends a fragment with the first of two surrogate escapes. The joiner keeps that half for the next fragment,
// because each half alone decodes to U+FFFD. A fragment without such a half is not copied.
type FragmentJoiner struct{ half string }

// Add returns the text of the next fragment, or "" for a value that is not a string.
func (j *FragmentJoiner) Add(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	if j.half == "" && !endsHalf(v.Raw) && !hasLoneHalf(v) {
		return v.Str
	}
	raw := `"` + j.half + v.Raw[1:]
	j.half = ""
	if endsHalf(raw) {
		cut := len(raw) - len(`\ud83d"`)
		j.half = raw[cut : len(raw)-1]
		raw = raw[:cut] + `"`
	}
	// gjson would drop the escape behind a lone half.
	text, _ := jsontext.AppendUnquote(nil, raw) // the error only says that there is a lone half
	return string(text)
}

// Waits reports whether a half is kept for the next fragment.
func (j *FragmentJoiner) Waits() bool { return j.half != "" }

// Rest returns U+FFFD if the text ended within a character, else "".
func (j *FragmentJoiner) Rest() string {
	if j.half == "" {
		return ""
	}
	j.half = ""
	return string(utf8.RuneError)
}

// hasLoneHalf reports whether a string may have half a character within.
func hasLoneHalf(v gjson.Result) bool {
	return strings.ContainsRune(v.Str, utf8.RuneError) && strings.Contains(v.Raw, `\u`)
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
