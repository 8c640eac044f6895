package painter

import (
	"context"
	"time"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/picture"
)

// Observe has requests traced and counted. It is called before the first Begin.
func (s *Service) Observe(t *telemetry.Telemetry) { s.telemetry = t }

// queued asks the throttle, and tells of the wait.
func (a *attempt) queued(ctx context.Context, ask throttle.Ask) (*throttle.Permit, error) {
	wait := telemetry.Wait{Provider: a.provider.Spec.Name, Attempt: a.out.Attempts, Asked: time.Now()}
	permit, err := a.provider.Gate.Acquire(ctx, ask)
	if err != nil {
		wait.Refused = throttle.Why(err)
	} else {
		wait.Waited, wait.Position = permit.Waited(), permit.Position()
	}
	a.svc.telemetry.Queued(ctx, wait)
	return permit, err
}

// begin begins a call of the upstream.
func (a *attempt) begin(ctx context.Context, p part) (context.Context, *telemetry.Call) {
	t := telemetry.Target{Operation: telemetry.OperationImage, Kind: telemetry.KindSandbox, Provider: a.provider.Spec.Name,
		Model: a.candidate.Model, Attempt: a.out.Attempts, Stream: p.request.Stream, Choices: p.request.N, Output: "image"}
	if a.shape != nil {
		t.Kind = telemetry.VendorOf(a.shape.Name)
		t.Shape = string(a.shape.Name)
	}
	return a.svc.telemetry.BeginCall(ctx, t)
}

// ended ends a call.
func (a *attempt) ended(c *telemetry.Call, reply *picture.Reply, f *failure) {
	if c == nil {
		return
	}
	if reply != nil && reply.Usage != nil {
		c.Told(reply.Usage.Tokens())
	}
	cost := int64(0)
	if reply != nil && !a.candidate.Price.Zero() {
		cost = a.candidate.Price.PerImage * int64(len(reply.Images))
		if u := c.Usage(); u.InputTotal >= 0 || u.OutputTotal >= 0 {
			cost += a.candidate.Price.Tokens(u)
		}
	}
	failure := ""
	if f != nil {
		failure = throttle.KindOf(f.Class).String()
	}
	c.End(failure, cost)
}
