package dialogue_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
)

func TestLongMessagesAreCutBetweenCharacters(t *testing.T) {
	long := dialogue.ErrorText("x" + strings.Repeat("é", dialogue.MaxErrorText))
	if len(long) > dialogue.MaxErrorText+len("...") || !strings.HasSuffix(long, "é...") {
		t.Errorf("%d bytes, the last ones are %q", len(long), long[len(long)-6:])
	}
	for _, whole := range []string{"", "é", strings.Repeat("x", dialogue.MaxErrorText)} {
		if got := dialogue.ErrorText(whole); got != whole {
			t.Errorf("a text of %d bytes became one of %d", len(whole), len(got))
		}
	}
	// A text without the beginning of any character is cut to nothing.
	if got := dialogue.ErrorText(strings.Repeat("\x80", 2*dialogue.MaxErrorText)); !utf8.ValidString(got) {
		t.Errorf("%q is not UTF-8", got)
	}
}
