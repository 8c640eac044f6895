// Package background runs responses whose client does not wait for them
// (background of gateway.md 4.5), on any upstream. It is a caller of actors/text like
// the handlers: a recorder per response reads the output of its request. The record of a
// response is durable before its id is sent; its events are kept while it runs, so that
// any number of watchers can follow or resume, and go to the store with its last state.
//
// One that is under way when its process ends, in peace or not, is begun again by
// the next one, from the request that is kept with it (resume.go). Half a reply
// cannot be continued, so it is a new reply, under numbers of its own: of the
// first one only events were sent, and a client that resumes gets all of the second.
//
//	queued ── first piece of answer ──> in_progress ──> completed | incomplete | failed
//	queued, in_progress ── Cancel ──> cancelled
package background
