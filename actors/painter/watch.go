package painter

import (
	"stagedoor/actors/flow"
	"stagedoor/providers/dialogue"
)

// about is what those who look at a request see of its order.
func about(o *Order) flow.About {
	r := o.Request
	return flow.About{ID: o.ID, Shape: string(r.Inbound), Model: r.Model, Key: o.Key, Owner: o.Owner,
		Era: o.Era, Stream: r.Stream}
}

// resultOf is what they see of how it ended. A picture's tokens are its upstream's
// business; what it costs is the receipt's.
func resultOf(o *Outcome) flow.Result {
	r := flow.Result{Queued: o.Queued, Usage: dialogue.NoUsage, Images: o.Delivered, Losses: o.Losses}
	if o.Usage != nil {
		r.Usage.InputTotal, r.Usage.OutputTotal = o.Usage.Input(), o.Usage.Output()
	}
	r.Fail(o.Err)
	return r
}
