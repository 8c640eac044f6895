// Package upstream sends HTTP requests to providers. It has pooled connections, four timeouts
// (connect, first byte, idle, total), a bounded reader of server-sent events, rotation of the
// provider's keys, and the classification of every failure into a few classes.
//
// It knows no shape, which is the API format of a vendor. Packages below providers/shapes write
// requests and read replies. It makes each call once: actors/engine decides about retries, by the
// class of the failure.
//
// # Usage
//
// Make one Client per provider with New. Client.Do sends a request whose body is one JSON document.
// Client.Send sends any other request, and Client.SendWithKey also chooses the key. Read the Reply
// with Events, ReadAll or Body, and always call its Close.
//
//	reply, err := client.Do(ctx, call, shape.Authorize, client.Keys().Take(now, model))
//	if err != nil {
//		return err // a *Failure: nothing was answered
//	}
//	defer reply.Close()
//	events, err := reply.Events()
//	for ev, err := events.Next(); err == nil; ev, err = events.Next() { ... }
//
// # Trust
//
// A provider is not trusted more than a client. Everything that it can make the gateway hold is
// bounded: headers, bodies, events, the growth of a compressed body, and the time for each. An
// address that a provider names may not lead into a private network (guard.go), and never gets a
// key (send.go).
//
// # Where to look
//
//	client.go, send.go, ask.go  calls, replies and their timeouts
//	dial.go, guard.go, path.go  connections and addresses
//	upload.go                   bodies that are sent, and revoked when a call ends early
//	sse.go                      the reader of server-sent events
//	failure.go, meaning.go      classes of failures, and the vendors' words behind them
//	scrub.go, secret.go         removal of addresses and keys from texts for clients
//	keys.go, ratelimit.go       rotation of keys, and the limits that replies report
//	dryrun.go                   calls that are kept instead of sent
//
// # Concurrency
//
// Client and Keys are safe for concurrent use. A Reply and an EventReader belong to one goroutine.
//
// # Errors
//
// Every error is a *Failure. Its Class says what a caller may do next, and its Err is what the
// client may see, without the provider's addresses and keys.
package upstream
