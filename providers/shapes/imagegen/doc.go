// Package imagegen is the shape of the image vendor's routes, in its three
// generations (imagegen-and-oauth.md 4.1, 4.2): which routes there are, which
// fields each takes under which rules, how requests and replies are read and
// written on both sides. What is between is providers/picture. It makes no calls
// and looks into no picture; whether a mask is one is for providers/mask.
//
//	Route        a path: its fields, in the order of the documents, and rules
//	Route.Check  the first broken rule of an Input
//	Route.Decode the neutral request of an Input that broke none
//	Shape        an upstream of the vendor's kind
//	AppendReply  a reply for a client of these routes
package imagegen
