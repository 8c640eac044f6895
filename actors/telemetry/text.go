package telemetry

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds texts that clients and upstreams choose, such as names of models, in bytes.
const maxText = 128

// maxPlain bounds a plain name.
const maxPlain = 64

// plain reports whether name looks like that of a field or a loss, such as a_field, stop:truncated or tools.strict.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != ':' && c != '.' {
			return false
		}
	}
	return name != "" && len(name) <= maxPlain
}

// Text returns as much of s as fits an attribute, in whole characters. Receivers of metrics and spans refuse a whole
// batch for one broken text.
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
