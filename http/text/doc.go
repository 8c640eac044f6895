// Package text has the HTTP handlers of the text shapes, which are the API formats of vendors. A handler reads a
// request as far as routing needs it, passes it to actors/text and writes the chunks of the reply. The package also
// serves the lists of models, token counts, receipts and stored responses (retrieve, cancel, delete, resume).
//
// The shapes in providers/shapes interpret requests, and actors/text runs them.
//
// Usage: New makes the Handlers, and http/server routes requests to them. Each request is one
// requestContext, whose checks run in a fixed order (handlers.go).
package text
