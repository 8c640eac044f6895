// Package live shows what changes while it changes: video jobs to those who own
// them, as server-sent events and over WebSockets (decisions.md "Images, imagegen,
// videos"). Whatever else is to be pushed over a WebSocket brings a Source and
// leaves the connection to Doors.Serve.
//
// There is no hub. A watcher looks at the store, tells what is new since it looked
// last and waits on a channel that the store closes at the next change. It looks
// again when it has written what it had, so whoever reads slowly hears of fewer
// states, always of the newest, and holds up nobody: nothing is queued for anyone.
// Watchers ask no provider anything; there is one poll of a job however many watch.
//
// Package live changes nothing and decides nothing about jobs.
package live
