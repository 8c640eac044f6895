package catalog_test

import (
	"slices"
	"testing"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes/registry"
)

// planOf returns a plan of one target and its fallbacks, at a provider of shape chat.
func planOf(t *testing.T, routes ...catalog.Route) []catalog.Candidate {
	t.Helper()
	for i := range routes {
		routes[i].Provider = "p"
	}
	c, mistakes := catalog.New([]catalog.Provider{{Name: "p", Shape: dialoguetest.Chat, BaseURL: "http://p.test"}},
		[]catalog.Model{{Pattern: "m", Targets: routes[:1], Fallback: routes[1:]}})
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	r, _ := c.Resolve("m")
	return r.Plan(nil)
}

func window(model string, tokens int64) catalog.Route {
	return catalog.Route{Model: model, Capabilities: &catalog.CapabilityOverrides{ContextWindow: tokens}}
}

func blind(model string) catalog.Route {
	no := false
	return catalog.Route{Model: model, Capabilities: &catalog.CapabilityOverrides{ImagesIn: &no}}
}

func toolless(model string) catalog.Route {
	yes := true
	return catalog.Route{Model: model, Capabilities: &catalog.CapabilityOverrides{NoTools: &yes}}
}

func on(r catalog.Route, conditions ...string) catalog.Route {
	r.On = catalog.ParseConditions(conditions)
	return r
}

func TestSelectLeavesOutTargetsThatCannotServe(t *testing.T) {
	type routes = []catalog.Route
	small, large := window("small", 1000), window("large", 5000)
	unknown := catalog.Route{Model: "unknown"}
	for name, test := range map[string]struct {
		plan    routes
		need    catalog.Need
		want    []string
		skipped []string
		largest int64
	}{
		"tools go to a model that calls them": {plan: routes{toolless("mute"), unknown},
			need: catalog.Need{Tools: true}, want: []string{"unknown"}, skipped: []string{"mute"}},
		"first to the entry for this reason": {plan: routes{toolless("mute"), on(small, "overloaded"),
			on(large, "unsupported")}, need: catalog.Need{Tools: true},
			want: []string{"large"}, skipped: []string{"mute"}},
		"no model calls tools": {plan: routes{toolless("mute")}, need: catalog.Need{Tools: true},
			want: []string{"mute"}},
		"no tools are needed": {plan: routes{toolless("mute"), unknown}, want: []string{"mute", "unknown"}},
		"what fits is not touched": {plan: routes{small, large}, need: catalog.Need{Input: 900, Output: 100},
			want: []string{"small", "large"}},
		"prompt and reply count together": {plan: routes{small, large}, need: catalog.Need{Input: 900, Output: 101},
			want: []string{"large"}, skipped: []string{"small"}},
		"a target without a known window stays": {plan: routes{small, unknown}, need: catalog.Need{Input: 9_000_000},
			want: []string{"unknown"}, skipped: []string{"small"}},
		"none is left": {plan: routes{small, large}, need: catalog.Need{Input: 5001},
			skipped: []string{"small", "large"}, largest: 5000},
		"a prompt that may be shortened is sent": {plan: routes{small, large},
			need: catalog.Need{Input: 5001, Shortens: true}, want: []string{"small", "large"}},
		"a prompt that may be shortened prefers room": {plan: routes{small, large},
			need: catalog.Need{Input: 2000, Shortens: true}, want: []string{"large"}, skipped: []string{"small"}},
		"an entry for this reason comes first": {plan: routes{small, on(large, "context_length_exceeded")},
			need: catalog.Need{Input: 2000}, want: []string{"large"}, skipped: []string{"small"}},
		"an entry for other reasons does not": {plan: routes{small, on(large, "overloaded")},
			need: catalog.Need{Input: 2000}, skipped: []string{"small"}, largest: 1000},
		"it may follow a target that fits": {plan: routes{small, large, on(unknown, "overloaded")},
			need: catalog.Need{Input: 2000}, want: []string{"large", "unknown"}, skipped: []string{"small"}},
		"a built-in window refuses no reply that may be cut": {plan: routes{{Model: "gpt-4o"}},
			need: catalog.Need{Input: 120_000, Output: 16_384}, want: []string{"gpt-4o"}, skipped: []string{}},
		"but a prompt that is too long": {plan: routes{{Model: "gpt-4o"}}, need: catalog.Need{Input: 130_000},
			skipped: []string{"gpt-4o"}, largest: 128_000},
		"and chooses between targets": {plan: routes{{Model: "gpt-4o"}, {Model: "gpt-4.1"}},
			need: catalog.Need{Input: 120_000, Output: 16_384}, want: []string{"gpt-4.1"}, skipped: []string{"gpt-4o"}},
		"pictures go where they are read": {plan: routes{blind("a"), unknown}, need: catalog.Need{Images: true},
			want: []string{"unknown"}, skipped: []string{"a"}},
		"text does not need that": {plan: routes{blind("a"), unknown}, need: catalog.Need{Audio: true},
			want: []string{"a", "unknown"}},
		"an entry for unsupported media": {plan: routes{blind("a"), on(unknown, "unsupported")},
			need: catalog.Need{Images: true}, want: []string{"unknown"}, skipped: []string{"a"}},
		"if none reads them all are kept": {plan: routes{blind("a"), blind("b")}, need: catalog.Need{Images: true},
			want: []string{"a", "b"}},
		"media and windows together": {plan: routes{blind("a"), small, on(large, "context_length_exceeded")},
			need: catalog.Need{Input: 2000, Images: true}, want: []string{"large"}, skipped: []string{"a", "small"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, test.plan...)
			before := slices.Clone(plan)
			got := catalog.Select(plan, test.need)
			names := []string{}
			for _, c := range got.Plan {
				names = append(names, c.Model)
			}
			skipped := []string{}
			for _, c := range got.Skipped {
				skipped = append(skipped, c.Model)
			}
			if !slices.Equal(names, test.want) || !slices.Equal(skipped, test.skipped) || got.Largest != test.largest {
				t.Errorf("got %v, without %v, largest %d; want %v, %v, %d",
					names, skipped, got.Largest, test.want, test.skipped, test.largest)
			}
			if !slices.EqualFunc(plan, before, func(a, b catalog.Candidate) bool { return a.Model == b.Model }) {
				t.Error("the plan itself was changed")
			}
		})
	}
}

// A simulator takes prompts of any length, whatever model it plays.
func TestTheSandboxHasNoBuiltInWindow(t *testing.T) {
	c, _ := catalog.New([]catalog.Provider{{Name: "s", Shape: catalog.Sandbox}},
		[]catalog.Model{{Pattern: "gpt-4o", Targets: []catalog.Route{{Provider: "s"}}}})
	r, _ := c.Resolve("gpt-4o")
	if plan := r.Plan(nil); !plan[0].Fits(1 << 40) {
		t.Error("it has")
	}
}

// Built-in windows are those of the vendors' pages or more, because a smaller one would keep requests from a model that
// takes them. Fits relies on none of them being tiny.
func TestBuiltInContextWindowsAreNotSmallerThanTheVendorsSay(t *testing.T) {
	for model, tokens := range map[string]int64{
		"claude-haiku-4-5": 200_000, "claude-sonnet-4-5-20250929": 1_000_000, "claude-sonnet-4-6": 1_000_000,
		"claude-opus-4-8": 1_000_000, "anthropic.claude-opus-5-5": 1_000_000, "claude-3-5-sonnet-20241022": 200_000,
		"gpt-6.1-sol": 1_050_000, "gpt-5.4-mini": 400_000, "gpt-5": 400_000, "gpt-4.1-mini": 1_047_576,
		"gpt-4o-2024-08-06": 128_000, "gpt-35-turbo": 16_385, "o3": 200_000, "o4-mini": 200_000,
		"gemini-1.5-pro": 2_097_152, "gemini-2.5-flash": 1_048_576, "gemini-3.1-pro-preview": 1_048_576,
		"deepseek-v4-pro": 1_000_000, "qwen3-coder-plus": 0, "gpt-oss-120b": 0, "llama3": 0, "a-new-model": 0,
	} {
		for _, shape := range registry.All {
			got := catalog.CapabilitiesOf(model, shape.Name).ContextWindow
			if got < tokens || tokens == 0 && got != 0 {
				t.Errorf("%s in %s: %d, want %d", model, shape.Name, got, tokens)
			}
			plan := planOf(t, catalog.Route{Model: model})
			if tokens > 0 && (!plan[0].Fits(tokens) || plan[0].Fits(got+1)) {
				t.Errorf("%s: does not fit what it takes, or fits more", model)
			}
		}
	}
}

func TestTheMediaOfARequestAreFound(t *testing.T) {
	media := func(kind dialogue.MediaKind, text string) dialogue.Part {
		return dialogue.Part{Kind: dialogue.MediaPart, Media: &dialogue.Media{Kind: kind, Text: text}}
	}
	for name, test := range map[string]struct {
		part dialogue.Part
		want catalog.Need
	}{
		"picture":       {media(dialogue.Image, ""), catalog.Need{Images: true}},
		"sound":         {media(dialogue.Audio, ""), catalog.Need{Audio: true}},
		"document":      {media(dialogue.File, ""), catalog.Need{Files: true}},
		"text document": {media(dialogue.File, "words"), catalog.Need{}},
		"in a result": {dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{
			Parts: []dialogue.Part{media(dialogue.Image, "")}}}, catalog.Need{Images: true}},
		"text": {dialogue.Part{Kind: dialogue.TextPart, Text: "hi"}, catalog.Need{}},
	} {
		var n catalog.Need
		n.AddRequest(&dialogue.Request{Turns: []dialogue.Turn{{Parts: []dialogue.Part{test.part}}}})
		if n != test.want {
			t.Errorf("%s: got %+v", name, n)
		}
	}
}

func TestConditionsHaveNames(t *testing.T) {
	for _, name := range catalog.ConditionNames() {
		set := catalog.ParseConditions([]string{name, "unknown"})
		if set.String() != name {
			t.Errorf("%s: got %q", name, set)
		}
	}
	if n := len(catalog.ConditionNames()); catalog.OnCredential != 1<<(n-1) {
		t.Errorf("%d names do not fit the constants", n)
	}
}
