package images

import (
	"fmt"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/modelname"
	"stagedoor/providers/picture"
)

// family has the rules for a family of models.
type family struct {
	prefix    string // of the documents' names of the models
	prompt    int    // characters
	images    int
	size      func(string) (rule string) // returns "" if the size is allowed
	qualities []string
	refuses   []string // parameters that the vendor refuses for these models
	// legacy models answer with an address by default, and with no properties of the pictures.
	legacy bool
	edits  bool
	opaque bool // no transparent background
	// moderation has the vendor's form of the error for a prompt that it refused for these models.
	moderation *dialogue.Moderation
}

// The forms of refusals by moderation. Models of unknown families keep the code of their provider.
var (
	moderationOfModern = &dialogue.Moderation{Status: 400, Type: dialogue.TypeModeration, Code: "moderation_blocked",
		Details: true}
	moderationOfLegacy = &dialogue.Moderation{Status: 400, Type: dialogue.TypeModeration,
		Code: "content_policy_violation"}
	moderationOfOthers = &dialogue.Moderation{Status: 400, Type: dialogue.TypeModeration, Details: true}
)

var (
	// modern lists the parameters that only gen-image models have, older those that only the
	// others have.
	modern = []string{
		"output_format", "output_compression", "background", "moderation", "stream", "partial_images", "input_fidelity",
	}
	older = []string{"response_format", "style"}
)

// families has the rules of all families. The first whose prefix matches applies.
var families = []family{
	{
		prefix:    "legacy-image-2",
		prompt:    1000,
		images:    10,
		size:      oneOf("256x256", "512x512", "1024x1024"),
		qualities: []string{"auto", "standard"},
		refuses:   append([]string{"style"}, modern...),
		legacy:    true,
		edits:     true,

		moderation: moderationOfLegacy,
	},
	{prefix: "legacy-image-3", prompt: 4000, images: 1, size: oneOf("1024x1024", "1792x1024", "1024x1792"),
		qualities: []string{"auto", "standard", "hd"}, refuses: modern, legacy: true, moderation: moderationOfLegacy},
	{prefix: "gen-image-1", prompt: 32000, images: 10, size: oneOf("auto", "1024x1024", "1536x1024", "1024x1536"),
		qualities: []string{"auto", "low", "medium", "high"}, refuses: older, edits: true,
		moderation: moderationOfModern},
	{prefix: "gen-image-", prompt: 32000, images: 10, size: anySize,
		qualities: []string{"auto", "low", "medium", "high"}, refuses: older, edits: true, opaque: true,
		moderation: moderationOfModern},
	// Models of unknown families: their provider checks what they take.
	{prefix: "", prompt: 32000, images: 10, size: someSize,
		qualities: []string{"auto", "low", "medium", "high", "standard", "hd"}, edits: true,
		moderation: moderationOfOthers},
}

// familyOf returns the family of a model by its name in the documents or at the vendor.
func familyOf(model string) *family {
	name := modelname.Public(model)
	i := slices.IndexFunc(families, func(f family) bool { return strings.HasPrefix(name, f.prefix) })
	return &families[i]
}

// oneOf returns the rule of a size from a list.
func oneOf(sizes ...string) func(string) string {
	return func(s string) string {
		if slices.Contains(sizes, s) {
			return ""
		}
		return "must be one of " + strings.Join(sizes, ", ") + " for this model"
	}
}

// Bounds of a free size.
const (
	edgeStep  = 16
	maxEdge   = 3840
	maxRatio  = 3
	minPixels = 655_360
	maxPixels = 8_294_400
)

// sizeForm is the rule of a size that cannot be read.
const sizeForm = "must be auto or WIDTHxHEIGHT"

// anySize is the rule of models that make every size within bounds of edges, ratio and area.
func anySize(text string) string {
	if text == "auto" {
		return ""
	}
	s, ok := picture.ParseSize(text)
	if !ok {
		return sizeForm
	}
	long, short := max(s.Width, s.Height), min(s.Width, s.Height)
	switch {
	case s.Width%edgeStep != 0 || s.Height%edgeStep != 0:
		return fmt.Sprintf("width and height must be divisible by %d", edgeStep)
	case long > maxRatio*short:
		return fmt.Sprintf("must not be longer than %d times its width, nor wider than %d times its height", maxRatio,
			maxRatio)
	case long > maxEdge:
		return fmt.Sprintf("the longer edge must not exceed %d", maxEdge)
	case s.Pixels() < minPixels || s.Pixels() > maxPixels:
		return fmt.Sprintf("must have %d to %d pixels in all", minPixels, maxPixels)
	}
	return ""
}

// someSize is the rule for models of unknown families, of which only the form of the size is
// checked.
func someSize(text string) string {
	if _, ok := picture.ParseSize(text); !ok && text != "auto" {
		return sizeForm
	}
	return ""
}
