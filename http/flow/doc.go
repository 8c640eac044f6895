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
//
// # Several gateways
//
// Connect gives an Overview the other gateways of the database. All and Find then ask them, too, and list those that
// did not answer in time, so that a reader knows what is missing. Providers and Models add the figures of all, of which
// percentiles are made last. A request is cancelled on the gateway on which it runs.
//
// # Concurrency
//
// An Overview is safe for concurrent use. Active and Recent describe the requests of this gateway and wait for no
// actor. Providers and All wait for limiters and for other gateways, a moment at most.
//
// # Files
//
//	requests.go waterfall.go   lists of requests, and one request with its spans
//	providers.go spent.go      providers with their limiters, and what was spent at them today
//	lanes.go watch.go          the moving page: bars by provider, and what has changed of them
//	history.go actors.go       the load of the last minutes, the tree of actors
//	nodes.go figures.go        the same of other gateways
//	joined.go                  the lanes and the history of all gateways for one watcher
package flow
