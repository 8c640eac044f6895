package imagegen

import (
	"net/http"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

var _ picture.Simplifier = shape{}

// Simplify implements picture.Simplifier. The documents list fields of the third generation that
// the vendor's own routes do not have, so a 400 may be about them, unless it
// names another field.
func (shape) Simplify(r *picture.Request, model string, refused *dialogue.Error) (*picture.Request, []string) {
	if !isV3(model) || refused.Status != http.StatusBadRequest {
		return nil, nil
	}
	less := *r
	var lost []string
	drop := func(name string, given bool) {
		if given {
			lost = append(lost, name)
		}
	}
	switch r.Operation {
	case picture.Edit:
		drop("aspect_ratio", r.Aspect != picture.Aspect{})
		drop("size", r.Size != picture.Size{})
		drop("negative_prompt", r.NegativePrompt != "")
		less.Aspect, less.Size, less.NegativePrompt = picture.Aspect{}, picture.Size{}, ""
	case picture.ReplaceBackground:
		drop("style_type", r.StyleType != "")
		less.StyleType = ""
	}
	if len(lost) == 0 || refused.Param != "" && !slices.Contains(lost, refused.Param) {
		return nil, nil
	}
	return &less, lost
}
