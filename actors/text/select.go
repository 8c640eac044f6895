package text

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
)

// selectTargets returns the request's plan without the targets that cannot serve it (catalog.Select), which it records
// on the request's span. If none is left, it sets x.unfit. Most requests are far smaller than any window and have
// targets that are able to do the same, and cost a few comparisons. The others are decoded once more and counted by the
// vocabulary, because an estimate by bytes would keep long conversations from targets that they fit.
func (x *exchange) selectTargets(ctx context.Context) []catalog.Candidate {
	q := x.request
	q.Plan = x.makerFirst(q.Plan)
	need := catalog.Need{Input: tokens.Estimate(len(q.Body)), Output: max(q.Head.MaxTokens, 0),
		Shortens: q.Head.Truncate || q.Head.Compacts}
	fits := !slices.ContainsFunc(q.Plan, func(c catalog.Candidate) bool { return !c.Fits(need.Input + need.Output) })
	if q.Head.Prompts > 1 || fits && !catalog.Differ(q.Plan) {
		return q.Plan // each prompt of a list is a call of its own
	}
	req, err := x.decodeForSelection()
	if err != nil {
		return q.Plan // the attempt reports it
	}
	EditContext(req) // a provider of the shape does the same
	need.Input = tokens.CountRequest(req)
	need.AddRequest(req)
	s := catalog.Select(q.Plan, need)
	recordSkipped(ctx, s.Skipped)
	if len(s.Plan) == 0 {
		x.unfit = upstream.TooLong(q.Inbound.Traits,
			upstream.PromptSize{Prompt: need.Input, Answer: need.Output, Limit: s.Largest})
		return q.Plan[:1]
	}
	return s.Plan
}

// makerFirst returns the plan with the target first that has compacted the conversation, because no other one can read
// what it made. It reads the body, because history may have been put into it after it was checked.
func (x *exchange) makerFirst(plan []catalog.Candidate) []catalog.Candidate {
	shape, compacts := x.request.Inbound.Inbound.(shapes.Compacting)
	if !compacts || len(plan) < 2 {
		return plan
	}
	made := shape.Compactions(x.request.Body)
	if len(made) == 0 {
		return plan
	}
	maker := x.env.CompactedBy(made[len(made)-1])
	at := slices.IndexFunc(plan, func(c catalog.Candidate) bool { return c.Provider.Name+"/"+c.Model == maker })
	if at <= 0 {
		return plan
	}
	first := plan[at]
	first.On = 0
	return slices.Insert(slices.Delete(slices.Clone(plan), at, at+1), 0, first)
}

// decodeForSelection reads the request and gives its memory back at once.
func (x *exchange) decodeForSelection() (*dialogue.Request, error) {
	claim := memory.NewClaim(x.svc.env.Memory, x.request.Owner)
	defer claim.End()
	if err := claim.Grow(memory.OfTranslation(x.request.Body)); err != nil {
		return nil, err
	}
	env := x.svc.env.ForOwner(x.request.Owner) // not x.env, which may record what the translation takes
	return x.request.Inbound.Decode(x.request.Body, x.request.In, env)
}

// recordSkipped adds the targets that were left out to the request's span.
func recordSkipped(ctx context.Context, skipped []catalog.Skipped) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	for _, s := range skipped {
		span.AddEvent(telemetry.EventSkipped, trace.WithAttributes(telemetry.Provider.String(s.Provider.Name),
			telemetry.RequestModel.String(s.Model), telemetry.Reason.String(s.Reason.String())))
	}
}
