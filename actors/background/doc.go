// Package background runs responses whose client does not wait for them (background=true of the
// Responses API), on any upstream. Like the handlers it calls actors/text: a recorder for each
// response reads the output of its request. The record of a response is durable before its id is
// sent. Its events are kept in memory while it runs, so that any number of watchers can follow or
// resume it, and are stored together with its final state.
//
// A response that is in flight when its process ends is started again by the next process, from the
// request that is stored with it (resume.go). Half a reply cannot be continued, so the new run
// makes a new reply, whose events have higher numbers. Only events of the first run were sent, so a
// client that resumes gets all events of the second.
//
//	queued ── first piece of answer ──> in_progress ──> completed | incomplete | failed
//	queued, in_progress ── Cancel ──> cancelled
package background
