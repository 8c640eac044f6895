package admincli

import (
	"strings"
	"testing"
)

func TestAnItemIsNamedByIDNameOrAUniqueBeginning(t *testing.T) {
	all := []candidate{
		{id: "key_01a1", name: "laptop", short: "sd-AbC"}, {id: "key_01a2", name: "ci", short: "sd-AbD"},
		{id: "key_01b1", name: "laptop", short: "sd-Xyz", gone: true},
		{id: "key_02c1", name: "twice", short: "sd-111"}, {id: "key_02c2", name: "twice", short: "sd-222"},
		{id: "7", name: "01"},
	}
	for text, want := range map[string]string{"key_01a1": "key_01a1", "Laptop": "key_01a1", "key_01b": "key_01b1",
		"01a2": "key_01a2", "sd-AbD": "key_01a2", "02c2": "key_02c2", "01": "7"} {
		if got, err := pick(text, "key", all); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"twice": `"twice" fits several: key_02c1 (twice), key_02c2 (twice)`,
		"key_": "fits several", "sd-Ab": "fits several", "laptp": "there is no such key (did you mean laptop?)",
		"ftp": "there is no such key", "sd-Xyz": "no such key", "": "no such key"} {
		if got, err := pick(text, "key", all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestANumberNamesOnlyTheItemWithThatID(t *testing.T) {
	all := []candidate{{id: "12", name: "staff"}, {id: "120", name: "crew"}}
	if got, err := pick("12", "group", all); err != nil || got != "12" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := pick("1", "group", all[:1]); err == nil {
		t.Errorf("1 names the group %s", got)
	}
}

func TestNamesThatUsersChoseNameNoKey(t *testing.T) {
	own := candidate{id: "key_01a1", name: "ci"}
	theirs := candidate{id: "key_02b1", name: "CI", user: "anna"}
	if got, err := pick("ci", "key", []candidate{theirs, own}); err != nil || got != own.id {
		t.Errorf("got %q, %v", got, err)
	}
	got, err := pick("ci", "key", []candidate{theirs})
	if want := `the key "ci" belongs to a user, so give its id: key_02b1 (CI)`; err == nil || err.Error() != want {
		t.Errorf("got %q, %v, want %s", got, err, want)
	}
	theirs.name = "01a" // a beginning of another key's id
	if got, err := pick("01a", "key", []candidate{theirs, own}); err != nil || got != own.id {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := pick("02b", "key", []candidate{theirs, own}); err != nil || got != theirs.id {
		t.Errorf("got %q, %v", got, err)
	}
}
