// Package responsesocket serves the Responses API over WebSockets: GET /v1/responses with Upgrade: websocket
// (wire/responses-websocket.md). A client sends response.create messages and gets the events of the responses as text
// messages. The package is a transport. It does not check, route or charge requests: each response.create becomes a
// POST /v1/responses with stream: true, which passes through the handler of the whole server in this process.
//
// # A connection
//
//	client ── read ── queue ── run (up to 16) ── the server's handler ── eventWriter ── client
//	                             └ remembered responses ┘
//
// The goroutine of read receives messages, and each request runs on a goroutine of its own. attend waits for what ends
// the connection, and sends pings and heartbeats. Requests with the same stream_id form a lane and run one after the
// other. The events of a request are written while its handler waits, so a slow client slows the upstream.
//
// # Remembered responses
//
// A connection remembers the newest response of each lane that is not stored, so that the next request can continue
// from it by previous_response_id, whichever shape the upstream has. What clients send and what is remembered is
// counted in one pool with a share for each owner. If there is no room, a response is not remembered, and its
// continuation gets the error on which clients send the whole conversation again.
//
// # Errors
//
// An error that belongs to no running response is a message of the type error, with the status and the headers that the
// reply over HTTP has. The connection stays open.
//
// # Files
//
//	handlers.go connection.go socket.go   the upgrade, the lanes of a connection, reading and sending
//	message.go events.go                  what a client sends, and the events of a reply
//	remembered.go                         the responses of a connection that are not stored
package responsesocket
