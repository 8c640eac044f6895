package dialogue_test

import (
	"encoding/json"
	"testing"

	"stagedoor/providers/dialogue"
)

// What a model refuses in every shape is removed and reported; a parameter with its default is no
// loss, and the client's own request stays as it is.
func TestFitRemovesWhatTheModelRefuses(t *testing.T) {
	three := int64(3)
	named := &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"f"}}
	allowed := &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"f"}, Required: true}
	free := dialogue.Capabilities{Sampling: true, NoForcedTools: true}
	for _, c := range []struct {
		name        string
		caps        dialogue.Capabilities
		temperature string
		choice      *dialogue.ToolChoice
		want        string // temperature, top_p, mode
		losses      string
	}{
		{"nothing", dialogue.Capabilities{Sampling: true}, "0.5", named, "0.5 0.9 named", ""},
		{"sampling", dialogue.Capabilities{}, "0.5", named, "  named", "temperature,top_p,presence_penalty,top_k"},
		{"sampling, but the default", dialogue.Capabilities{}, "1.0", nil, "  ", "top_p,presence_penalty,top_k"},
		{"none of them at rest", dialogue.Capabilities{SamplingAtRest: true}, "0.5", nil, "0.5 0.9 ", ""},
		{"two of them", dialogue.Capabilities{Sampling: true, OneSampling: true}, "0.5", nil, "0.5  ", "top_p"},
		{"one of them", dialogue.Capabilities{Sampling: true, OneSampling: true}, "", nil, " 0.9 ", ""},
		{"a forced tool", free, "", named, " 0.9 auto", "tool_choice:forced"},
		{"forced tools", free, "", allowed, " 0.9 allowed", "tool_choice:forced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := new(dialogue.Report)
			req := dialogue.Request{Temperature: json.Number(c.temperature), TopP: "0.9", PresencePenalty: "2",
				TopK: &three, ToolChoice: c.choice}
			req.Fit(dialogue.Target{Caps: c.caps}, rep)
			got := string(req.Temperature) + " " + string(req.TopP) + " "
			if req.ToolChoice != nil {
				got += string(req.ToolChoice.Mode)
			}
			if got != c.want || rep.Header() != c.losses || c.caps.NoForcedTools && req.ToolChoice.Required {
				t.Errorf("got %q, losses %q; want %q, %q", got, rep.Header(), c.want, c.losses)
			}
			if named.Mode != dialogue.ToolNamed || !allowed.Required {
				t.Error("the client's own choice was changed")
			}
		})
	}
}

// A parameter with its default is accepted by models that refuse any other value.
func TestCapabilitiesNameTheMembersThatAModelRefuses(t *testing.T) {
	neither := dialogue.Capabilities{NoCacheKey: true}
	both := dialogue.Capabilities{Sampling: true, Thinking: dialogue.ThinkingImplicit}
	for _, c := range []struct {
		name, value string
		refused     bool
	}{
		{"temperature", "0.5", true}, {"temperature", "1.0", false}, {"top_p", "1", false}, {"top_p", "0", true},
		{"presence_penalty", "0", false}, {"frequency_penalty", "1", true}, {"reasoning_effort", `"low"`, true},
		{"prompt_cache_key", `"k"`, true}, {"prompt_cache_retention", `"24h"`, true},
		{"prompt_cache_options", `{}`, true},
		{"reasoning", `{}`, true}, {"seed", "1", false}, {"temperature", "null", false},
		{"top_k", "3", true}, {"top_k", "null", false},
	} {
		got := neither.Refuses(c.name, []byte(c.value), "")
		if got != c.refused || both.Refuses(c.name, []byte(c.value), "") {
			t.Errorf("%s of %s: %t", c.name, c.value, got)
		}
	}
	atRest := dialogue.Capabilities{SamplingAtRest: true, Thinking: dialogue.ThinkingImplicit}
	for effort, refused := range map[string]bool{"": false, "none": false, "low": true} {
		if got := atRest.Refuses("temperature", []byte("0.5"), effort); got != refused {
			t.Errorf("temperature with effort %q: %t", effort, got)
		}
	}
}
