package text

import (
	"stagedoor/actors/recording"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// record makes the exchange one that draft keeps, with the ids, times and signatures that its translation takes.
func (x *exchange) record(draft *recording.Draft) {
	q := x.request
	draft.Client(q.ID, recording.Client{Shape: q.Inbound.Name, Mode: uint8(q.Mode), Translate: q.Translate,
		ReplyID: q.ReplyID, Previous: q.PreviousResponseID, Owner: q.Owner}, q.In, q.Body)
	x.draft, x.env = draft, draft.Env(x.env)
}

// recordAttempt begins to keep the calls of the attempt.
func (a *attempt) recordAttempt() {
	if a.draft != nil {
		a.draft.Attempt(a.provider.Secrets())
	}
}

// recordTarget keeps the target of the attempt, and whether the attempt changed the request for the next one.
func (a *attempt) recordTarget() {
	if a.draft == nil {
		return
	}
	f := a.failed
	kept := recording.Attempt{Simulated: a.svc.simulates(a.provider), Tight: a.tight, Untouched: a.meta.Untouched,
		Amended: f != nil && (f.Amended || f.Schema && a.request.Head.Structured)}
	if a.shape != nil {
		kept.Target = a.c.Target(a.shape.Name)
	}
	a.draft.AttemptEnded(kept)
}

// recordEnd keeps how the exchange ended.
func (x *exchange) recordEnd() {
	if x.draft == nil {
		return
	}
	o := &x.outcome
	r := recording.Reply{Losses: o.Losses, Degraded: o.Degraded}
	if err := o.Err; err != nil {
		timedOut := x.attempt != nil && x.attempt.failed != nil && x.attempt.failed.Class == upstream.TimedOut
		r.Partial = err.Status == dialogue.StatusClientClosed || x.attempt == nil || timedOut
		if !o.Committed {
			r.Status, r.Error = err.Status, x.request.Inbound.Envelope(err)
		}
	}
	x.draft.End(r)
}
