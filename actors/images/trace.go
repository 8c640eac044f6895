package images

import (
	"context"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// beginCall begins a call of the upstream.
func (a *attempt) beginCall(ctx context.Context, p part) (context.Context, *telemetry.Call) {
	t := telemetry.Target{Operation: telemetry.OperationImage, Kind: telemetry.KindSandbox,
		Provider: a.c.Runtime.Spec.Name,
		Model:    a.c.Model, Attempt: a.c.Number, Stream: p.request.Stream, Choices: p.request.N, Output: "image"}
	if a.shape != nil {
		t.Kind = telemetry.VendorOf(a.shape.Name)
		t.Shape = string(a.shape.Name)
	}
	return a.c.Telemetry().BeginCall(ctx, t)
}

// endCall ends a call.
func (a *attempt) endCall(c *telemetry.Call, reply *picture.Reply, f *upstream.Failure) {
	if c == nil {
		return
	}
	if reply != nil && reply.Usage != nil {
		c.RecordUsage(reply.Usage.Tokens())
	}
	cost := int64(0)
	if price := a.c.Estimate("", a.svc.Now()); reply != nil && !price.Zero() {
		cost = price.PerImage * int64(len(reply.Images))
		if u := c.Usage(); u.InputTotal >= 0 || u.OutputTotal >= 0 {
			cost += price.Tokens(u)
		}
	}
	failure := ""
	if f != nil {
		failure = throttle.KindOf(f.Class).String()
	}
	c.End(failure, cost)
}
