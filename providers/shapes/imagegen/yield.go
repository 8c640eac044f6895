package imagegen

import (
	"net/http"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

var _ picture.Simplifier = shape{}

// Yield implements picture.Simplifier: the documents list fields of the third
// generation that the vendor's own routes do not (wire/imagegen.md 5). A refusal
// that names another field is not about them; the vendor's names none.
func (shape) Simplify(r *picture.Request, model string, refused *dialogue.Error) (*picture.Request, []string) {
	if !isV3(model) || refused.Status != http.StatusBadRequest {
		return nil, nil
	}
	less := *r
	var lost []string
	give := func(name string, given bool) {
		if given {
			lost = append(lost, name)
		}
	}
	switch r.Operation {
	case picture.Edit:
		give("aspect_ratio", r.Aspect != picture.Aspect{})
		give("size", r.Size != picture.Size{})
		give("negative_prompt", r.NegativePrompt != "")
		less.Aspect, less.Size, less.NegativePrompt = picture.Aspect{}, picture.Size{}, ""
	case picture.ReplaceBackground:
		give("style_type", r.StyleType != "")
		less.StyleType = ""
	}
	if len(lost) == 0 || refused.Param != "" && !slices.Contains(lost, refused.Param) {
		return nil, nil
	}
	return &less, lost
}
