package catalog_test

import (
	"strings"
	"testing"

	"stagedoor/providers/catalog"
)

// A change is steep if what is charged moves more than tenfold, also where a list states a price that fell back to
// another one before, or states it no longer.
func TestChangesAreShownAndSteepOnesAreMarked(t *testing.T) {
	const model = `{"provider": "v", "id": "m", "price": {"input": 1, "output": 10, "web_search_1k": 1},
		"aliases": ["a"], "as_of": "2026-12-01"}, {"provider": "v", "aliases": ["d"], "id": "dear",
		"price": {"input": 100, "output": 99}, "as_of": "2026-12-01",
		"windows": [{"utc": ["00:00-01:00"], "price": {"input": 10000, "output": 99}}], "end": "2027-12-01"}`
	const hosts = `"currency": "USD", "hosts": {"api.v.test": "v"}`
	text := func(model, hosts string) string {
		return strings.Replace(listOf(model), `"currency": "USD"`, hosts, 1)
	}
	before, err := catalog.ParseList([]byte(text(model, hosts)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, to string
		want     string // of the first change; "" for none
		steep    bool
	}{
		"nothing":     {"", "", "", false},
		"dearer":      {`"input": 1`, `"input": 2`, "v/m changed price input 2, was 1 (+100.0 %)", false},
		"much dearer": {`"input": 1`, `"input": 11`, "v/m changed price input 11, was 1", true},
		"a cheap cache read appears": {`"output"`, `"cache_read": 0.01, "output"`,
			"cache_read 0.01, was 1 (-99.0 %)", true},
		"a usual cache read appears": {`"output"`, `"cache_read": 0.2, "output"`,
			"cache_read 0.2, was 1 (-80.0 %)", false},
		"a price that is stated now": {`"output"`, `"cache_read": 1, "output"`, "", false},
		"free":                       {`"input": 1`, `"input": 0`, "price input 0, was 1", true},
		"searches cost nothing":      {`, "web_search_1k": 1`, "", "web_search_1k 0, was 1", true},
		"no price": {`"price": {"input": 1, "output": 10, "web_search_1k": 1}`, `"note": "none"`,
			"price: no longer", true},
		"a dropped alias":              {`["a"]`, `[]`, "v/m changed alias a: no longer", false},
		"a new alias":                  {`["a"]`, `["a", "b"]`, "v/m changed alias b: new", false},
		"a removed model with a price": {`"id": "m"`, `"id": "n"`, "v/n added", true},
		"a host of another vendor": {`"api.v.test": "v"`, `"api.v.test": "w"`,
			"host api.v.test changed vendor w, was v", true},
		"a host that is not there": {`{"api.v.test": "v"}`, `{}`, "host api.v.test removed", true},
		"a new host":               {`{"api`, `{"b.test": "v", "api`, "host b.test added vendor v", false},
		"a dearer service tier": {`"as_of"`, `"service_tiers": {"fast": 20}, "as_of"`,
			"v/m changed service tier fast 20 times the price, was 1", true},
		"a limit that is known now": {`"as_of"`, `"context": 10, "as_of"`, "v/m changed context 10, was 0", false},
		"a price above a size appears": {`"as_of"`, `"above": {"tokens": 9, "input": 2, "output": 10},
			"as_of"`, "above 9 tokens: new", false},
		"a much dearer price above a size appears": {`"as_of"`, `"above": {"tokens": 9, "input": 11, "output": 10},
			"as_of"`, "above 9 tokens input 11, was 1", true},
		"free from a date on": {`"as_of"`, `"from": [{"date": "2027-01-01", "price": {"input": 0, "output": 0}}],
			"as_of"`, "from 2027-01-01 input 0, was 1", true},
		"dear hours appear": {`"as_of"`, `"windows": [{"utc": ["00:00-24:00"], "price": {"input": 10000}}], "as_of"`,
			"00:00-24:00 UTC input 10000, was 1", true},
		"dear hours go": {`"windows": [{"utc": ["00:00-01:00"], "price": {"input": 10000, "output": 99}}],`, "",
			"00:00-01:00 UTC input 100, was 10000", true},
		"a price of images appears":  {`"output": 10`, `"output": 10, "image": 5`, "image 5, was 0 (new)", true},
		"a price of seconds appears": {`"output": 10`, `"output": 10, "second": 5`, "second 5, was 0 (new)", true},
		"an alias moves to a dear model": {`["a"], "as_of": "2026-12-01"}, {"provider": "v", "aliases": ["d"`,
			`[], "as_of": "2026-12-01"}, {"provider": "v", "aliases": ["d", "a"`, "a was v/m: input 100, was 1", true},
		"a dear model with a name that led to another": {`{"provider": "v", "aliases": ["d"]`, `{"provider": "v",
			"id": "m-2025-01-01", "price": {"input": 11}, "as_of": "2026-12-01"}, {"provider": "v", "aliases": ["d"]`,
			"v/m-2025-01-01 added m-2025-01-01 was v/m: input 11, was 1", true},
		"an added model at the same price": {`{"provider": "v", "aliases": ["d"]`, `{"provider": "v",
			"id": "m-2025-01-01", "price": {"input": 1, "output": 10, "web_search_1k": 1}, "as_of": "2026-12-01"},
			{"provider": "v", "aliases": ["d"]`, "v/m-2025-01-01 added \n", false},
		"a searched price tenfold lower": {`"web_search_1k": 1`, `"web_search_1k": 0.09`,
			"web_search_1k 0.09, was 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := catalog.ParseList([]byte(strings.Replace(text(model, hosts), c.from, c.to, 1)), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, steep := "", false
			for _, change := range catalog.Changes(before, after) {
				got += change.Name + " " + change.What + " " + strings.Join(change.Details, "; ") + "\n"
				steep = steep || change.Steep
			}
			if steep != c.steep || c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("steep %v, got %swant %q", steep, got, c.want)
			}
		})
	}
}
