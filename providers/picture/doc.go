// Package picture is the neutral form of requests and replies with pictures, as
// providers/dialogue is for text. A Request covers every operation that a client can ask for
// (generate, edit, remix, describe and so on), a Reply covers every answer of an upstream. The
// package knows no vendor.
//
// # Usage
//
// The handlers in http/media decode Requests and encode Replies. A Shape encodes the Request
// for one kind of upstream and decodes its Reply. The embedded sandbox is a Simulator.
//
// Pictures are large, so a File is held once, in memory or on disk, and read where it is
// needed. A Form and a Document read their files while they are sent.
//
// # Concurrency
//
// A Request must not change once an upstream is asked. A File may be read concurrently.
//
// # Files
//
//	shape.go request.go reply.go    the interface of picture shapes, requests and replies
//	size.go conversation.go         sizes and ratios, and pictures that are made by a conversation
//	file.go inspect.go content.go   files, their format and size, bodies of calls
package picture
