package videojob

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/work"
)

// Administrators see a job as its record describes it, from the job's creation on, in whatever process that was.

// shape is the shape that clients of jobs use.
const shape = "videos"

// phases maps the phase of a job to the one that administrators see. Settling takes moments, so it is not a phase of
// its own.
var phases = map[work.VideoPhase]flow.Phase{work.VideoAccepted: flow.Queued, work.VideoSubmitting: flow.Queued,
	work.VideoQueued: flow.Queued, work.VideoInProgress: flow.Making}

// show makes the job visible, unless an earlier incarnation did.
func (j *job) show(self *actor.PID) {
	v := &j.video
	if j.run.shown == nil {
		system := j.svc.System
		j.run.shown = j.svc.Flow.Begin(
			context.Background(),
			flow.About{
				ID:    v.ID,
				Shape: shape,
				Model: v.Model,
				Key:   v.Key,
				Owner: string(v.Owner),
				Work:  true,
				Job:   true,
				Since: v.Created,
			},
			func(cause error) {
				j.run.end(cause)
				system.Send(self, &cancelled{})
			},
		)
		j.run.shown.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: v.Provider}, Model: v.UpstreamModel})
	}
	j.updateShown()
}

// updateShown updates the phase and the progress that administrators see.
func (j *job) updateShown() {
	r := j.run.shown
	if r == nil {
		return
	}
	if p, ok := phases[j.video.Phase]; ok && p != r.Phase() {
		r.Enter(p)
	}
	r.Advance(j.video.Progress)
}

// showEnd ends what administrators see of the job with its result, adds its cost to the figures, and writes it to the
// log of requests.
func (j *job) showEnd() {
	result := flow.Result{Usage: dialogue.NoUsage, Reason: string(j.video.Phase)}
	if fault := j.video.Error; fault != nil { // the record has no status
		result.Fail(dialogue.FailedJob(fault.Code, fault.Message))
	}
	result.Fail(j.err)
	shown := j.run.shown
	shown.End(result)
	flow.AddCharge(shown.Charging(context.Background()), j.video.Cost)
	shown.Record()
	j.run.shown = nil
}

// hide removes a job that has not ended and that another incarnation continues.
func (j *job) hide() {
	j.run.shown.Leave()
	j.run.shown = nil
}

// endByOperator fails a job that an operator has ended and asks its provider to stop. If the
// provider does not stop, its video is not used, and it is asked again.
func (s *step) endByOperator() {
	e, ok := errors.AsType[*dialogue.Error](context.Cause(s.run.ended))
	if !ok {
		e = dialogue.Internal(context.Cause(s.run.ended))
	}
	s.fail(e)
	s.video.PurgeFrom(s.svc.Now().Add(ownAttempt))
	if s.save(); !s.unsaved {
		ended := s.video
		s.svc.startDeletion(&ended)
	}
}
