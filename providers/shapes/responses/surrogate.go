package responses

import (
	"strings"

	"github.com/tidwall/gjson"
)

// joiner decodes a string that arrives in pieces, each a JSON string of its
// own. A surrogate pair may be cut by the end of a piece: its first half, which
// would become U+FFFD, is kept for the next one.
type joiner struct{ high string }

const highEscape = len(`\ud83d`)

func (j *joiner) decode(piece gjson.Result) string {
	if piece.Type != gjson.String {
		return ""
	}
	raw := piece.Raw
	if j.high == "" && !endsHigh(raw) {
		return piece.Str
	}
	if j.high != "" {
		raw = `"` + j.high + raw[1:]
		j.high = ""
	}
	if endsHigh(raw) {
		cut := len(raw) - 1 - highEscape
		j.high = strings.Clone(raw[cut : len(raw)-1])
		raw = raw[:cut] + `"`
	}
	return gjson.Parse(raw).Str
}

// rest returns what stands for a half that nothing completed.
func (j *joiner) rest() string {
	if j.high == "" {
		return ""
	}
	j.high = ""
	return "\uFFFD"
}

// endsHigh reports whether a raw JSON string ends with the escape of the first
// half of a surrogate pair.
func endsHigh(raw string) bool {
	at := len(raw) - 1 - highEscape
	if at < 1 || raw[at] != '\\' || raw[at+1] != 'u' || raw[at+2]|0x20 != 'd' {
		return false
	}
	switch raw[at+3] | 0x20 {
	case '8', '9', 'a', 'b':
	default:
		return false
	}
	slashes := 0
	for i := at; i > 0 && raw[i] == '\\'; i-- {
		slashes++
	}
	return slashes%2 == 1
}
