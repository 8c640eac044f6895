package dialogue

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what an upstream says of a failure, in bytes. Both ends up in logs and in the memory of clients.
const (
	// MaxErrorBody is the longest body that is parsed. A longer one is no error object.
	MaxErrorBody = 64 << 10
	// MaxErrorText is the longest text that ErrorText leaves whole.
	MaxErrorText = 2 << 10
)

// ErrorText returns a text of an upstream as it may stand in an Error: in UTF-8 and cut to MaxErrorText between two
// characters. A text that was cut ends with three dots.
func ErrorText(s string) string {
	if len(s) <= MaxErrorText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	cut := MaxErrorText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\uFFFD") + "..."
}
