// Package imagegen is the shape (API format) of the image vendor's own routes.
// The vendor's models have three generations. The first two share their routes and take JSON inside
// a member of a form. The third has routes and names of fields of its own. The package lists the
// routes with the rules of their fields, and decodes and encodes requests and replies for clients
// and upstreams. The neutral form between them is providers/picture. The package makes no calls and
// does not decode pictures; providers/mask checks masks.
//
// # Usage
//
//	Routes        the paths, each with its fields in the sequence of the documents
//	Route.Check   returns the first rule that an Input breaks
//	Route.Decode  returns the neutral request of an Input without a broken rule
//	AppendReply   encodes a reply for a client of these routes
//	Shape         the upstream side
//
// # Example
//
// The same wish for a picture, as the first two generations and as the third have it:
//
//	POST /imagegen/generate                    {"image_request":{"prompt":"a cat","aspect_ratio":"ASPECT_16_9"}}
//	POST /imagegen/v1/imagegen-v3/generate     {"prompt":"a cat","aspect_ratio":"16x9"}
//
// # Where to look
//
//	route.go, rules.go, words.go  the routes, the rules of fields, and the vendor's closed lists
//	input.go, decode.go           a client's request, as JSON or as a form, to the neutral form
//	convert.go, encode.go         the neutral form to what a model of the vendor takes, and to its body
//	simplify.go                   a second attempt without fields that a route refused
//	reply.go                      replies in both directions
package imagegen
