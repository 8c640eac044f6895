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
//
// # Errors
//
// A refused handshake is an error in the envelope of the gateway, before the connection becomes a WebSocket.
// Afterwards errors are messages, and a mistake of the client does not end the connection. ErrDraining ends all of
// them, so that clients reconnect to another gateway.
//
// # Files
//
//	handlers.go viewer.go   who watches: a key or a signed-in person, and for how long
//	events.go               one job or all jobs as server-sent events
//	jobs.go socket.go       subscriptions over a WebSocket, and the socket for other sources
//	updates.go              what is sent: snapshots, changes, and the revision at which a client resumes
//	buffer.go               memory of messages
package live
