package translator

import (
	"stagedoor/actors/telemetry"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// keepContent has prompt and reply of a call become attributes, if that is
// switched on (telemetry.traces.content).
func (a *attempt) keepContent(c *telemetry.Call) {
	if !a.svc.engine.Telemetry().WithContent() || !c.Recording() {
		return
	}
	claim := memory.NewClaim(a.svc.env.Memory, a.order.Owner)
	defer claim.End()
	if claim.Grow(memory.OfTranslation(a.order.Body)) != nil {
		return // the call itself is worth more than what is kept of it
	}
	req, err := a.order.Inbound.Decode(a.order.Body, a.order.In, a.svc.env)
	if err == nil {
		c.KeepContent(req)
	}
}

// overhearer reads a reply that passes untouched; nil: nobody wants to hear.
func (a *attempt) overhearer(c *telemetry.Call) shapes.Parser {
	if !c.KeepsContent() {
		return nil
	}
	return a.shape.NewParser(a.order.Head.Choices(), a.svc.env)
}
