// Package live pushes changes to clients: video jobs to their owners, as server-sent events and over
// WebSockets (decisions.md "Images, imagegen, videos"). It does not change jobs.
//
// Usage: other packages push their own messages over a WebSocket by passing a Source to
// Handlers.Serve, which owns the connection.
//
// Concurrency: there is no hub and no queue. A watcher reads the store, writes the updates since its
// last look and waits on a channel that the store closes at the next change. It looks again after it
// has written, so a slow client gets fewer states, always the newest, and delays no other client. A
// watcher never calls a provider: each job is polled once, no matter how many clients watch it.
package live
