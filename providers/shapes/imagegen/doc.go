// Package imagegen is the shape, which means the API format, of the image vendor's routes. The
// vendor's models have three generations; the first two share their routes. The package lists the
// routes with the rules of their fields, and decodes and encodes requests and replies for clients and
// upstreams. The neutral form between them is
// providers/picture. The package makes no calls and does not decode pictures; providers/mask
// checks masks.
//
// # Usage
//
//	Routes        the paths, each with its fields in the order of the documents
//	Route.Check   returns the first rule that an Input breaks
//	Route.Decode  returns the neutral request of an Input without a broken rule
//	AppendReply   encodes a reply for a client of these routes
//	Shape         the upstream side
package imagegen
