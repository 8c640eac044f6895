package engine

import (
	"cmp"
	"context"

	"stagedoor/actors/telemetry"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// DryRun makes a request stop where its calls would be sent, and says what they are. The request has its actor, its
// attempt and its exchange like any other, so it reports exactly the bytes that the real one sends. It takes no permit
// and holds no money, its provider's client has no network, and actors/flow does not show it. If the calls are
// answered, as stagedoor/actors/replay does, the request goes on with the replies.
//
// The caller sets Shape, Answer and Bound before the request begins, and reads the rest when the request's output is
// closed.
type DryRun struct {
	upstream.DryRun
	// Shape, if set, is the shape in which the request is written instead of one that its provider serves.
	Shape dialogue.Shape

	// Target is the first target of the plan that is configured.
	Target *catalog.Candidate
	// Simulated says that the sandbox would answer, without a call.
	Simulated bool
	// WrittenIn is the shape of the calls. Untouched says that it is the client's and that the body passes through.
	WrittenIn dialogue.Shape
	Untouched bool
	Losses    []string
	Degraded  string
	// Hold has the micro-dollars that the request would hold at first. The meter of the request sets it.
	Hold int64
	// Err is the error that the client of the real request gets before anything is sent.
	Err *dialogue.Error
}

// dryRunKey marks the context of an attempt that sends nothing.
type dryRunKey struct{}

// prepare gives the candidate of an attempt a copy of its provider whose client keeps calls and sends none.
func (d *DryRun) prepare(c *Candidate) {
	c.Dry, d.Target = d, c.Candidate
	if c.Runtime == nil {
		return
	}
	spec := *c.Runtime.Spec
	spec.Retries = 0 // every call fails
	if d.Shape != "" {
		spec.Shape, spec.Also = d.Shape, nil
		target := *c.Candidate
		target.Provider = &spec
		c.Candidate = &target
	}
	c.Runtime = &Provider{Spec: &spec, Client: d.Client(c.Runtime.Client)}
}

// try lets the exchange make the attempt. Once a call has been kept, the failure to send it is not the request's.
func (d *DryRun) try(ctx context.Context, x exchange, c *Candidate) *upstream.Failure {
	if d.Simulated = c.Runtime.Spec.Shape == catalog.Sandbox; d.Simulated {
		return nil
	}
	f := x.try(context.WithValue(ctx, dryRunKey{}, true), c, nil)
	switch calls, err := d.Calls(); {
	case err != nil:
		return CallerFault(err)
	case len(calls) > 0 && d.Answer == nil:
		return nil
	case len(calls) > 0:
		return f
	}
	return cmp.Or(f, CallerFault(dialogue.Internal(nil)))
}

// Report records how an exchange has written the request. d may be nil.
func (d *DryRun) Report(shape dialogue.Shape, untouched bool, r *dialogue.Report) {
	if d != nil {
		d.WrittenIn, d.Untouched, d.Losses, d.Degraded = shape, untouched, r.Losses(), r.Degraded
	}
}

// dryCalls makes all calls one after the other, so that they are kept in their order although each of them fails.
func dryCalls(ctx context.Context, n int, call func(context.Context, int) *upstream.Failure) *upstream.Failure {
	var first *upstream.Failure
	for i := range n {
		if f := call(ctx, i); f != nil {
			first = cmp.Or(first, f)
		}
	}
	return first
}

// Telemetry returns where the calls of the attempt are traced and counted, or nil if they are not.
func (c *Candidate) Telemetry() *telemetry.Telemetry {
	if c.Dry != nil {
		return nil
	}
	return c.run.engine.telemetry
}
