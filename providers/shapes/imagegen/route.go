package imagegen

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Name is the shape's name in the configuration.
const Name dialogue.Shape = "imagegen"

// Prefix begins the paths of all routes at the gateway.
const Prefix = "/imagegen"

// Encoding is a set of the encodings that a route takes for its bodies.
type Encoding uint8

// The encodings.
const (
	JSON Encoding = 1 << iota
	Form
)

// Route is one path with its fields and their rules.
type Route struct {
	Path      string // after Prefix
	Encoding  Encoding
	Operation picture.Operation
	// V3 is set for routes of the third generation. The others serve the first two, which differ
	// by the model.
	V3 bool

	upstream string // the vendor's path
	document string // the field whose object has all other fields, or ""
	image    string // the field of the main picture
	rules    []rule
}

const (
	// modelV3 is the name in the catalogue for requests to the routes of the third generation,
	// which name no model. defaultModel is the vendor's default on the others.
	modelV3      = "imagegen-v3"
	defaultModel = "V_2"
)

// Routes lists all paths. Those that the documents do not have are in decisions.md "Images,
// imagegen, videos".
var Routes = []*Route{
	{Path: "/generate", Encoding: JSON, Operation: picture.Generate,
		upstream: "/generate", document: "image_request", rules: generateV2},
	{Path: "/edit", Encoding: Form, Operation: picture.Edit,
		upstream: "/edit", image: "image_file", rules: editV2},
	{Path: "/remix", Encoding: Form, Operation: picture.Remix, upstream: "/remix", document: "image_request",
		image: "image_file", rules: remixV2},
	{Path: "/reframe", Encoding: Form, Operation: picture.Reframe, upstream: "/reframe", image: "image_file",
		rules: reframeV2},
	{Path: "/describe", Encoding: Form, Operation: picture.Describe,
		upstream: "/describe", image: "image_file", rules: describe},
	{Path: "/upscale", Encoding: Form, Operation: picture.Upscale,
		upstream: "/upscale", document: "image_request", image: "image_file", rules: upscale},

	{Path: "/v1/imagegen-v3/generate", Encoding: JSON | Form, Operation: picture.Generate, V3: true,
		upstream: "/v1/ideogram-v3/generate", rules: generateV3},
	{Path: "/v1/imagegen-v3/remix", Encoding: Form, Operation: picture.Remix, V3: true,
		upstream: "/v1/ideogram-v3/remix", image: "image", rules: remixV3},
	{Path: "/v1/imagegen-v3/edit", Encoding: Form, Operation: picture.Edit, V3: true,
		upstream: "/v1/ideogram-v3/edit", image: "image", rules: editV3},
	{Path: "/v1/imagegen-v3/replace-background", Encoding: Form, Operation: picture.ReplaceBackground, V3: true,
		upstream: "/v1/ideogram-v3/replace-background", image: "image", rules: replaceBackgroundV3},
	{Path: "/v1/imagegen-v3/reframe", Encoding: Form, Operation: picture.Reframe, V3: true,
		upstream: "/v1/ideogram-v3/reframe", image: "image", rules: reframeV3},
}

// UpstreamPath returns the vendor's path of the route.
func (r *Route) UpstreamPath() string { return r.upstream }

// findRoute returns the route for an operation of a generation, or nil. All generations share the
// routes to describe and upscale.
func findRoute(op picture.Operation, v3 bool) *Route {
	for _, r := range Routes {
		if r.Operation == op && (r.V3 == v3 || op == picture.Describe || op == picture.Upscale) {
			return r
		}
	}
	return nil
}

// files lists the fields that hold files on any route.
var files = map[string]bool{"image_file": true, "image": true, "mask": true, "style_reference_images": true,
	"character_reference_images": true, "character_reference_images_mask": true}

// TakesFile reports whether a field of the route holds a file.
func (r *Route) TakesFile(field string) bool {
	for i := range r.rules {
		if r.rules[i].name == field {
			return files[field]
		}
	}
	return false
}

// param returns the name of a field in errors, with the document if the field is inside it.
func (r *Route) param(field string) string {
	if r.document == "" || files[field] {
		return field
	}
	return r.document + "." + field
}
