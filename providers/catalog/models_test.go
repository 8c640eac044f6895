package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes/registry"
)

// statedModel is a text model of the list, with what its sources state of it.
type statedModel struct {
	provider, id string
	in, caps     []string
}

func (m *statedModel) states(what string) bool { return slices.Contains(m.caps, what) }

func statedModels(t *testing.T) (out []statedModel) {
	t.Helper()
	for _, m := range catalog.Builtin().Models() {
		for _, id := range append([]string{m.ID}, m.Aliases...) {
			if m.Kind == "text" {
				out = append(out, statedModel{m.Vendor, id, m.In, m.Caps})
			}
		}
	}
	if len(out) < 60 {
		t.Fatalf("only %d models were read", len(out))
	}
	return out
}

func TestOnlyModelsThatSearchAreAskedToSearch(t *testing.T) {
	for model, want := range map[string]bool{"gpt-4o-search-preview": true, "gpt-5-search-api": true, "sonar-pro": true,
		"gpt-4o": false, "gpt-5.4": false, "some-model": false} {
		if got := catalog.CapabilitiesOf(model, dialoguetest.Chat).WebSearch; got != want {
			t.Errorf("%s: got %v, want %v", model, got, want)
		}
	}
}

func TestModelsThatRefuseACacheKeyOrToolsAreKnown(t *testing.T) {
	for model, want := range map[string][2]bool{"mistral-large-4": {true, false}, "codestral-2": {true, false},
		"gemini-3.1-pro-preview": {true, false}, "sonar-pro": {false, true}, "gpt-4.1": {}, "some-model": {}} {
		got := catalog.CapabilitiesOf(model, dialoguetest.Chat)
		if got.NoCacheKey != want[0] || got.NoTools != want[1] {
			t.Errorf("%s: no cache key %t, no tools %t", model, got.NoCacheKey, got.NoTools)
		}
		if !catalog.CapabilitiesOf(model, dialoguetest.Completions).NoTools {
			t.Errorf("%s calls tools in a shape without tools", model)
		}
	}
}

// Every model that the vendors' pages describe gets, in every shape, a request that it accepts: what
// it refuses is left out and reported.
func TestEveryModelGetsWhatItAcceptsInEveryShape(t *testing.T) {
	for _, m := range statedModels(t) {
		for _, shape := range registry.All {
			t.Run(m.id+"/"+string(shape.Name), func(t *testing.T) {
				target := dialogue.Target{Shape: shape.Name, Model: m.id, MaxOutputTokens: 8192,
					Caps: catalog.CapabilitiesOf(m.id, shape.Name)}
				if m.states("json_schema") && !target.Caps.StructuredOutputs {
					t.Error("it lacks structured outputs")
				}
				if slices.Contains(m.in, "image") && !target.Caps.ImagesIn ||
					slices.Contains(m.in, "pdf") && !target.Caps.FilesIn {
					t.Error("it lacks pictures or documents")
				}
				if m.states("reasoning") && target.Caps.Thinking == dialogue.ThinkingNone &&
					shape.Name != dialoguetest.Completions {
					t.Error("it does not think")
				}
				rep := new(dialogue.Report)
				req := forcing()
				req.Fit(target, rep)
				call, err := shape.Encode(req, target, rep, dialoguetest.NewEnv(0, "id"))
				if shape.Name == dialoguetest.Completions && err != nil {
					return // it has no tools
				}
				if err != nil {
					t.Fatal(err)
				}
				body := gjson.ParseBytes(call.Body)
				checkSampling(t, &m, body, rep)
				checkChoice(t, &m, body, rep)
				if kind := body.Get("thinking.type").Str; kind == "disabled" && m.states("no_forced_tools") {
					t.Error("thinking, which cannot be switched off, is switched off")
				}
			})
		}
	}
}

// forcing returns a request that asks for what newer models refuse.
func forcing() *dialogue.Request {
	no, k := false, int64(5)
	return &dialogue.Request{
		Inbound: "other", Temperature: "0.5", TopP: "0.9", TopK: &k, Parallel: &no,
		Turns:      []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Text: "q"}}}},
		Tools:      []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: "f"}},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired},
		Reasoning:  dialogue.Reasoning{Disabled: true},
	}
}

func checkSampling(t *testing.T, m *statedModel, body gjson.Result, rep *dialogue.Report) {
	t.Helper()
	given := 0
	for _, path := range []string{"temperature", "top_p", "generationConfig.temperature", "generationConfig.topP"} {
		if body.Get(path).Exists() {
			given++
		}
	}
	reported := slices.Contains(rep.Losses(), "temperature")
	// forcing switches reasoning off, and then OpenAI's models from 5.1 on take the parameters.
	rests := m.provider == "openai" && strings.HasPrefix(m.id, "gpt-5.")
	if rests && (given == 0 || reported) {
		t.Errorf("a model that does not reason gets no parameter of sampling, losses %q", rep.Header())
	}
	if refuses := m.states("no_temperature"); refuses && !rests && (given > 0 || !reported) {
		t.Errorf("%d parameters of sampling are sent, losses %q", given, rep.Header())
	}
	if m.provider != "openai" && !m.states("no_temperature") && given == 0 {
		t.Errorf("no parameter of sampling is sent, losses %q", rep.Header())
	}
}

func checkChoice(t *testing.T, m *statedModel, body gjson.Result, rep *dialogue.Report) {
	t.Helper()
	config := body.Get("toolConfig.functionCallingConfig.mode").Str
	choice := body.Get("tool_choice")
	forced := choice.Str == "required" || choice.Get("type").Str == "any" || config == "ANY"
	reported := slices.Contains(rep.Losses(), "tool_choice:forced")
	if refuses := m.states("no_forced_tools"); forced == refuses || reported != refuses {
		t.Errorf("a forced choice is %s%s, losses %q", choice.Raw, config, rep.Header())
	}
}

// A model that is newer than the catalogue is treated as its latest relative; one of an unknown
// family can do what its shape can.
func TestUnknownModelsHaveSensibleCapabilities(t *testing.T) {
	newer := catalog.CapabilitiesOf("claude-opus-9", dialoguetest.Messages)
	if newer != catalog.CapabilitiesOf("claude-opus-5-5", dialoguetest.Messages) || !newer.NoForcedTools {
		t.Errorf("claude-opus-9: %+v", newer)
	}
	for _, shape := range registry.All {
		for _, name := range []string{"", "own-model", "o30", "exclaude-3", "gptish"} {
			if got := catalog.CapabilitiesOf(name, shape.Name); got != shape.Defaults {
				t.Errorf("%s in %s: %+v", name, shape.Name, got)
			}
		}
	}
}

func TestOnlyModelsThatRestByDefaultAreAskedNotToThink(t *testing.T) {
	for model, want := range map[string]string{"gpt-5.1": "none", "gpt-5.4-mini": "none", "gpt-5": "", "o3": "",
		"gpt-5.1-codex": "", "gpt-5.2-pro": "", "some-model": ""} {
		caps := catalog.CapabilitiesOf(model, dialoguetest.Responses)
		if got := caps.EffortOff(); got != want {
			t.Errorf("%s: got %q, want %q", model, got, want)
		}
	}
}
