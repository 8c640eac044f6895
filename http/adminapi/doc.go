// Package adminapi serves the administration API below /admin/v1: users, groups, keys, balances,
// redeem codes, apps, receipts, usage, and the requests in flight. Programs call it over the
// network with an admin token. The operator's commands call the same API through the control socket
// or, if no gateway is running, in their own process. All three therefore have one contract.
//
// The package makes no decisions about the data it serves. The registry (actors/tokens) holds the
// rules for users and keys, and the ledger those for money. The pages for people are in http/web.
//
// # Usage
//
//	routes          the table of routes; the OpenAPI description is generated from it
//	requestContext  one request: strict reading of query and body, errors in the envelope
//	Guard           checks the admin token of requests that come over the network
//	Client          sends requests; used by the commands
//
// # Adding a route
//
// A route is a row of routes and its handler, a function of a requestContext that returns the reply. The row names the
// types of the body and the reply, from which requests are read and the OpenAPI description is made, so there is
// nothing else to write. A field of a body that may be left out, or set to null to remove what is there, is an
// Optional. A route that needs a running gateway is refused with 503 not_running without one, because commands that
// work on a data directory serve the same table.
//
// # Errors
//
// Handlers return the errors of the packages that they call. asEnvelopeError is the only place that knows their status
// and code. An error that is not known there is a 500 without its text, which goes to the log. Bodies and queries are
// read strictly: an unknown or repeated member is refused, because a misspelt limit would otherwise not limit anything.
//
// # Concurrency
//
// An API and a Guard are safe for concurrent use, and a requestContext belongs to one request.
//
// # Files
//
//	api.go call.go errors.go guard.go                   routing, reading, errors, the admin token
//	openapi.go schema.go types.go optional.go           the description, and the types of bodies and replies
//	users.go invitations.go groups.go keys.go apps.go   people and what they may do
//	accounts.go codes.go receipts.go usage.go audit.go  money, figures and the audit log
//	flow.go settings.go                                 the requests in flight, and the configuration
//	client.go                                           the client of the commands
package adminapi
