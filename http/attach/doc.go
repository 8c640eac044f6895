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
package attach
