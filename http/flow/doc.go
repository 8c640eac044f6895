// Package overview is what the gateway does at the moment, as JSON: requests under
// way and lately ended, providers with their gates, the tree of actors. The API of
// administration, the pages and the operator's terminal all show these types.
//
//	requests   flow.Registry, in one pass and only as much as is asked for
//	providers  asks every gate's actor, for a moment at most
//	actors     the tree of actors/kit
//	Watch      the same pushed over a WebSocket, a few times a second
//
// It keeps nothing: what nobody looks at is not computed. Who may look is decided by
// those who serve it.
package flow
