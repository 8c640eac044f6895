// Package translator carries one request from its door to a provider and back.
//
// Each request is an actor, its control plane: it decides, attempt by attempt,
// whether to wait, to try again, to go to another target or to give up. Each
// attempt is a pump, the data plane: a goroutine that asks the provider's
// throttle for a permit, calls the upstream and writes what comes back into a
// bounded channel that the door empties. Nothing hops through an actor per
// chunk, and a client that reads slowly holds up nobody but its own upstream.
//
//	door ── Begin ──> shard ── spawns ──> request actor ── starts ──> pump
//	door <──────────── Frames (bounded) <──────────────────────────── pump
//	                   request actor <── attemptEnded ── pump
//
// A request whose provider speaks the client's shape takes the untouched lane
// (untouched.go): bytes are patched on the way out and watched on the way back.
// Any other goes through the dialogue (translated.go). Nothing is sent to the
// client before the first piece of answer has been read, so everything that
// fails until then is still a real status, another attempt or another target.
// One failure is no status for a client that streams: that which the upstream
// itself reports in a stream it has begun (see opening).
package translator
