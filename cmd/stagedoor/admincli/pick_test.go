package admincli

import (
	"strings"
	"testing"
)

func TestAnItemIsNamedByIDNameOrAUniqueBeginning(t *testing.T) {
	all := []candidate{
		{
			"key_01a1",
			"laptop",
			"sd-AbC",
			false,
		}, {"key_01a2", "ci", "sd-AbD", false}, {"key_01b1", "laptop", "sd-Xyz", true},
		{"key_02c1", "twice", "sd-111", false}, {"key_02c2", "twice", "sd-222", false}, {"7", "01", "", false},
	}
	for text, want := range map[string]string{"key_01a1": "key_01a1", "Laptop": "key_01a1", "key_01b": "key_01b1",
		"01a2": "key_01a2", "sd-AbD": "key_01a2", "02c2": "key_02c2", "01": "7"} {
		if got, err := pick(text, "none", all); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"twice": `"twice" fits several: key_02c1 (twice), key_02c2 (twice)`,
		"key_": "fits several", "sd-Ab": "fits several", "laptp": "none (did you mean laptop?)",
		"ftp": "none", "sd-Xyz": "none",
		"": "none"} {
		if got, err := pick(text, "none", all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", text, got, err, want)
		}
	}
}
