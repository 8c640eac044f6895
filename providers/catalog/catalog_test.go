package catalog_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/videos"
)

func provider(name string, shape dialogue.Shape) catalog.Provider {
	return catalog.Provider{Name: name, Shape: shape, BaseURL: "http://127.0.0.1:1"}
}

func build(t testing.TB, models ...catalog.Model) *catalog.Catalog {
	t.Helper()
	c, mistakes := catalog.New([]catalog.Provider{
		provider("a", dialoguetest.Chat),
		provider("b", dialoguetest.Messages),
		provider("c", dialoguetest.Gemini),
		{Name: "s", Shape: catalog.Sandbox},
	}, models)
	if len(mistakes) > 0 {
		t.Fatalf("mistakes: %v", mistakes)
	}
	return c
}

func to(provider, model string) []catalog.Route {
	return []catalog.Route{{Provider: provider, Model: model}}
}

func never(int) int { return 0 }

func TestResolveTakesTheMostSpecificName(t *testing.T) {
	c := build(t,
		catalog.Model{Pattern: "*", Targets: to("s", "any")},
		catalog.Model{Pattern: "claude-*", Targets: to("b", "*")},
		catalog.Model{Pattern: "claude-*-thinking", Targets: to("b", "thinker")},
		catalog.Model{Pattern: "claude-opus-4-5", Aliases: []string{"best"}, Targets: to("b", "*")},
		catalog.Model{Pattern: "video-2", Targets: to("a", "")},
		catalog.Model{Pattern: "local/*", Targets: to("a", "vendor/*")},
	)
	rows := []struct{ ask, model string }{
		{"claude-opus-4-5", "claude-opus-4-5"},
		{"best", "claude-opus-4-5"},
		{"claude-sonnet-4-5", "claude-sonnet-4-5"},
		{"claude-3-thinking", "thinker"},
		{"claude-thinking", "claude-thinking"}, // too short for both ends of claude-*-thinking
		{"llama", "any"},
		{"video-2", "sora-2"},
		{"sora-2", "sora-2"},
		{"local/x", "vendor/local/x"},
	}
	for _, row := range rows {
		r, ok := c.Resolve(row.ask)
		if !ok {
			t.Errorf("%s: not found", row.ask)
			continue
		}
		if got := r.Plan(never)[0].Model; got != row.model {
			t.Errorf("%s goes to %s, want %s", row.ask, got, row.model)
		}
	}
	if _, ok := c.Resolve(""); ok {
		t.Error("the empty name was found")
	}
	if _, ok := build(t).Resolve("x"); ok {
		t.Error("a name was found in an empty catalogue")
	}
}

func TestPlanTriesEveryTargetOnceAndFallbacksLast(t *testing.T) {
	c := build(t, catalog.Model{
		Pattern: "m",
		Targets: []catalog.Route{
			{Provider: "a", Model: "x", Weight: 3},
			{Provider: "b", Model: "y"},
			{Provider: "c", Model: "z"},
		},
		Fallback: to("s", "w"),
	})
	r, _ := c.Resolve("m")
	rows := []struct {
		pick int
		want string
	}{{0, "xyzw"}, {2, "xyzw"}, {3, "yxzw"}, {4, "zxyw"}, {99, "xyzw"}}
	for _, row := range rows {
		asked := 0
		var got strings.Builder
		for _, candidate := range r.Plan(func(n int) int { asked = n; return row.pick }) {
			got.WriteString(candidate.Model)
		}
		if got.String() != row.want || asked != 5 {
			t.Errorf("picked %d of %d: %s, want %s of 5", row.pick, asked, got.String(), row.want)
		}
	}
}

func TestRouteOverridesModelOverridesFamily(t *testing.T) {
	yes, no := true, false
	c := build(t, catalog.Model{Pattern: "claude-3-opus", MaxOutputTokens: 100, Price: &catalog.Price{Input: 1},
		Capabilities: &catalog.CapabilityOverrides{StructuredOutputs: &yes, ImagesIn: &no, Thinking: "effort"},
		Targets: []catalog.Route{
			{Provider: "b", Model: "*"},
			{
				Provider:        "b",
				Model:           "other",
				MaxOutputTokens: 7,
				Price:           &catalog.Price{Input: 2},
				Capabilities:    &catalog.CapabilityOverrides{ImagesIn: &yes, SystemTurns: &yes},
			},
		}})
	r, _ := c.Resolve("claude-3-opus")
	plan := r.Plan(never)
	first, second := plan[0].Target(dialoguetest.Messages), plan[1].Target(dialoguetest.Messages)
	if caps := first.Caps; !caps.StructuredOutputs || caps.ImagesIn || caps.Thinking != dialogue.ThinkingEffort ||
		caps.SystemTurns ||
		first.MaxOutputTokens != 100 {
		t.Errorf("the model's overrides: %+v", first)
	}
	if caps := second.Caps; !caps.ImagesIn || !caps.SystemTurns || !caps.StructuredOutputs ||
		second.MaxOutputTokens != 7 {
		t.Errorf("the route's overrides: %+v", second)
	}
	if plan[0].Price.Input != 1 || plan[1].Price.Input != 2 {
		t.Errorf("prices: %+v %+v", plan[0].Price, plan[1].Price)
	}
}

func TestTargetNeverHasNoMaxOutputTokens(t *testing.T) {
	c := build(t, catalog.Model{Pattern: "*", Targets: to("a", "*")})
	r, _ := c.Resolve("gpt-5.1")
	got := r.Plan(never)[0].Target(dialoguetest.Messages)
	if got.MaxOutputTokens != 8192 || got.Model != "gpt-5.1" || got.Provider != "a" || got.Shape != dialoguetest.Messages {
		t.Errorf("got %+v", got)
	}
}

func TestModelsListsNamesAndNotPatterns(t *testing.T) {
	c := build(t, catalog.Model{Pattern: "z", Targets: to("a", "*")},
		catalog.Model{Pattern: "*", Targets: to("a", "*")},
		catalog.Model{Pattern: "b", Aliases: []string{"c"}, Targets: to("b", "*")})
	if got, want := c.Models(), []catalog.ModelInfo{{"z", "a"}, {"b", "b"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, mistakes := catalog.New(
		[]catalog.Provider{
			{Name: "a", Shape: "smoke", BaseURL: "ftp://x", Retries: -1, Also: []dialogue.Shape{"fog"}},
			{Name: "a", Shape: catalog.Sandbox, Limits: catalog.Limits{RPM: -1}},
			{Shape: dialoguetest.Chat, BaseURL: "http://h"},
		},
		[]catalog.Model{
			{Pattern: "", Targets: to("a", "*")},
			{Pattern: "a*b*", Targets: to("missing", "*")},
			{Pattern: "m", Aliases: []string{"m", "x*"}},
			{
				Pattern:         "n",
				MaxOutputTokens: -1,
				Price:           &catalog.Price{Input: -1},
				Capabilities:    &catalog.CapabilityOverrides{Thinking: "hard"},
				Targets:         []catalog.Route{{Provider: "a", Model: "**", Weight: -1}},
			},
		})
	all := fmt.Sprint(mistakes)
	for _, want := range []string{`shape "smoke" is unknown`, "base_url", "retries", `shape "fog"`, "given twice", "limits", "name is required", "a name or pattern is required",
		"more than one *", `provider "missing" is unknown`, "a target is required", `the name "m" is given twice`,
		`alias "x*"`, "max_output_tokens", "prices", `thinking "hard"`, "weight"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
}

func TestCapabilitiesFollowTheGeneration(t *testing.T) {
	const (
		none, budget, effort, implicit = dialogue.ThinkingNone, dialogue.ThinkingBudget, dialogue.ThinkingEffort,
			dialogue.ThinkingImplicit
	)
	rows := []struct {
		model      string
		shape      dialogue.Shape
		structured bool
		thinking   dialogue.ThinkingStyle
	}{
		{"claude-3-5-sonnet-20241022", dialoguetest.Messages, false, none},
		{"claude-3-opus-20240229", dialoguetest.Messages, false, none},
		{"claude-3-7-sonnet-latest", dialoguetest.Messages, false, budget},
		{"claude-opus-4-1-20250805", dialoguetest.Messages, false, budget},
		{"claude-opus-4-20250514", dialoguetest.Messages, false, budget},
		{"claude-sonnet-4@20250514", dialoguetest.Messages, false, budget},
		{"claude-haiku-4-5", dialoguetest.Messages, true, budget},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", dialoguetest.Messages, true, budget},
		{"anthropic/claude-3.5-sonnet", dialoguetest.Messages, false, none},
		{"claude-opus-4-6", dialoguetest.Messages, true, effort},
		{"claude-sonnet-5", dialoguetest.Messages, true, effort},
		{"claude-instant-1.2", dialoguetest.Messages, false, none},
		{"claude-next", dialoguetest.Messages, true, effort},
		{"gpt-3.5-turbo", dialoguetest.Chat, false, none},
		{"ft:gpt-3.5-turbo-0125:org::id", dialoguetest.Chat, false, none},
		{"gpt-35-turbo", dialoguetest.Chat, false, none},
		{"gpt-4o", dialoguetest.Chat, true, none},
		{"gpt-4-0613", dialoguetest.Chat, true, none},
		{"gpt-5.1", dialoguetest.Responses, true, implicit},
		{"gpt-oss-120b", dialoguetest.Chat, true, implicit},
		{"o4-mini", dialoguetest.Chat, true, implicit},
		{"gemini-1.5-pro", dialoguetest.Gemini, false, none},
		{"gemini-2.0-flash", dialoguetest.Gemini, false, none},
		{"models/gemini-2.5-flash", dialoguetest.Gemini, true, budget},
		{"gemini-3-pro-preview", dialoguetest.Gemini, true, effort},
		{"gemini-flash-latest", dialoguetest.Gemini, true, effort},
		{"llama-3.1-8b", dialoguetest.Chat, true, none},
		{"llama-3.1-8b", dialoguetest.Completions, true, none},
	}
	for _, row := range rows {
		got := catalog.CapabilitiesOf(row.model, row.shape)
		if got.StructuredOutputs != row.structured || got.Thinking != row.thinking {
			t.Errorf("%s: structured outputs %v, thinking %d; want %v, %d", row.model, got.StructuredOutputs,
				got.Thinking, row.structured, row.thinking)
		}
	}
	for model, want := range map[string]bool{
		"claude-opus-4-6": true, "claude-opus-4-7": false, "claude-sonnet-5": false, "gpt-5.1": false,
	} {
		if got := catalog.CapabilitiesOf(model, dialoguetest.Messages).Sampling; got != want {
			t.Errorf("%s takes sampling parameters: %v, want %v", model, got, want)
		}
	}
	for model, want := range map[string]bool{"gemini-2.0-flash": false, "gemini-2.5-pro": true, "gemini-3-pro": true} {
		if got := catalog.CapabilitiesOf(model, dialoguetest.Gemini).JSONSchema; got != want {
			t.Errorf("%s takes JSON Schema: %v, want %v", model, got, want)
		}
	}
}

func TestPriceOfTokens(t *testing.T) {
	usage := func(in, read, write, out, reasoning int64) dialogue.Usage {
		u := dialogue.NoUsage
		u.InputTotal, u.CacheRead, u.CacheWrite, u.OutputTotal, u.Reasoning = in, read, write, out, reasoning
		return u
	}
	full := &catalog.Price{Input: 3_000_000, Output: 15_000_000, CachedInput: 300_000, CacheWrite: 3_750_000}
	rows := []struct {
		name  string
		price *catalog.Price
		usage dialogue.Usage
		want  int64
	}{
		{"free", nil, usage(1000, -1, -1, 1000, -1), 0},
		{"plain", full, usage(1000, -1, -1, 100, -1), 3000 + 1500},
		{"cached and written tokens are part of the input", full, usage(1000, 600, 200, 0, -1), 600 + 180 + 750},
		{
			"without a price of their own they cost what input costs",
			&catalog.Price{Input: 1_000_000},
			usage(1000, 600, 200, 0, -1),
			1000,
		},
		{
			"reasoning is part of the output",
			&catalog.Price{Output: 2_000_000, Reasoning: 1_000_000},
			usage(0, -1, -1, 100, 40),
			120 + 40,
		},
		{"rounded up, once", &catalog.Price{Input: 1, Output: 1}, usage(1, -1, -1, 1, -1), 1},
		{"unknown counts", full, dialogue.NoUsage, 0},
		{
			"absurd counts saturate",
			full,
			usage(math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, 0),
			math.MaxInt64,
		},
	}
	for _, row := range rows {
		if got := row.price.Tokens(row.usage); got != row.want {
			t.Errorf("%s: got %d, want %d", row.name, got, row.want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	c := build(f, catalog.Model{Pattern: "claude-*-x", Targets: to("b", "*")},
		catalog.Model{Pattern: "*", Targets: to("a", "p/*")})
	for _, seed := range []string{"claude-3-5", "gpt-4o", "gemini-2.5", "", "*", "claude--x", "gpt-99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		catalog.CapabilitiesOf(name, dialoguetest.Messages)
		r, ok := c.Resolve(name)
		if ok != (name != "") {
			t.Fatalf("Resolve(%q): %v", name, ok)
		}
		if ok && len(r.Plan(never)) == 0 {
			t.Fatalf("the plan for %q is empty", name)
		}
	})
}

func BenchmarkSingleTarget(b *testing.B) {
	c := build(b, catalog.Model{Pattern: "gpt-5.1", Targets: to("a", "*")})
	b.ReportAllocs()
	for b.Loop() {
		r, _ := c.Resolve("gpt-5.1")
		plan := r.Plan(never)
		_ = plan[0].Target(dialoguetest.Chat)
	}
}

func BenchmarkPatternKeepsName(b *testing.B) {
	c := build(b, catalog.Model{Pattern: "claude-*", Targets: to("b", "*")})
	b.ReportAllocs()
	for b.Loop() {
		r, _ := c.Resolve("claude-sonnet-4-5")
		plan := r.Plan(never)
		_ = plan[0].Target(dialoguetest.Messages)
	}
}

func TestFirstIsInTheOrderOfTheConfiguration(t *testing.T) {
	also := provider("also", dialoguetest.Chat)
	also.Also = []dialogue.Shape{imagegen.Name}
	c, mistakes := catalog.New(
		[]catalog.Provider{provider("a", dialoguetest.Chat), also, provider("vendor", imagegen.Name)},
		nil,
	)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	if p := c.FirstServing(imagegen.Name); p == nil || p.Name != "also" {
		t.Errorf("got %v, want also", p)
	}
	if p := c.FirstServing(videos.Name); p != nil {
		t.Errorf("got %v for a shape that no provider serves", p)
	}
}

// A pattern of media models knows them by both names; a catch-all does not come
// before it.
func TestPatternsKnowMediaModelsByBothNames(t *testing.T) {
	c, errs := catalog.New(
		[]catalog.Provider{{Name: "a", Shape: catalog.Sandbox}, {Name: "b", Shape: catalog.Sandbox}},
		[]catalog.Model{
			{Pattern: "*", Targets: []catalog.Route{{Provider: "a"}}},
			{Pattern: "gen-image-*", Targets: []catalog.Route{{Provider: "b"}}},
			{Pattern: "sora-*", Targets: []catalog.Route{{Provider: "b"}}},
		},
	)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, want := range map[string]string{"gen-image-1": "b gpt-image-1", "gpt-image-1": "b gpt-image-1", "video-2": "b sora-2", "gpt-5": "a gpt-5"} {
		r, ok := c.Resolve(name)
		if !ok {
			t.Fatalf("%s is not known", name)
		}
		if got := r.Plan(func(int) int { return 0 })[0]; got.Provider.Name+" "+got.Model != want {
			t.Errorf("%s: %s %s", name, got.Provider.Name, got.Model)
		}
	}
}
