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
package adminapi
