// Package images makes the attempts of a request for pictures. It implements engine.Exchange; actors/engine owns the
// request, its retries and its end.
//
// A picture is whole or nothing. An attempt calls the upstream, several times at once for more images than one call
// makes (calls.go), keeps what came where the client wants an address (deliver.go), and settles. Only then has the
// attempt succeeded: what a client sees is durable and paid for. Partial images are the request's output on the way.
//
// A picture costs money when it is made and not when it is delivered. So nothing is requested a second time that an
// upstream may have begun with (exchange.Policy).
//
// # Files
//
//	service.go request.go       the entry: Begin, and what a request and its reply are
//	exchange.go calls.go        one attempt, and the calls that it consists of
//	deliver.go                  pictures by value or by address
//	sweep.go                    the actor that removes expired pictures
//	trace.go watch.go           spans and the log of requests
//
// # Usage
//
// Begin starts a request and never waits. The caller reads Partials until it is closed and then
// takes the Outcome. A caller whose client has left calls Abandon.
//
// # Concurrency
//
// A Service is safe for concurrent use, and a Reply belongs to one goroutine. The Meter of a
// request is called from several goroutines, but never by two at a time.
package images
