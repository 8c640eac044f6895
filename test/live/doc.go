// Package live watches video jobs of the real program as its clients do, by
// server-sent events and over WebSockets, and receives its webhooks. It holds what
// watchers hear against what must be heard: every end, once, also by those who
// came back, and nothing of others. Load measures many watchers; command measure
// prints what it finds.
//
// # Usage
//
// A test creates jobs on a gateway of the harness, watches them with a Watcher of each kind, and compares what the
// watchers have heard with the ends of the jobs. Load does the same with many of both and returns how old the heard
// changes were.
package live
