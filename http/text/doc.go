// Package text has the HTTP handlers of the text shapes, which are the API formats of vendors. A handler reads a
// request as far as routing needs it, passes it to actors/text and writes the chunks of the reply. The package also
// serves the lists of models, token counts, receipts and stored responses (retrieve, cancel, delete, resume).
//
// The shapes in providers/shapes interpret requests, and actors/text runs them.
//
// Usage: New makes the Handlers, and http/server routes requests to them. Each request is one
// requestContext, whose checks run in a fixed order (handlers.go).
//
// # Order of the checks
//
// The order is part of the contract, because a client learns from the first error that it gets. The checks that cost
// least come first, and nothing is read of a body before its sender is known and within its limits:
//
//	identify   the key and its scope                              401, 403
//	admit      the key's request rate and concurrency             429
//	read       the body, within its limits, and its JSON          400, 413, 503
//	route      the rules of the shape, whether the key may use
//	           the model, and the model                           400, 403, 404
//	charge     the key's tokens, by an estimate                   429
//
// # Concurrency
//
// Handlers is safe for concurrent use. A requestContext belongs to one request and is used by its goroutine only. The
// request itself runs in its actor, and the handler reads its output from a channel. A client that has left therefore
// ends the reading, and the actor decides what becomes of the request.
//
// # Files
//
//	handlers.go body.go note.go      the way of every request: checks, body, reply, access log
//	models.go page.go count.go       lists of models, token counts
//	responses.go record.go           stored responses: what is kept of a request and when
//	again.go replay.go items.go      background responses that another process began, their events, their items
//	conversations.go                 conversations, and the turns that requests add to them
//	receipts.go freereceipts.go      what a request cost
//	dryrun.go                        requests that are not sent
//	connection.go                    memory of a connection between its requests, for WebSockets
package text
