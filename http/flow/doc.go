// Package flow describes in JSON what the gateway does at the moment: requests in flight and those that ended
// last, providers with their limiters, and the tree of actors. The administration API, the web pages and the
// operator's terminal show these types.
//
//	requests   flow.Registry, in one pass and only as much as is asked for
//	providers  asks every limiter's actor and waits a moment at most
//	actors     the tree of actors/kit
//	Watch      sends the same over a WebSocket, a few times a second, and of the lanes only what has changed
//	Record     samples the load every five seconds, for the history of five minutes
//
// The package keeps nothing but that history and what each watcher of the lanes was sent, which is bounded. It computes
// only what a client looks at. The packages that serve it check permissions.
package flow
