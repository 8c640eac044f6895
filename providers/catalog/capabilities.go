package catalog

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// CapabilityOverrides replaces the capabilities that the catalogue derives from a model's name.
type CapabilityOverrides struct {
	StructuredOutputs *bool
	ImagesIn          *bool
	FilesIn           *bool
	AudioIn           *bool
	SystemTurns       *bool
	Sampling          *bool
	JSONSchema        *bool
	Prefill           *bool
	Thinking          string // none, budget, effort, implicit; "" if not given
}

var thinkingStyles = map[string]dialogue.ThinkingStyle{
	"none":     dialogue.ThinkingNone,
	"budget":   dialogue.ThinkingBudget,
	"effort":   dialogue.ThinkingEffort,
	"implicit": dialogue.ThinkingImplicit,
}

func (o *CapabilityOverrides) apply(c *dialogue.Capabilities) {
	if o == nil {
		return
	}
	set := func(have *bool, override *bool) {
		if override != nil {
			*have = *override
		}
	}
	set(&c.StructuredOutputs, o.StructuredOutputs)
	set(&c.ImagesIn, o.ImagesIn)
	set(&c.FilesIn, o.FilesIn)
	set(&c.AudioIn, o.AudioIn)
	set(&c.SystemTurns, o.SystemTurns)
	set(&c.Sampling, o.Sampling)
	set(&c.JSONSchema, o.JSONSchema)
	set(&c.Prefill, o.Prefill)
	if style, ok := thinkingStyles[o.Thinking]; ok {
		c.Thinking = style
	}
}

// CapabilitiesOf returns the capabilities of a model in a shape, by the family and generation in
// its name (gateway.md 4.8 rule 7). A model of unknown family can do everything: if its upstream
// refuses, the request is degraded and sent again.
func CapabilitiesOf(model string, shape dialogue.Shape) dialogue.Capabilities {
	var c dialogue.Capabilities
	if d := registry.Describe(shape); d != nil {
		c = d.Defaults
	}
	family, v := generation(model)
	if v == 0 {
		return c
	}
	switch family {
	case claude:
		c.StructuredOutputs = v >= 405
		c.ImagesIn, c.FilesIn, c.AudioIn = v >= 300, v >= 305, false
		c.Sampling, c.Prefill = v <= 406, v < 406
		c.SystemTurns = v >= 500
	case gpt:
		c.StructuredOutputs = v >= 400
		c.ImagesIn, c.FilesIn = v >= 400, v >= 400
	case gemini:
		c.StructuredOutputs, c.JSONSchema = v >= 205, v >= 205
	}
	if c.Thinking == dialogue.ThinkingEffort { // the shape's newest style, which older models do not take
		c.Thinking = thinkingSince(family, v, c.Thinking)
	}
	return c
}

// eras has the thinking style of each family from a generation on (wire/messages.md 6,
// wire/gemini.md 2.1).
var eras = []struct {
	family
	since version
	style dialogue.ThinkingStyle
}{
	{claude, 406, dialogue.ThinkingEffort}, {claude, 307, dialogue.ThinkingBudget}, {claude, 0, dialogue.ThinkingNone},
	{gemini, 300, dialogue.ThinkingEffort}, {gemini, 205, dialogue.ThinkingBudget}, {gemini, 0, dialogue.ThinkingNone},
}

func thinkingSince(f family, v version, otherwise dialogue.ThinkingStyle) dialogue.ThinkingStyle {
	for _, era := range eras {
		if era.family == f && v >= era.since {
			return era.style
		}
	}
	return otherwise
}
