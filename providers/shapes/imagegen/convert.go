package imagegen

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
)

// newEncoder returns an encoder with the request's own values, which convert may change.
func newEncoder(r *picture.Request, model string, rep *dialogue.Report) *encoder {
	e := &encoder{r: r, rep: rep, model: model, v3: isV3(model), operation: r.Operation, size: r.Size, aspect: r.Aspect,
		style: r.StyleType, speed: r.RenderingSpeed, sources: r.Sources, styles: r.Styles, mask: r.Mask}
	if r.Operation == picture.Describe || r.Operation == picture.Upscale {
		e.v3 = r.Version == "V3" // those routes are the same for all models
	}
	return e
}

// convert changes a request of another shape or generation to one that the vendor's model takes,
// and records what it drops.
func (e *encoder) convert(ctx context.Context) error {
	e.lose()
	e.convertWords()
	e.convertSize()
	return e.convertPictures(ctx)
}

// lose records the parameters for which the vendor has no field.
func (e *encoder) lose() {
	r := e.r
	e.rep.LoseIf(!e.v3 && r.Quality != "" && r.Quality != "auto", "quality")
	e.rep.LoseIf(!e.v3 && r.RenderingSpeed != "", "rendering_speed")
	e.rep.LoseIf(r.OutputFormat != "" && r.OutputFormat != "png", "output_format")
	e.rep.LoseIf(r.Compression != nil, "output_compression")
	e.rep.LoseIf(r.Background != "" && r.Background != "auto", "background")
	e.rep.LoseIf(r.Moderation != "" && r.Moderation != "auto", "moderation")
	e.rep.LoseIf(r.Style != "", "style")
	e.rep.LoseIf(r.Fidelity != "", "input_fidelity")
	e.rep.LoseIf(r.Partials > 0, "partial_images")
	e.rep.LoseIf(r.User != "", "user")
	e.rep.LoseIf(!e.v3 && len(r.Styles) > 0, "style_reference_images")
	for i := range r.Extra {
		e.rep.Lose(r.Extra[i].Name)
	}
	for _, other := range r.Others {
		e.rep.Lose(other.Name)
	}
}

// speedOf maps the qualities of the images shape to the nearest rendering speeds.
var speedOf = map[string]string{
	"low":      "TURBO",
	"medium":   "DEFAULT",
	"standard": "DEFAULT",
	"high":     "QUALITY",
	"hd":       "QUALITY",
}

// convertWords drops the style that the model does not have, and turns a quality of the images
// shape into a rendering speed for models of the third generation.
func (e *encoder) convertWords() {
	known := stylesV2
	if e.v3 {
		known = stylesV3
	}
	if e.style != "" && (!slices.Contains(known, e.style) || strings.HasPrefix(e.model, "V_1")) {
		e.style = ""
		e.rep.Lose("style_type")
	}
	if e.v3 && e.speed == "" {
		e.speed = speedOf[e.r.Quality]
	}
	if !e.v3 {
		e.styles = nil
	}
}

// convertSize changes the size to one that the model makes, or else to the nearest ratio.
// The nearest ratio is chosen and the loss is recorded. A picture of another size can be cropped,
// and a refusal gives the client nothing.
func (e *encoder) convertSize() {
	ratios, takes := aspectsV3, takesV3
	if !e.v3 {
		ratios, takes = aspectsV2, takesV2
		if !slices.Contains(editModels, e.model) {
			takes = func(s picture.Size) bool { return false } // resolutions are for version 2.0
		}
	}
	switch {
	case e.size != (picture.Size{}):
		if takes(e.size) {
			return
		}
		e.aspect = nearest(ratios, e.size.Width, e.size.Height)
		if e.size.Width != e.size.Height || e.size.Width != 1024 { // a ratio of 1x1 makes the same
			e.rep.Lose("size")
		}
		e.size = picture.Size{}
	case e.aspect != (picture.Aspect{}) && !slices.Contains(ratios, formatAspectV3(e.aspect)):
		e.aspect = nearest(ratios, e.aspect.Width, e.aspect.Height)
		e.rep.Lose("aspect_ratio")
	}
}

// convertPictures assigns the sources and the mask to the fields of the route. The vendor edits only with a
// mask, and a remix is the nearest operation without one. Further sources become references of style in the
// third generation, and the older ones take a single picture. A mask that marks by transparency becomes one
// that marks in black.
func (e *encoder) convertPictures(ctx context.Context) error {
	if e.operation == picture.Edit && e.mask == nil {
		e.operation = picture.Remix
	}
	if len(e.sources) > 1 {
		if e.v3 {
			e.styles = slices.Concat(e.styles, e.sources[1:])
		}
		e.rep.Lose("image")
		e.sources = e.sources[:1]
	}
	if e.operation == picture.Edit && !e.v3 {
		e.size, e.aspect = picture.Size{}, picture.Aspect{} // the route has neither, and the picture keeps its size
	}
	if e.mask == nil || e.r.MaskKeeps {
		return nil
	}
	black, err := mask.FromAlpha(ctx, e.r.Owner, e.mask)
	var flaw mask.Flaw
	switch {
	case errors.As(err, &flaw):
		return dialogue.Invalid("mask", flaw.Error())
	case err != nil:
		return err
	}
	e.mask = black
	return nil
}
