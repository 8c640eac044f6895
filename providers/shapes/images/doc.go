// Package images is the shape of POST /v1/images/generations and /v1/images/edits, after OpenAI's
// API reference, "Images". It checks the requests of clients, writes their replies and events,
// encodes requests for upstreams that speak the shape, and decodes the replies of those. It opens
// no connections and keeps no state.
//
// # Usage
//
//	CheckGeneration, CheckEdit, CheckEditForm   a client's body to a picture.Request
//	Emitter                                     a picture.Reply to a client's body or events
//	Shape                                       the upstream side
//
// A client's JSON goes to an upstream of this shape unchanged except for the model and n, and the
// reply comes back unchanged unless it has addresses.
//
//	{"model":"gen-image-1","prompt":"a cat","size":"1024x1024"}
//	{"created":1700000000,"data":[{"b64_json":"iVBORw0..."}],"usage":{"total_tokens":1100,...}}
//
// # Families of models
//
// The vendor's models differ in the sizes, qualities and parameters that they take, and the
// documents give the rules for each family (family.go). A rule is checked here and not left to the
// upstream, so that a client gets the same error whichever provider serves the model.
//
// # What gets lost
//
// Of the requests of the image vendor's routes these are left out or changed, and reported in
// X-Stagedoor-Losses under the names in the first column:
//
//	seed, style_type, magic_prompt, image_weight,   models of the shape have no such parameters
//	style_reference_images
//	negative_prompt:prompt                          is written into the prompt as "Avoid: ..."
//	size                                            the nearest one that the model makes
//
// A rendering speed becomes a quality, except for legacy-image models, which lose it. Reframing and the replacement
// of a background are edits whose prompt says so. Describing and upscaling are refused, and so are edits by
// legacy-image-3, which makes none.
//
// # Where to look
//
//	check.go, edits.go, input.go  the rules of requests, of edits, and of JSON and forms
//	family.go                     how the families of models differ
//	encode.go, mask.go            a request of any shape for an upstream of this one
//	parse.go                      an upstream's reply or event
//	emit.go                       a client's reply or events
//	shape.go                      the upstream side, and sizes that a model does not make
package images
