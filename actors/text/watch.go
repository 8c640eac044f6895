package text

import (
	"stagedoor/actors/flow"
	"stagedoor/providers/dialogue"
)

// about returns the fields of a request that the page of requests shows.
func about(o *Request) flow.About {
	return flow.About{ID: o.ID, Shape: string(o.Inbound.Name), Model: o.Head.Model,
		Key: o.Key, Owner: o.Owner, App: flow.AppOf(o.In.Header), KeyGeneration: o.KeyGeneration, Stream: o.Head.Stream,
		Work: o.Head.Background}
}

// reasons maps the reasons for the end of a reply to words for operators.
var reasons = map[dialogue.Reason]string{
	dialogue.ReasonStop: "stop", dialogue.ReasonStopSequence: "stop sequence", dialogue.ReasonLength: "length",
	dialogue.ReasonTool:   "tool call",
	dialogue.ReasonFilter: "filter", dialogue.ReasonPause: "pause", dialogue.ReasonContextWindow: "context window",
	dialogue.ReasonMalformedCall: "malformed call", dialogue.ReasonOther: "other",
}

// resultOf describes the end of a request for actors/flow.
func resultOf(o *Outcome) flow.Result {
	r := flow.Result{Queued: o.Queued, Usage: o.Usage, ServiceTier: o.ServiceTier, Reason: reasons[o.Reason],
		Untouched: o.Untouched, Degraded: o.Degraded, Losses: o.Losses}
	r.Fail(o.Err)
	return r
}
