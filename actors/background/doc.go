// Package background runs responses whose client does not wait for them
// (background of gateway.md 4.5), on any upstream: one actor per response that
// is under way. Its record is durable before its id is told; its events are
// kept while it runs, so that any number of watchers can follow or resume, and
// go to the store with its last state. A response that has ended has no actor.
//
//	queued ── first piece of answer ──> in_progress ──> completed | incomplete | failed
//	queued, in_progress ── Cancel ──> cancelled
package background
