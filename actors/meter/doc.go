// Package meter charges text and image requests. It holds what a request may cost before the
// first upstream call, extends the hold of a stream without a maximum, and settles the hold
// by how the request ended.
//
// It connects actors/text and actors/images, which know how requests proceed, to the ledger,
// which knows money. All amounts are in micro-dollars. It limits no rates. Video jobs use the ledger directly.
//
// # Usage
//
// A handler makes one Text or Picture for each request and passes it to the request, which
// calls Begin before each attempt, Progress while a stream runs, and Settle.
//
// # Errors
//
// Begin and Settle return the errors of the ledger as a *dialogue.Error for the client.
//
// # Files
//
//	text.go prompt.go media.go   text requests: estimates of prompts and of the media in them
//	picture.go                   picture requests
//	charge.go trace.go           the hold and its end, and what a span says of them
package meter
