package imagegen

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// rule is a field of a route with its rules. Rules are in the order of the documents, which is the
// order in which errors are reported.
// Rules are data and not code, because the vendor's documents are tables of fields, and a change of
// a table there is a change of one line here.
type rule struct {
	name     string
	required bool
	repeated bool
	// holds returns the rule that the value breaks, or "". It is nil for files.
	holds func(f *field) string
	// with returns the rule that the field breaks together with other fields, or "".
	with func(in *Input) string
}

// Limits of the vendor's routes and files.
const (
	maxImages     = 8
	maxSeed       = math.MaxInt32
	MaxFile       = 10 << 20 // of one file
	maxReferences = 10 << 20 // of all of a request's
)

// Fields of several routes.
var (
	prompt      = rule{name: "prompt", required: true, holds: said}
	modelV2     = rule{name: "model", holds: oneOf(models...)}
	aspectRatio = rule{name: "aspect_ratio", holds: aspect, with: apart("resolution")}
	resolutionV = rule{name: "resolution", holds: size, with: only("V_2", "V_2_TURBO")}
	negative    = rule{name: "negative_prompt", holds: text, with: only("V_1", "V_1_TURBO", "V_2", "V_2_TURBO")}
	magicOption = rule{name: "magic_prompt_option", holds: oneOf(magicPrompts...)}
	styleV2     = rule{name: "style_type", holds: oneOf(stylesV2...),
		with: only("V_2", "V_2_TURBO", "V_2A", "V_2A_TURBO")}
	numImages    = rule{name: "num_images", holds: between(1, maxImages)}
	seed         = rule{name: "seed", holds: between(0, maxSeed)}
	imageWeight  = rule{name: "image_weight", holds: between(1, 100)}
	imageFile    = rule{name: "image_file", required: true}
	maskV2       = rule{name: "mask", required: true, with: fits("image_file")}
	colorPalette = rule{name: "color_palette", holds: object}

	image        = rule{name: "image", required: true}
	maskV3       = rule{name: "mask", required: true, with: fits("image")}
	speed        = rule{name: "rendering_speed", holds: oneOf(speeds...)}
	ratioV3      = rule{name: "aspect_ratio", holds: ratio, with: apart("resolution")}
	resolutionV3 = rule{name: "resolution", holds: size}
	magic        = rule{name: "magic_prompt", holds: oneOf(magicPrompts...)}
	styleV3      = rule{name: "style_type", holds: oneOf(stylesV3...)}
	negativeV3   = rule{name: "negative_prompt", holds: text}
	styleImages  = rule{name: "style_reference_images", repeated: true, with: references}
	styleCodes   = rule{name: "style_codes", repeated: true, holds: codes,
		with: apart("style_reference_images", "style_type")}
	stylePreset   = rule{name: "style_preset", holds: said}
	customModel   = rule{name: "custom_model_uri", holds: said}
	characters    = rule{name: "character_reference_images", repeated: true}
	characterMask = rule{name: "character_reference_images_mask", repeated: true}
)

// The fields of each route: first those of the documents, then those that only the vendor has.
var (
	generateV2 = []rule{
		prompt, aspectRatio, resolutionV, modelV2, magicOption, seed, styleV2, negative, numImages, colorPalette,
	}
	editV2 = []rule{
		imageFile, maskV2, prompt, {name: "model", required: true, holds: oneOf(editModels...)}, magicOption,
		numImages, seed, styleV2,
	}
	remixV2 = []rule{
		prompt, aspectRatio, imageWeight, modelV2, negative, magicOption, numImages, resolutionV, seed, styleV2,
		colorPalette, imageFile,
	}
	reframeV2 = []rule{
		imageFile, {name: "resolution", required: true, holds: size},
		{name: "model", required: true, holds: oneOf(models...)}, numImages, seed, styleV2,
	}
	describe = []rule{imageFile, {name: "describe_model_version", holds: oneOf(describeModels...)}}
	upscale  = []rule{
		{name: "prompt", holds: text}, {name: "resemblance", holds: between(1, 100)},
		{name: "detail", holds: between(1, 100)}, magicOption,
		{name: "magic_prompt_version", holds: oneOf(magicVersions...)}, numImages, seed, imageFile,
	}

	generateV3 = []rule{prompt, speed, numImages, ratioV3, magic, styleV3, negativeV3, seed, styleImages,
		resolutionV3, colorPalette, styleCodes, stylePreset, customModel, characters, characterMask}
	remixV3 = []rule{
		prompt, image, imageWeight, speed, numImages, ratioV3, styleImages, seed, magic, styleV3, negativeV3,
		resolutionV3, colorPalette, styleCodes, stylePreset, customModel, characters, characterMask,
	}
	editV3 = []rule{prompt, image, maskV3, speed, numImages, ratioV3, seed, magic, styleV3, negativeV3,
		styleImages, colorPalette, styleCodes, stylePreset, customModel, characters, characterMask}
	replaceBackgroundV3 = []rule{
		prompt, image, speed, numImages, styleImages, seed, magic, styleV3, colorPalette, styleCodes, stylePreset,
	}
	reframeV3 = []rule{
		image, {name: "resolution", required: true, holds: size}, numImages, seed, speed, stylePreset,
		colorPalette, styleCodes, styleImages,
	}
)

// Check returns the first broken rule, in the order of the documents.
func (r *Route) Check(in *Input) error {
	for i := range r.rules {
		rule := &r.rules[i]
		if err := rule.check(in, r.param(rule.name)); err != nil {
			return err
		}
	}
	return nil
}

// check returns the error for a field that breaks its rule. param is the name of the field in the
// error.
func (u *rule) check(in *Input, param string) error {
	n := in.count(u.name)
	switch {
	case n == 0 && u.required:
		return dialogue.Missing(param)
	case n == 0:
		return nil
	case n > 1 && !u.repeated:
		return dialogue.Invalid(param, once)
	case u.holds == nil && len(in.file(u.name)) < n:
		return dialogue.Invalid(param, "must be a file, in a multipart/form-data body")
	}
	for i := range in.fields {
		if f := &in.fields[i]; f.name == u.name {
			if broken := u.holds(f); broken != "" {
				return dialogue.Invalid(param, broken)
			}
		}
	}
	if u.with == nil {
		return nil
	}
	switch broken := u.with(in); broken {
	case "":
		return nil
	case tooLarge:
		return dialogue.FilesTooLarge(param, maxReferences)
	default:
		return dialogue.Invalid(param, broken)
	}
}

// Rules of single values. Each returns the rule that the value breaks, or "".

// said is the rule of a text that is not blank.
func said(f *field) string {
	s, ok := f.string()
	switch {
	case !ok:
		return "must be a string"
	case strings.TrimSpace(s) == "":
		return "must not be empty"
	}
	return ""
}

// text is the rule of a text, which may be empty.
func text(f *field) string {
	if _, ok := f.string(); !ok {
		return "must be a string"
	}
	return ""
}

// oneOf returns the rule of a text from a closed list.
func oneOf(words ...string) func(f *field) string {
	broken := "must be one of " + strings.Join(words, ", ")
	return func(f *field) string {
		if s, ok := f.string(); ok && slices.Contains(words, s) {
			return ""
		}
		return broken
	}
}

// between returns the rule of a whole number within bounds, both included.
func between(lo, hi int64) func(f *field) string {
	broken := fmt.Sprintf("must be an integer between %d and %d", lo, hi)
	return func(f *field) string {
		if n, ok := f.whole(); ok && n >= lo && n <= hi {
			return ""
		}
		return broken
	}
}

// aspectWords is the rule of an aspect ratio of the first two generations, with all words that are
// accepted.
var aspectWords = func() string {
	var words []string
	for _, a := range aspectsV2 {
		words = append(words, "ASPECT_"+strings.Replace(a, "x", "_", 1))
	}
	return "must be one of " + strings.Join(append(words, misspelt), ", ")
}()

// aspect is the rule of an aspect ratio of the first two generations.
func aspect(f *field) string {
	if s, ok := f.string(); ok {
		if _, ok := aspectV2(s); ok {
			return ""
		}
	}
	return aspectWords
}

// ratio is the rule of an aspect ratio of the third generation.
func ratio(f *field) string {
	if s, ok := f.string(); ok {
		if _, ok := aspectV3(s); ok {
			return ""
		}
	}
	return "must be one of " + strings.Join(aspectsV3, ", ")
}

// size is the rule of a resolution. The vendor checks which resolutions a model makes.
func size(f *field) string {
	if s, ok := f.string(); ok {
		if _, ok := resolution(s); ok {
			return ""
		}
	}
	return fmt.Sprintf("must be WIDTHxHEIGHT, each between %d and %d, for example 1024x1024", leastEdge, mostEdge)
}

// object is the rule of a JSON object without misspelled names.
func object(f *field) string {
	v, ok := f.json()
	if !ok || !v.IsObject() {
		return "must be a JSON object"
	}
	if fault := fields.ExplainNames([]byte(v.Raw), MemberNames); fault.Flaw == fields.MisspelledName {
		return fmt.Sprintf("must be a JSON object in which %q is written %q", fault.Path, fault.Name)
	}
	return ""
}

// codes checks one style code or an array of them. A form may repeat the field.
func codes(f *field) string {
	all := []gjson.Result{f.value}
	if v, ok := f.json(); ok && v.IsArray() {
		all = v.Array()
	}
	for _, c := range all {
		if c.Type != gjson.String || !isCode(c.Str) {
			return "must be style codes of 8 hexadecimal digits"
		}
	}
	return ""
}

// isCode reports whether s is a style code, 8 hexadecimal digits.
func isCode(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return len(s) == 8
}

// Rules between fields.

// apart returns the rule that a field must not be given together with others.
func apart(others ...string) func(in *Input) string {
	return func(in *Input) string {
		for _, other := range others {
			if in.has(other) {
				return "cannot be combined with " + other
			}
		}
		return ""
	}
}

// only returns the rule that a field is for some models. An unknown model is reported by the rule
// of its own field.
// A model that is not given is the vendor's default, which takes the field or says better why it
// does not.
func only(these ...string) func(in *Input) string {
	broken := "is only for the models " + strings.Join(these, ", ")
	return func(in *Input) string {
		model := in.word("model")
		if model == "" || slices.Contains(these, model) || !slices.Contains(models, model) {
			return ""
		}
		return broken
	}
}

// fits returns the rule that a mask has the dimensions of its picture.
func fits(image string) func(in *Input) string {
	return func(in *Input) string {
		of, mask := in.file(image), in.file("mask")
		if len(of) == 0 || len(mask) == 0 || of[0].Dimensions() == mask[0].Dimensions() {
			return ""
		}
		return fmt.Sprintf("must have the dimensions of the image, %s, and has %s", of[0].Dimensions(),
			mask[0].Dimensions())
	}
}

// tooLarge is the result of references for files that are too large. Its status is 413.
const tooLarge = "too large"

// references checks that all references together are not larger than one file may be.
func references(in *Input) string {
	var all int64
	for _, f := range in.file("style_reference_images") {
		all += f.Size
	}
	if all > maxReferences {
		return tooLarge
	}
	return ""
}
