// Package painter carries one request for pictures from its door to a provider
// and back. It is to pictures what actors/translator is to text, and simpler,
// because a picture is whole or nothing:
//
//	door ── Begin ──> parent ── spawns ──> request actor ── starts ──> pump
//	door <── Partials (bounded) <───────────────────────────────────── pump
//	door <── Done ── request actor <── attemptEnded ── pump
//
// The actor decides, attempt by attempt, whether to try again, to go elsewhere or
// to give up; the pump asks the throttle, calls the upstream, several times at
// once for more images than one call makes, has what came kept where the client
// wants an address, and settles. Only then is the request Done: what a client
// sees is durable and paid for. A picture costs, so nothing is asked for twice
// that may have been made (retry.go).
package painter
