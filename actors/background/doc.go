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
//
// # Usage
//
// Start stores a Job and runs it. Watch and Status read a response in flight, Cancel ends it, and
// FindHere serves the watchers of other processes. A response that has ended is not known here any
// more: its record and its events are in state/work. Resume continues what an ended process left,
// and must be called before requests are served.
//
// # Concurrency
//
// A Registry may be used by any goroutine. Each response has one recorder, which is the only writer
// of its events, and any number of watchers, which read the same memory at their own pace. A slow
// watcher delays neither the run nor the others.
//
// # Errors
//
// Start refuses a response with a *share.Refused if there is no room for it, and with the error of
// the state if it cannot be stored. From then on nothing is lost silently: a run that cannot go on
// ends as failed, with the reason in its record. Watch returns state.ErrUnavailable once the store
// of this process has failed, because the record then changes without this process hearing of it.
package background
