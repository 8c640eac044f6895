package catalog

import (
	"strings"

	"stagedoor/providers/dialogue"
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
	c := dialogue.Capabilities{
		StructuredOutputs: true,
		Thinking:          thinkingOf(shape),
		ImagesIn:          true,
		FilesIn:           true,
		AudioIn:           true,
		JSONSchema:        shape == dialogue.Gemini,
		Sampling:          true,
		Prefill:           true,
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
	case gpt:
		c.StructuredOutputs = v >= 400
		c.ImagesIn, c.FilesIn = v >= 400, v >= 400
	case gemini:
		c.StructuredOutputs, c.JSONSchema = v >= 205, v >= 205
	}
	if shape == dialogue.Messages || shape == dialogue.Gemini {
		c.Thinking = thinkingSince(family, v, c.Thinking)
	}
	return c
}

// thinkingOf returns the thinking style of a model of unknown family.
func thinkingOf(shape dialogue.Shape) dialogue.ThinkingStyle {
	switch shape {
	case dialogue.Completions:
		return dialogue.ThinkingNone
	case dialogue.Messages, dialogue.Gemini:
		return dialogue.ThinkingEffort
	}
	return dialogue.ThinkingImplicit
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

// PublicName returns the documents' name of a media model from its vendor's name (decisions.md,
// names). It returns other names unchanged.
func PublicName(model string) string { return replaceFamily(model, 1, 0) }

// VendorName returns the vendor's name of a media model from the documents' name. It returns
// other names unchanged.
func VendorName(model string) string { return replaceFamily(model, 0, 1) }

var mediaFamilies = [][2]string{{"video-", "sora-"}, {"gen-image-", "gpt-image-"}, {"legacy-image-", "dall-e-"}}

func replaceFamily(model string, from, to int) string {
	for _, names := range mediaFamilies {
		if rest, ok := strings.CutPrefix(model, names[from]); ok {
			return names[to] + rest
		}
	}
	return model
}
