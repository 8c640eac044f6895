package messages

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// joiner puts together characters that an upstream has split over two strings:
// a delta may end with the first half of a surrogate pair and the next begin
// with the second.
type joiner struct {
	half string // the escape of a first half, waiting
}

// text returns the string v, after what the last one left and without a half at its end.
func (j *joiner) text(v gjson.Result) string {
	if j.half == "" && !strings.Contains(v.Raw, `\u`) {
		return v.Str
	}
	body := strings.TrimSuffix(strings.TrimPrefix(v.Raw, `"`), `"`)
	body, j.half = splitHalf(j.half + body)
	return unquote(body)
}

// rest returns what stands for a half whose other half never came.
func (j *joiner) rest() string {
	if j.half == "" {
		return ""
	}
	j.half = ""
	return "\uFFFD"
}

// splitHalf takes the escape of a high surrogate from the end of a JSON string's
// inside.
func splitHalf(body string) (rest, half string) {
	const length = len(`\ud83d`)
	at := len(body) - length
	if at < 0 || !isHigh(body[at:]) {
		return body, ""
	}
	slashes := 0
	for i := at - 1; i >= 0 && body[i] == '\\'; i-- {
		slashes++
	}
	if slashes%2 == 1 { // the backslash is itself escaped
		return body, ""
	}
	return body[:at], body[at:]
}

func isHigh(escape string) bool {
	return escape[0] == '\\' && escape[1] == 'u' && (escape[2] == 'd' || escape[2] == 'D') &&
		strings.IndexByte("89abAB", escape[3]) >= 0
}

// unquote decodes the inside of a JSON string; what is no character becomes U+FFFD.
func unquote(body string) string {
	out, _ := jsontext.AppendUnquote(nil, `"`+body+`"`)
	return string(out)
}
