package images

import (
	"stagedoor/actors/flow"
	"stagedoor/providers/dialogue"
)

// about describes a request for actors/flow.
func about(q *Request) flow.About {
	r := q.Picture
	return flow.About{ID: q.ID, Shape: string(r.Inbound), Model: r.Model, Key: q.Key, Owner: q.Owner,
		App: flow.AppOf(q.Header), KeyGeneration: q.KeyGeneration, Stream: r.Stream}
}

// resultOf describes the end of a request for actors/flow.
func resultOf(o *Outcome) flow.Result {
	r := flow.Result{Queued: o.Queued, Usage: dialogue.NoUsage, Images: o.Delivered, Losses: o.Losses}
	if o.Usage != nil {
		r.Usage.InputTotal, r.Usage.OutputTotal = o.Usage.Input(), o.Usage.Output()
	}
	r.Fail(o.Err)
	return r
}
