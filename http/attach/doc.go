// Package attach lets clients repeat, resume and leave requests to models. The handlers of such requests call Serve
// once they have admitted a request. Its reply then goes to its client as always, and beside it into a record of
// actors/kept, if the client asked for that with one of these headers:
//
//	Idempotency-Key   a repeat with the same key gets the reply of the first request, while it runs or within 24 h,
//	                  and is not charged
//	X-On-Disconnect   cancel, finish or detach: what becomes of the request when no client is left
//
// A request without these headers is passed on untouched and costs the look at two headers. Events serves
// GET /v1/requests/{id}/events, with which a client goes on reading a reply.
//
// The request stays with the handler of its first client, also after that client has left, so that it counts against
// the limits of its key, is drained and is logged as any other request. Its context then no longer ends with the
// client's connection.
//
// # Usage
//
// A handler that has admitted a request describes it in a Request and calls Serve with a Run, which
// makes the reply. Serve calls Run at most once, and not at all if an earlier request with the same
// key has a reply. Wanted tells beforehand whether a request needs any of this, so that all others
// keep their direct path.
//
// # Concurrency
//
// A Service is safe for concurrent use. Run is called on the goroutine of its handler, also when
// its client has left, so a handler may use its request as usual. Readers of a record wait for its
// next event without a goroutine of their own.
//
// # Errors
//
// Serve returns an error only before anything was sent, and its caller answers with it. A failure
// of the reply itself goes to the client through Run. A repeat gets the same failure, unless it is
// one after which the client should try again.
package attach
