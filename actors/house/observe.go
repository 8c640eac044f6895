package house

import (
	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
)

// Observe has requests traced and counted. It is called before anything is
// served.
func (h *House) Observe(t *telemetry.Telemetry) {
	h.engine.Observe(t)
	h.videos.Observe(t)
}

// Stats counts the actors of the tree by kind.
func (h *House) Stats() kit.Stats { return h.system.Stats() }
