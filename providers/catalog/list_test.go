package catalog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

var autumn = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// used returns a usage with the counts that set makes known.
func used(set func(u *dialogue.Usage)) dialogue.Usage {
	u := dialogue.NoUsage
	set(&u)
	return u
}

func tokens(input, output int64) dialogue.Usage {
	return used(func(u *dialogue.Usage) { u.InputTotal, u.OutputTotal = input, output })
}

// Each row is one rule of the price engine with a model that needs it. The costs are worked out by hand.
func TestListedPricesCostWhatTheVendorsCharge(t *testing.T) {
	for _, c := range []struct {
		rule, vendor, model string
		at                  time.Time
		usage               dialogue.Usage
		micros              int64
	}{
		{"plain", "openai", "gpt-6-sol", autumn, tokens(1_000_000/10, 1000), 200_000 + 10_000},
		{"at the edge of the tier", "openai", "gpt-6-sol", autumn, tokens(272_000, 1000), 544_000 + 10_000},
		{"above the edge, the whole request", "openai", "gpt-6-sol", autumn, tokens(272_001, 1000), 1_088_004 + 15_000},
		{"cached tokens count for the tier", "anthropic", "claude-haiku-5-5", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.CacheRead, u.OutputTotal = 100_001, 100_000, 1000
		}), 1 + 5_000 + 2_500}, // 0.5 + 5000 + 2500 micro-dollars, rounded up
		{"cache read at a twentieth", "openai", "gpt-6.1-sol", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.CacheRead, u.OutputTotal = 10_000, 8_000, 100
		}), 4_000 + 800 + 1_000},
		{"cache writes by their life", "anthropic", "claude-opus-5", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.CacheWrite5m, u.CacheWrite1h, u.OutputTotal = 3_000, 1_000, 1_000, 0
		}), 5_000 + 6_250 + 10_000},
		{"reasoning inside the output", "openai", "gpt-5", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.OutputTotal, u.Reasoning = 1_000, 1_000, 900
		}), 1_250 + 10_000},
		{"sound", "openai", "gpt-audio", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.AudioIn, u.OutputTotal, u.AudioOut = 2_000, 1_000, 2_000, 1_000
		}), 2_500 + 32_000 + 10_000 + 64_000},
		{"cached sound", "google", "gemini-2.5-flash", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.CacheRead, u.AudioIn, u.OutputTotal = 1_000, 1_000, 400, 0
		}), 18 + 40}, // 600 x 0.03 + 400 x 0.1
		{"pictures", "google", "gemini-2.5-flash-image", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.OutputTotal, u.ImageOut = 0, 1_390, 1_290
		}), 250 + 38_700},
		{"the day before a new price", "google", "gemini-3.8-flash",
			time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), tokens(1_000, 1_000), 750 + 3_750},
		{"the day of a new price", "google", "gemini-3.8-flash",
			time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), tokens(1_000, 1_000), 1_500 + 7_500},
		{"before the dear hours", "deepseek", "deepseek-v4-pro",
			time.Date(2026, 11, 23, 0, 59, 59, 0, time.UTC), tokens(1_000, 1_000), 660 + 1_980},
		{"in the dear hours", "deepseek", "deepseek-v4-pro",
			time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC), tokens(1_000, 1_000), 1_320 + 3_960},
		{"after the dear hours, elsewhere", "deepseek", "deepseek-v4-flash",
			time.Date(2026, 11, 23, 12, 0, 0, 0, time.FixedZone("", 8*3600)), tokens(1_000, 0), 150},
		{"a region of a cloud", "*", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", autumn, tokens(1_000, 0), 3_300},
		{"a cloud without a region", "*", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", autumn,
			tokens(1_000, 0), 3_000},
		{"searches", "anthropic", "claude-opus-5", autumn, used(func(u *dialogue.Usage) {
			u.InputTotal, u.OutputTotal, u.WebSearches = 0, 0, 3
		}), 30_000},
		{"vectors", "openai", "text-embedding-3-small", autumn, tokens(1_000, -1), 20},
	} {
		t.Run(c.rule, func(t *testing.T) {
			m, ppm := catalog.Builtin().Find(c.vendor, c.model)
			if got := m.Price(c.at, ppm).Tokens(c.usage); got != c.micros {
				t.Errorf("%s: %d micro-dollars, want %d", c.model, got, c.micros)
			}
		})
	}
}

// The bill never falls when more of anything is used, whatever kind it is, also across the edge of a tier.
func TestCostIsMonotoneInEveryCount(t *testing.T) {
	models := catalog.Builtin().Models()
	rapid.Check(t, func(t *rapid.T) {
		m := models[rapid.IntRange(0, len(models)-1).Draw(t, "model")]
		price := m.Price(autumn, 1_000_000)
		if m.Kind == "transcription" {
			t.Skip("is priced by the minute")
		}
		count := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 300_000))
		var n [11]int64
		for i := range n {
			n[i] = count.Draw(t, fmt.Sprint(i))
		}
		cost := func() int64 {
			u := dialogue.NoUsage
			u.CacheRead, u.CacheWrite5m, u.CacheWrite1h, u.AudioIn, u.ImageIn = n[1], n[2], n[3], n[4], n[5]
			u.InputTotal = n[0] + n[1] + n[2] + n[3] + n[4] + n[5]
			u.Reasoning, u.AudioOut, u.ImageOut, u.WebSearches = n[7], n[8], n[9], n[10]
			u.OutputTotal = n[6] + n[7] + n[8] + n[9]
			return price.Tokens(u)
		}
		before := cost()
		i := rapid.IntRange(0, len(n)-1).Draw(t, "more of")
		n[i] += rapid.Int64Range(1, 100_000).Draw(t, "more")
		if after := cost(); after < before {
			t.Fatalf("%s: %d micro-dollars, with more of %d only %d", m.ID, before, i, after)
		}
	})
}

func TestModelsAreFoundByTheirNamesAndNeverByAPart(t *testing.T) {
	for _, c := range []struct{ vendor, name, id string }{
		{"openai", "gpt-5", "gpt-5"},
		{"openai", "gpt-5-2025-08-07", "gpt-5"},
		{"openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"},
		{"openai", "gpt-5.6-sol", "gpt-5.6-sol"},
		{"openai", "gpt-5.6", ""},
		{"openai", "gpt-5-pro", ""},
		{"openai", "gpt-5-2025-13-07", ""},
		{"openai", "gpt", ""},
		{"openai", "my-gpt-5", ""},
		{"openai", "claude-opus-5", ""},
		{"anthropic", "claude-sonnet-5", "claude-sonnet-5"},
		{"anthropic", "claude-sonnet-5-5", "claude-sonnet-5-5"},
		{"anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"},
		{"anthropic", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5"},
		{"anthropic", "claude-sonnet-4", ""},
		{"*", "eu.anthropic.claude-opus-5-20260101-v1:0", "claude-opus-5"},
		{"*", "anthropic.claude-opus-5-v1", "claude-opus-5"},
		{"*", "us.claude-opus-5", ""},
		{"anthropic", "claude-opus-5-v1:0", "claude-opus-5"},
		{"anthropic", "claude-opus-5-v1", ""},
		{"deepseek", "deepseek-flash-v9", ""},
		{"google", "models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"google", "gemini-2.5-pro-latest", ""},
		{"deepseek", "deepseek-v4-flash", "deepseek-flash"},
		{"", "gpt-5", "gpt-5"},
		{"groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"},
		{"groq", "gpt-oss-120b", ""},
		{"openai", "", ""},
		{"openai", "-v1", ""},
	} {
		id := ""
		if m, _ := catalog.Builtin().Find(c.vendor, c.name); m != nil {
			id = m.ID
		}
		if id != c.id {
			t.Errorf("%q of %q is taken for %q, want %q", c.name, c.vendor, id, c.id)
		}
	}
}

func TestHostsNameTheirVendors(t *testing.T) {
	for host, want := range map[string]string{"api.openai.com": "openai", "my.openai.azure.com": "openai",
		"bedrock-runtime.us-east-1.amazonaws.com": "*", "api.openai.com.example.com": "", "127.0.0.1": "",
		"openai.com": "", "xapi.openai.com": ""} {
		if got := catalog.Builtin().Vendor(host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// The built-in list keeps the rules that hold for the vendors' prices today.
func TestBuiltInPricesAreInTheUsualOrder(t *testing.T) {
	models := catalog.Builtin().Models()
	if len(models) < 88 {
		t.Fatalf("%d models", len(models))
	}
	for _, m := range models {
		p := m.Price(autumn, 1_000_000)
		if p == nil {
			if m.Kind != "transcription" { // some have a price by the minute only, which no route charges
				t.Errorf("%s/%s has no price", m.Vendor, m.ID)
			}
			continue
		}
		if m.Kind == "text" && (p.CachedInput > p.Input || p.Input > p.Output || p.Input == 0) {
			t.Errorf("%s/%s: cached %d, input %d, output %d", m.Vendor, m.ID, p.CachedInput, p.Input, p.Output)
		}
		if p.Source != catalog.Builtin().Version || !strings.HasPrefix(p.Source, "2026-11-22-") {
			t.Errorf("%s/%s: the price is from %q", m.Vendor, m.ID, p.Source)
		}
	}
}

// listOf returns a list with these models.
func listOf(models string) string {
	return `{"version": 1, "date": "2026-12-01", "currency": "USD", "sources": {"P": {}}, "models": [` + models + `]}`
}

func TestAListWithAMistakeIsRefused(t *testing.T) {
	const good = `{"provider": "v", "id": "m", "price": {"input": 1.25}, "as_of": "2026-12-01", "src": ["P"]}`
	if _, err := catalog.ParseList([]byte(listOf(good)), nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"twice":             {good, good + "," + good, "given twice"},
		"negative":          {"1.25", "-1.25", "number of dollars"},
		"exponent":          {"1.25", "1e3", "number of dollars"},
		"too exact":         {"1.25", "0.0000001", "number of dollars"},
		"too dear":          {"1.25", "100000000", "number of dollars"},
		"a text":            {"1.25", `"1.25"`, "number of dollars"},
		"no day":            {`"as_of": "2026-12-01"`, `"as_of": "soon"`, "as_of"},
		"unknown source":    {`["P"]`, `["Q"]`, "src"},
		"no price":          {`"price": {"input": 1.25}, `, "", "expected a price"},
		"an unknown member": {`"id"`, `"ideal": 1, "id"`, "ideal"},
		"lower tier":        {`"as_of"`, `"above": {"tokens": 10, "input": 1}, "as_of"`, "not lower"},
		"tier of nothing":   {`"as_of"`, `"above": {"tokens": 0, "input": 2}, "as_of"`, "above"},
		"lower tier by a fall-back": {`"input": 1.25}, "as_of"`,
			`"input": 1.25, "audio_input": 9}, "above": {"tokens": 10, "input": 2}, "as_of"`, "not lower"},
		"tier and dates": {`"as_of"`, `"above": {"tokens": 10, "input": 2},
			"from": [{"date": "2026-12-02", "price": {"input": 2}}], "as_of"`, "no windows and no from"},
		"tier and hours": {`"as_of"`, `"above": {"tokens": 10, "input": 2},
			"windows": [{"utc": ["01:00-04:00"], "price": {"input": 2}}], "as_of"`, "no windows and no from"},
		"overlap": {`"as_of"`, `"windows": [{"utc": ["01:00-04:00", "03:00-05:00"], "price": {"input": 2}}], "as_of"`,
			"overlap"},
		"minutes and a later price": {`"price": {"input": 1.25}`, `"price": {"minute": 1},
			"from": [{"date": "2027-01-01", "price": {"input": 7}}]`, "price: expected the price of the input"},
		"minutes later": {`"as_of"`, `"from": [{"date": "2027-01-01", "price": {"minute": 7}}], "as_of"`,
			"from: expected the price of the input"},
		"minutes at hours": {`"as_of"`, `"windows": [{"utc": ["00:00-24:00"], "price": {"minute": 7}}], "as_of"`,
			"windows: expected the price of the input"},
		"minutes below a size": {`"price": {"input": 1.25}`, `"price": {"minute": 1},
			"above": {"tokens": 10, "input": 2}`, "price: expected the price of the input"},
		"a tier of nothing": {`"as_of"`, `"service_tiers": {"x": 0}, "as_of"`, "service_tiers"},
		"past":              {`"as_of"`, `"from": [{"date": "2026-11-30", "price": {"input": 2}}], "as_of"`, "from"},
		"context":           {`"as_of"`, `"context": 10, "max_output": 11, "as_of"`, "at most context"},
		"nothing":           {good, "", "expected 1 to"},
		"null":              {good, "null", "expected a model"},
		"date":              {`"date": "2026-12-01"`, `"date": "today"`, "date"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(listOf(good), c.from, c.to, 1)
			if _, err := catalog.ParseList([]byte(text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A client must not lower its bill by a longer prompt, and a new price for tokens says nothing about searches.
func TestAPriceThatReplacesAnotherKeepsItsSearchesAndUnits(t *testing.T) {
	const base = `"as_of": "2026-12-01", "price": {"input": 1, "web_search_1k": 10, "image": 2, "second": 3}`
	l, err := catalog.ParseList([]byte(listOf(`
		{"provider": "v", "id": "above", `+base+`, "above": {"tokens": 10, "input": 2}},
		{"provider": "v", "id": "from", `+base+`, "from": [{"date": "2027-01-01", "price": {"input": 2}}]},
		{"provider": "v", "id": "own", `+base+`,
			"from": [{"date": "2027-01-01", "price": {"input": 2, "web_search_1k": 7}}]},
		{"provider": "v", "id": "windows", `+base+`,
			"windows": [{"utc": ["00:00-24:00"], "price": {"input": 2}}]}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	u := used(func(u *dialogue.Usage) { u.InputTotal, u.OutputTotal, u.WebSearches = 11, 0, 3 })
	for id, searches := range map[string]int64{"above": 30_000, "from": 30_000, "own": 21_000, "windows": 30_000} {
		m, _ := l.Find("v", id)
		p := m.Price(time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), 1_000_000)
		if got := p.Tokens(u); got != 22+searches {
			t.Errorf("%s: %d micro-dollars, want %d", id, got, 22+searches)
		}
		if p.Above != nil {
			p = &p.Above.Price
		}
		if p.PerImage != 2_000_000 || p.PerSecond != 3_000_000 {
			t.Errorf("%s: an image costs %d, a second %d", id, p.PerImage, p.PerSecond)
		}
	}
}

// A model whose prices are in units that the gateway does not charge by is not booked as free.
func TestAModelIsFreeOnlyIfTheListSaysSo(t *testing.T) {
	l, err := catalog.ParseList([]byte(listOf(`
		{"provider": "v", "id": "minutes", "as_of": "2026-12-01", "price": {"minute": 1}},
		{"provider": "v", "id": "empty", "as_of": "2026-12-01", "price": {}},
		{"provider": "v", "id": "free", "as_of": "2026-12-01", "price": {"input": 0}}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, known := range map[string]bool{"minutes": false, "empty": false, "free": true} {
		m, _ := l.Find("v", id)
		if p := m.Price(autumn, 1_000_000); (p != nil) != known || !p.Zero() {
			t.Errorf("%s: %+v", id, p)
		}
	}
}

// A list on disk takes precedence over the built-in one, model by model.
func TestAListOnDiskTakesPrecedence(t *testing.T) {
	text := listOf(`{"provider": "openai", "id": "gpt-5", "price": {"input": 9}, "as_of": "2026-12-01"}`)
	l, err := catalog.ParseList([]byte(text), catalog.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"gpt-5": 9_000_000, "gpt-5-2025-08-07": 9_000_000, "gpt-5-mini": 250_000} {
		m, ppm := l.Find("openai", name)
		if got := m.Price(autumn, ppm).Input; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if n := len(l.Models()); n != len(catalog.Builtin().Models()) {
		t.Errorf("%d models", n)
	}
}

// The models behind a pattern are in the lists if the configuration names them, once, and only where they are served.
func TestPatternsListTheNamesThatTheConfigurationGives(t *testing.T) {
	route := func(p string) []catalog.Route { return []catalog.Route{{Provider: p, Model: "*"}} }
	c, errs := catalog.Build(
		[]catalog.Provider{{Name: "a", Shape: catalog.Sandbox}, {Name: "b", Shape: catalog.Sandbox},
			{Name: "c", Shape: dialoguetest.Chat, BaseURL: "http://127.0.0.1:1"}},
		[]catalog.Model{
			{Pattern: "g-*", Targets: route("a"), List: []string{"g-1", "g-2", "g-1", "g-x"}},
			{Pattern: "g-x", Targets: route("b")},
			{Pattern: "unpriced", Targets: route("c")},
		}, catalog.Pricing{RefuseUnknown: true})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got, want := fmt.Sprint(c.Models()), "[{g-1 a} {g-2 a} {g-x b}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A pattern shows the names that its providers list and that it leads to. Names of the configuration replace them.
func TestPatternsShowWhatTheirProvidersList(t *testing.T) {
	to := func(p, model string) []catalog.Route { return []catalog.Route{{Provider: p, Model: model}} }
	both := append(to("a", "*"), to("b", "*")...)
	c, errs := catalog.New(
		[]catalog.Provider{{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://127.0.0.1:1"},
			{Name: "b", Shape: dialoguetest.Chat, BaseURL: "http://127.0.0.1:1"}, {Name: "s", Shape: catalog.Sandbox}},
		[]catalog.Model{
			{Pattern: "exact", Targets: to("s", "x")},
			{Pattern: "both-*", Targets: both, Fallback: to("s", "*")},
			{Pattern: "r-*", Targets: to("a", "vendor/*:free")},
			{Pattern: "video-*", Targets: to("a", "*")},
			{Pattern: "fixed-*", Targets: to("a", "one")},
			{Pattern: "given-*", Targets: to("a", "*"), List: []string{"given-1"}},
			{Pattern: "none-*", Targets: to("a", "*"), List: []string{}},
			{Pattern: "s-*", Targets: to("s", "*")},
		})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := fmt.Sprint(c.Listing()); got != "[a b]" {
		t.Errorf("the lists of %s are read", got)
	}
	shown := c.WithLists(map[string][]string{
		"a": {"both-1", "both-2", "exact", "fixed-1", "given-2", "none-1", "other", "r-1", "s-1", "sora-2",
			"vendor/r-2:free", "vendor/r-3", "both-/../x"},
		"b": {"both-2", "both-3"}, "s": {"s-2"}, "unknown": {"both-9"},
	})
	if got, want := fmt.Sprint(shown.Models()), "[{exact s} {both-1 a} {both-2 a} {both-3 b} {r-2 a} {video-2 a} "+
		"{given-1 a}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(c.Models()); got != "[{exact s} {given-1 a}]" {
		t.Errorf("the catalogue before has changed: %s", got)
	}
	long := make([]string, 20_000)
	for i := range long {
		long[i] = fmt.Sprintf("both-%d", i)
	}
	if n := len(c.WithLists(map[string][]string{"a": long}).Models()); n > 10_001 {
		t.Errorf("%d models are shown", n)
	}
}

// A service tier multiplies the prices of tokens, above a prompt size and at hours of the day, too. Searches cost the
// same. A model's own factors precede those of its vendor.
func TestServiceTiersMultiplyThePricesOfTokens(t *testing.T) {
	text := strings.Replace(listOf(`
		{"provider": "v", "id": "m", "as_of": "2026-12-01", "price": {"input": 2, "web_search_1k": 10},
			"above": {"tokens": 10, "input": 4}},
		{"provider": "v", "id": "own", "as_of": "2026-12-01", "price": {"input": 2}, "service_tiers": {"fast": 3},
			"windows": [{"utc": ["00:00-24:00"], "price": {"input": 6}}]},
		{"provider": "w", "id": "m", "as_of": "2026-12-01", "price": {"input": 2}}`),
		`"currency"`, `"service_tiers": {"v": {"slow": 0.5, "fast": 2}}, "currency"`, 1)
	l, err := catalog.ParseList([]byte(text), catalog.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		vendor, id, tier string
		prompt, want     int64
	}{
		{"v", "m", "", 10, 20}, {"v", "m", "standard", 10, 20}, {"v", "m", "slow", 10, 10}, {"v", "m", "fast", 10, 40},
		{"v", "m", "slow", 11, 22}, {"v", "m", "fast", 11, 88},
		{"v", "own", "fast", 10, 180}, {"v", "own", "slow", 10, 30}, {"w", "m", "slow", 10, 20},
	} {
		m, ppm := l.Find(c.vendor, c.id)
		p := m.Price(autumn, ppm).AtTier(c.tier)
		if got := p.Tokens(tokens(c.prompt, 0)); got != c.want {
			t.Errorf("%+v: %d micro-dollars", c, got)
		}
		if got := p.WebSearch; c.id == "m" && c.vendor == "v" && got != 10_000_000 {
			t.Errorf("%+v: a thousand searches cost %d", c, got)
		}
	}
	for _, c := range []struct {
		vendor, id       string
		dearest, batches int64
	}{{"openai", "gpt-5", 2_500_000, 625_000}, {"anthropic", "claude-opus-5", 5_000_000, 2_500_000}} {
		m, ppm := catalog.Builtin().Find(c.vendor, c.id)
		p := m.Price(autumn, ppm)
		dearest, batches := p.AtHighestTier().Input, p.AtTier("batch").Input
		if dearest != c.dearest || batches != c.batches {
			t.Errorf("%s: the dearest tier costs %d, a batch %d", c.id, dearest, batches)
		}
	}
	if none := (*catalog.Price)(nil); none.AtTier("fast") != nil || none.AtHighestTier() != nil {
		t.Error("a model without a price has one at a tier")
	}
}

// The exact name in the list below is a better match than a part of the name in the list above.
func TestAnExactNameInAListBelowComesBeforeAShortenedOne(t *testing.T) {
	model := `{"provider": "v", "id": "m%s", "price": {"input": %d}, "as_of": "2026-12-01"}`
	below, err := catalog.ParseList([]byte(listOf(fmt.Sprintf(model, "-2026-01-02", 1))), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := catalog.ParseList([]byte(listOf(fmt.Sprintf(model, "", 2))), below)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"m-2026-01-02": 1_000_000, "m-2026-01-03": 2_000_000} {
		m, ppm := l.Find("v", name)
		if got := m.Price(autumn, ppm).Input; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Several calls of one reply have a prompt each, so the sum of the prompts is not the size of one.
func TestThePriceAboveAPromptSizeIsThatOfTheLargestCall(t *testing.T) {
	m, ppm := catalog.Builtin().Find("anthropic", "claude-haiku-5-5") // above 100,000 tokens
	price := m.Price(autumn, ppm)
	for _, c := range []struct {
		name  string
		calls []int64
		want  int64
	}{
		{"one below", []int64{60_000}, 6_000},
		{"two below", []int64{60_000, 60_000}, 12_000},
		{"one of two above", []int64{60_000, 110_000}, 85_000},
		{"the size itself", []int64{100_000, 1}, 10_001},
	} {
		sum, merged := dialogue.NoUsage, dialogue.NoUsage
		for _, n := range c.calls {
			u := dialogue.NoUsage
			u.InputTotal = n
			sum.Add(u)
		}
		merged.Merge(sum)
		if got := price.Tokens(merged); got != c.want {
			t.Errorf("%s: %d micro-dollars, want %d", c.name, got, c.want)
		}
	}
}

// A model of the list on disk replaces the one below it with its aliases, so an alias does not keep an old price.
func TestAnAliasOfAReplacedModelIsNotFound(t *testing.T) {
	below, err := catalog.ParseList([]byte(listOf(`{"provider": "v", "id": "m", "price": {"input": 1},
		"aliases": ["a", "b"], "as_of": "2026-12-01"}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := catalog.ParseList([]byte(listOf(`{"provider": "v", "id": "m", "price": {"input": 7}, "aliases": ["b"],
		"as_of": "2026-12-01"}, {"provider": "w", "id": "m", "price": {"input": 9}, "as_of": "2026-12-01"}`)), below)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"m": 7_000_000, "b": 7_000_000, "a": 0, "a-2026-01-02": 0} {
		for _, vendor := range []string{"v", "*"} {
			m, ppm := l.Find(vendor, name)
			if p := m.Price(autumn, ppm); p == nil && want != 0 || p != nil && p.Input != want {
				t.Errorf("%s of %s: %+v, want %d", name, vendor, p, want)
			}
		}
	}
	if m, _ := below.Find("v", "a"); m == nil {
		t.Error("the list below has lost its alias")
	}
}
