// Package webhook tells other people's servers that something has happened, in
// the form of Standard Webhooks (wire/videos.md 6): a signed POST, tried again for
// three days, each event at least once.
//
// What is to be told is left in the store by the command that made it happen
// (state.Delivery), so this package has nothing to lose. One actor starts what is
// due, a few tries at a time for each endpoint, so that one that does not answer
// holds up nobody else. Whether a failure is tried again and when is decided in
// retry.go, where a request may go in guard.go.
//
// It knows no jobs and makes no events.
package webhook
