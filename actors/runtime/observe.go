package runtime

import (
	"stagedoor/actors/kit"
	"stagedoor/actors/telemetry"
)

// Observe sets the telemetry with which requests and video jobs are traced and counted. It is called before anything is
// served.
func (r *Runtime) Observe(t *telemetry.Telemetry) {
	r.engine.Observe(t)
	r.videos.Observe(t)
}

// Stats counts the actors of the tree by kind.
func (r *Runtime) Stats() kit.Stats { return r.system.Stats() }
