package picture

import (
	"math"

	"stagedoor/providers/dialogue"
)

// The functions in this file are for models that make pictures in a conversation. Such models
// take a prompt and pictures to work on, and few parameters.

// CheckConversational returns an error if r asks for an operation or has a parameter that such models do not take and
// that cannot be left out without a different picture. LoseUnsupported records the other parameters.
func CheckConversational(r *Request) error {
	switch {
	case r.Operation == Describe, r.Operation == Upscale:
		return dialogue.Unsupported("model", "the provider of this model cannot "+string(r.Operation)+" pictures")
	case r.Mask != nil:
		return dialogue.Unsupported("mask",
			"the provider of this model knows no masks: say in the prompt what to change")
	case r.Background == "transparent":
		return dialogue.Unsupported("background", "the provider of this model makes no transparent background")
	}
	return nil
}

// ConversationPrompt returns the prompt, to which it adds in words what such models have no parameters for: the
// operation and the negative prompt.
func ConversationPrompt(r *Request) string {
	text := r.Prompt
	switch r.Operation {
	case ReplaceBackground:
		text = "Keep the subject as it is and replace the background: " + text
	case Reframe:
		text = "Extend the picture beyond its edges to fill the frame. " + text
	}
	if r.NegativePrompt != "" {
		text += "\nAvoid: " + r.NegativePrompt
	}
	return text
}

// ratios lists the aspect ratios that such models make.
var ratios = []Aspect{
	{Width: 1, Height: 1},
	{Width: 2, Height: 3},
	{Width: 3, Height: 2},
	{Width: 3, Height: 4},
	{Width: 4, Height: 3},
	{
		Width:  4,
		Height: 5,
	},
	{Width: 5, Height: 4},
	{Width: 9, Height: 16},
	{Width: 16, Height: 9},
	{Width: 21, Height: 9},
}

// NearestRatio returns the ratio, as in "16:9", that is nearest to the size or aspect of r, or
// "" if r has neither. It records a loss if the ratio differs by more than 2 %.
func NearestRatio(r *Request, rep *dialogue.Report) string {
	want := r.Aspect
	if r.Size != (Size{}) {
		want = Aspect(r.Size)
	}
	if want == (Aspect{}) {
		return ""
	}
	best := ratios[0]
	for _, a := range ratios[1:] {
		if ratioFactor(a, want) < ratioFactor(best, want) {
			best = a
		}
	}
	rep.LoseIf(ratioFactor(best, want) > 1.02, "size:nearest")
	return best.Ratio()
}

// ratioFactor returns the factor, at least 1, by which two ratios differ.
func ratioFactor(a, b Aspect) float64 {
	d := float64(a.Width) * float64(b.Height) / (float64(a.Height) * float64(b.Width))
	return math.Max(d, 1/d)
}

// LoseUnsupported records the parameters of r that such models do not take and that are left out.
func LoseUnsupported(r *Request, rep *dialogue.Report) {
	for _, l := range []struct {
		name string
		lost bool
	}{
		{"quality", r.Quality != "" && r.Quality != "auto"}, {"output_format", r.OutputFormat != "" && r.OutputFormat != "png"},
		{"output_compression", r.Compression != nil}, {"background", r.Background == "opaque"}, {"moderation", r.Moderation == "low"},
		{"style", r.Style != ""}, {"input_fidelity", r.Fidelity != ""}, {"style_type", r.StyleType != "" && r.StyleType != "AUTO"},
		{"rendering_speed", r.RenderingSpeed != "" && r.RenderingSpeed != "DEFAULT"}, {"magic_prompt", r.MagicPrompt == "OFF"},
		{"image_weight", r.ImageWeight != nil}, {"partial_images", r.Partials > 0}, {"user", r.User != ""},
		{"negative_prompt:prompt", r.NegativePrompt != ""},
	} {
		if l.lost {
			rep.Lose(l.name)
		}
	}
	for _, f := range r.Extra {
		rep.Lose(f.Name)
	}
	for _, a := range r.Others {
		rep.Lose(a.Name)
	}
}
