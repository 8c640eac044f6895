package catalog

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// CapabilityOverrides replaces capabilities: the built-in facts those of a shape, the configuration
// those that the built-in facts derive from a model's name. A nil pointer and "" replace nothing.
type CapabilityOverrides struct {
	StructuredOutputs *bool  `json:"structured_outputs"`
	ImagesIn          *bool  `json:"images_in"`
	FilesIn           *bool  `json:"files_in"`
	AudioIn           *bool  `json:"audio_in"`
	SystemTurns       *bool  `json:"system_turns"`
	Sampling          *bool  `json:"sampling"`
	SamplingAtRest    *bool  `json:"sampling_at_rest"`
	OneSampling       *bool  `json:"one_sampling"`
	JSONSchema        *bool  `json:"json_schema"`
	Prefill           *bool  `json:"prefill"`
	NoForcedTools     *bool  `json:"no_forced_tools"`
	AlwaysThinks      *bool  `json:"always_thinks"`
	NoBudgets         *bool  `json:"no_budgets"`
	CallSignatures    *bool  `json:"call_signatures"`
	MediaResults      *bool  `json:"media_results"`
	WebSearch         *bool  `json:"web_search"`
	NoTools           *bool  `json:"no_tools"`
	NoCacheKey        *bool  `json:"no_cache_key"`
	ContextWindow     int64  `json:"context_window"` // tokens of prompt and reply together
	MinBudget         int64  `json:"min_budget"`
	MaxBudget         int64  `json:"max_budget"`
	Levels            string `json:"levels"`
	ReasoningContent  string `json:"reasoning_content"` // taken, required, refused
	Thinking          string `json:"thinking"`          // none, budget, effort, implicit
}

var thinkingStyles = map[string]dialogue.ThinkingStyle{
	"none":     dialogue.ThinkingNone,
	"budget":   dialogue.ThinkingBudget,
	"effort":   dialogue.ThinkingEffort,
	"implicit": dialogue.ThinkingImplicit,
}

var reasoningContents = map[string]dialogue.ReasoningContent{
	"taken":    dialogue.ReasoningTaken,
	"required": dialogue.ReasoningRequired,
	"refused":  dialogue.ReasoningRefused,
}

// apply changes c to what o states.
func (o *CapabilityOverrides) apply(c *dialogue.Capabilities) {
	if o == nil {
		return
	}
	for _, flag := range []struct{ have, override *bool }{
		{&c.StructuredOutputs, o.StructuredOutputs}, {&c.ImagesIn, o.ImagesIn}, {&c.FilesIn, o.FilesIn},
		{&c.AudioIn, o.AudioIn}, {&c.SystemTurns, o.SystemTurns}, {&c.Sampling, o.Sampling},
		{&c.SamplingAtRest, o.SamplingAtRest}, {&c.OneSampling, o.OneSampling}, {&c.JSONSchema, o.JSONSchema},
		{&c.Prefill, o.Prefill},
		{&c.NoForcedTools, o.NoForcedTools}, {&c.AlwaysThinks, o.AlwaysThinks}, {&c.NoBudgets, o.NoBudgets},
		{&c.CallSignatures, o.CallSignatures}, {&c.MediaResults, o.MediaResults}, {&c.WebSearch, o.WebSearch},
		{&c.NoTools, o.NoTools}, {&c.NoCacheKey, o.NoCacheKey},
	} {
		if flag.override != nil {
			*flag.have = *flag.override
		}
	}
	if o.ContextWindow > 0 {
		c.ContextWindow = o.ContextWindow
	}
	if o.MinBudget > 0 {
		c.MinBudget = o.MinBudget
	}
	if o.MaxBudget > 0 {
		c.MaxBudget = o.MaxBudget
	}
	if o.Levels != "" {
		c.Levels = o.Levels
	}
	if v, ok := reasoningContents[o.ReasoningContent]; ok {
		c.ReasoningContent = v
	}
	if style, ok := thinkingStyles[o.Thinking]; ok {
		c.Thinking = style
	}
}

// CapabilitiesOf returns the capabilities of a model in a shape, by the family and generation in
// its name. A model of unknown family can do everything that the shape can:
// if its upstream refuses, the request is degraded and sent again.
func CapabilitiesOf(model string, shape dialogue.Shape) dialogue.Capabilities {
	var c dialogue.Capabilities
	if d := registry.Describe(shape); d != nil {
		c = d.Defaults
	}
	style := c.Thinking
	applyFacts(model, &c)
	// The facts name the style of the vendor's own shape. A shape that knows only one way to ask
	// for thinking keeps it for every model that thinks.
	if style != dialogue.ThinkingEffort && c.Thinking != dialogue.ThinkingNone {
		c.Thinking = style
	}
	return c
}
