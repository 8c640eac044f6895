// Package upstream sends HTTP requests to providers. It has pooled connections, four timeouts (connect, first
// byte, idle, total), a bounded reader of server-sent events, rotation of the provider's keys, and the
// classification of every failure into a few classes.
//
// It knows no shape, which is the API format of a vendor. Packages below providers/shapes write requests and read
// replies.
//
// # Usage
//
// Make one Client per provider with New. Client.Do sends a request whose body is one JSON document.
// Client.Send sends any other request, and Client.SendWithKey also chooses the key. Read the Reply with
// Events, ReadAll or Body, and always call its Close.
//
// # Concurrency
//
// Client and Keys are safe for concurrent use. A Reply and an EventReader belong to one goroutine.
//
// # Errors
//
// Every error is a *Failure. Its Class says what a caller may do next, and its Err is what the client
// may see, without the provider's addresses and keys.
package upstream
