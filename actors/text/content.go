package text

import (
	"stagedoor/actors/telemetry"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// keepContent makes the prompt and the reply of a call attributes of its span, if that is switched on
// (telemetry.traces.content).
func (a *attempt) keepContent(c *telemetry.Call) {
	if !a.svc.engine.Telemetry().WithContent() || !c.Recording() {
		return
	}
	claim := memory.NewClaim(a.svc.env.Memory, a.request.Owner)
	defer claim.End()
	if claim.Grow(memory.OfTranslation(a.request.Body)) != nil {
		return // the call itself is worth more than what is kept of it
	}
	req, err := a.request.Inbound.Decode(a.request.Body, a.request.In, a.svc.env.ForOwner(a.request.Owner))
	if err == nil {
		c.KeepContent(req)
	}
}

// replyObserver returns a parser for a reply that is passed through. It is nil unless replies are kept.
func (a *attempt) replyObserver(c *telemetry.Call) shapes.Parser {
	if !c.KeepsContent() {
		return nil
	}
	env := a.svc.env.ForOwner(a.request.Owner) // not a.env, which may record what the translation takes
	return a.shape.NewParser(a.request.Head.Choices(), env)
}
