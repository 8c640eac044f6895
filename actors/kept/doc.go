// Package kept keeps the replies of requests whose clients may lose their connection: requests with an Idempotency-Key,
// and requests that go on after their client has left. A reply is what the client gets, in the client's shape: status,
// headers and bytes, with the places at which its events end. Further clients read it while it is made, from its
// beginning or from the end of an event.
//
// # Usage
//
//	record, begun, err := registry.Begin(request, stored)
//	if begun {                  // this request makes the reply
//		record.Start(status, header)
//		record.Append(piece, ends)  // ends: offsets within the piece
//		record.Close(false)
//	} else {                        // another request makes it or has made it
//		part := record.Read(offset)
//	}
//
// A request that asks for none of this has no record and costs nothing here.
//
// # Limits
//
// A record holds at most MaxReply bytes. All records together hold the bytes of the registry's pool, in which each
// owner has a share. Where there is no room, the oldest records that have ended are forgotten first, and then a record
// drops its own oldest bytes. Its reply goes on, but it can no longer be read from its beginning, and Read says so.
// A record is forgotten 10 minutes after its end.
//
// # Concurrency
//
// A Registry and its Records are safe for concurrent use. One goroutine starts, appends and ends a record.
package kept
