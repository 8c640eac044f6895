// Package images is the shape of POST /v1/images/generations and /v1/images/edits. It checks the
// requests of clients, writes their replies and events, encodes
// requests for upstreams that speak the shape, and decodes the replies of those. It opens no
// connections and keeps no state.
//
// # Usage
//
//	CheckGeneration, CheckEdit, CheckEditForm   a client's body to a picture.Request
//	Emitter                                     a picture.Reply to a client's body or events
//	Shape                                       the upstream side
//
// A client's JSON goes to an upstream of this shape unchanged except for the model and n, and the
// reply comes back unchanged unless it has addresses.
package images
