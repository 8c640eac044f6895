package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestChangedNamesWhatDiffersAndShowsNoValue(t *testing.T) {
	parse := func(text string) *Config {
		t.Helper()
		c, err := Parse("f", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := parse("heartbeat: 5s\nproviders: {p: {shape: sandbox}, q: {shape: sandbox, api_keys: [one]}}\n" +
		"models: {a: {targets: [{provider: p, model: x}]}, b: {targets: [{provider: p, model: x}]}}\n")
	after := parse("heartbeat: 6s\nproviders: {q: {shape: sandbox, api_keys: [two]}}\n" +
		"models: {b: {targets: [{provider: q, model: x}]}, c: {targets: [{provider: q, model: x}]}}\n")
	if got, want := strings.Join(Changed(before, after), " "),
		"providers.q -providers.p models.b +models.c -models.a heartbeat"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Changed(before, before); got != nil {
		t.Errorf("nothing changed, got %q", got)
	}
	for i := range 100 {
		after.Models = append(after.Models, Entry[Model]{Name: fmt.Sprint("m", i)})
	}
	if got := Changed(before, after); len(got) != mostChanges+1 || got[mostChanges] != "..." {
		t.Errorf("%d names", len(got))
	}
}
