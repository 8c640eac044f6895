// Package text makes the attempts of a request for text. It implements engine.Exchange;
// actors/engine owns the request, its retries and its end.
//
// # Two ways through an attempt
//
// A request whose provider speaks the client's shape (API format) is passed through
// (passthrough.go): its bytes are patched on the way out and watched on the way back. Any other
// goes through the neutral form (translated.go):
//
//	passed through   body ── Patch ──> upstream ── event ──> Tap ── same bytes ──> client
//	translated       body ── Decode ── Encode ──> upstream ── event ──> Parser ── Emitter ──> client
//
// Nothing is sent to the client before the first piece of answer has been read, so everything that
// fails until then is still a real status, another attempt or another target. One failure is no
// status for a client that streams: that which the upstream itself reports in a stream that it has
// begun (attempt.opening).
//
// # State
//
// An exchange lives as long as its request, and an attempt as long as one try at one target. Both
// belong to the attempt loop of the engine, so neither has a lock. The exceptions run at the same
// time as the loop and say so: the calls of a fan-out (merger), the tiers of their replies
// (replyTiers) and the watch for a client that leaves (lateUsage).
//
// # Where to look
//
//	service.go, request.go  the entry point, and the values that callers see
//	exchange.go             the engine's interface; which attempt is made
//	attempt.go              what both ways share: sending, delivering, ending a stream that failed
//	passthrough.go, translated.go  the two ways
//	fanout.go               several calls for one reply, for prompts or choices that one call cannot have
//	enforce.go, endearly.go replies that the gateway ends: stop sequences, no money
//	amend.go, shorten.go, contextedits.go  what the next attempt sends otherwise
//	select.go               targets that cannot serve the request at all
//	meter.go, lateusage.go  money, and usage that arrives after the client has left
//	proofs.go               which model vouched for reasoning
//	trace.go, content.go, record.go, watch.go  spans, metrics, recordings, and the page of requests
package text
