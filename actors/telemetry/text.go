package telemetry

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds, in bytes, what clients and upstreams chose to call something:
// models, replies.
const maxText = 128

// maxPlain bounds a plain name.
const maxPlain = 64

// plain reports whether name is like those of fields and of what they lost: a_field,
// stop:truncated, tools.strict.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != ':' && c != '.' {
			return false
		}
	}
	return name != "" && len(name) <= maxPlain
}

// Text is as much of s as an attribute has room for, in whole characters. Who reads
// metrics and spans refuses all of them for a broken one.
func Text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for i := 1; i < utf8.UTFMax; i++ {
			if at := maxText - i; utf8.RuneStart(s[at]) {
				if !utf8.FullRuneInString(s[at:]) {
					s = s[:at]
				}
				break
			}
		}
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
