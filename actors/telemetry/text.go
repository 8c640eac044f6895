package telemetry

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds, in bytes, what clients and upstreams chose to call something:
// models, replies.
const maxText = 128

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
