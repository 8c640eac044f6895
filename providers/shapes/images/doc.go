// Package images is the shape of POST /v1/images/generations and
// /v1/images/edits: the rules its clients must keep (gateway.md 4.7,
// wire/images.md), the replies and events they read, and how an upstream that
// speaks it is asked and read. It opens no connection and keeps no state.
//
// A client's JSON goes to an upstream of this shape as it is, but for the
// model's name, and the reply comes back as it is unless it has an address in it.
package images
