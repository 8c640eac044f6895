package translator

import (
	"fmt"
	"strings"

	"stagedoor/actors/flow"
	"stagedoor/providers/dialogue"
)

// maxModelName bounds what is shown of a name that a client sent.
const maxModelName = 128

// about is what those who look at a request see of its order. The model's name may
// lie in the body, which goes back to its pool before the request is forgotten.
func about(o *Order) flow.About {
	return flow.About{ID: o.ID, Shape: string(o.Inbound.Name()), Model: strings.Clone(o.Head.Model[:min(len(o.Head.Model), maxModelName)]),
		Key: o.Tenant, Stream: o.Head.Stream, Work: o.Head.Background}
}

// reasons are why replies end, as operators read it.
var reasons = map[dialogue.Reason]string{
	dialogue.ReasonStop: "stop", dialogue.ReasonStopSequence: "stop sequence", dialogue.ReasonLength: "length", dialogue.ReasonTool: "tool call",
	dialogue.ReasonFilter: "filter", dialogue.ReasonPause: "pause", dialogue.ReasonContextWindow: "context window",
	dialogue.ReasonMalformedCall: "malformed call", dialogue.ReasonOther: "other",
}

// resultOf is what they see of how it ended.
func resultOf(o *Outcome) flow.Result {
	r := flow.Result{Queued: o.Queued, Usage: o.Usage, Reason: reasons[o.Reason], Untouched: o.Untouched, Degraded: o.Degraded, Losses: o.Losses}
	if o.Err != nil {
		r.Reason = ""
		r.Status, r.Code = o.Err.Status, "error"
		if o.Err.Code != nil {
			r.Code = fmt.Sprint(o.Err.Code)
		}
	}
	return r
}
