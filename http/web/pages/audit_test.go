package pages

import (
	"encoding/json"
	"testing"

	"stagedoor/state"
)

// TestTheAuditPageWritesValuesAsOtherPagesDo: money in dollars, times and lists in words, and all else as it is.
func TestTheAuditPageWritesValuesAsOtherPagesDo(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"budget", "20500000", "$20.50"},
		{"credits", "-1", "−$0.000001"},
		{"rpm", "20500000", "20500000"},
		{"expires", `"2026-11-28T10:41:07Z"`, "28 Nov 2026, 10:41 UTC"},
		{"scopes", `["chat","models"]`, "chat, models"},
		{"models", `[]`, "none"},
		{"name", `"[x"`, "[x"},
		{"expires", "null", ""},
	} {
		row := AuditRow{state.AuditRecord{Changes: []state.AuditChange{{Field: c.field, After: json.RawMessage(c.value)}}}}
		if got := row.Fields()[0].After; got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.field, c.value, got, c.want)
		}
	}
}
