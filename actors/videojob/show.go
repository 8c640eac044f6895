package videojob

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// What operators see of a job is its record: the phase it says, the progress it says,
// from the job's creation on, whichever process that was in.

// shape is what the clients of jobs speak.
const shape = "videos"

// phases are what the states of a job are to those who look, as its client sees them.
// Money is moved within moments, so that is none of its own.
var phases = map[state.VideoPhase]flow.Phase{state.VideoAccepted: flow.Queued, state.VideoSubmitting: flow.Queued,
	state.VideoQueued: flow.Queued, state.VideoInProgress: flow.Making}

// show shows the job, unless an incarnation before did.
func (j *job) show(self *actor.PID) {
	v := &j.video
	if j.run.shown == nil {
		system := j.svc.System
		j.run.shown = j.svc.Flow.Begin(context.Background(), flow.About{ID: v.ID, Shape: shape, Model: v.Model, Key: v.Key, Owner: string(v.Owner), Work: true, Job: true, Since: v.Created},
			func(cause error) {
				j.run.end(cause)
				system.Send(self, &hurried{})
			})
		j.run.shown.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: v.Provider}, Model: v.UpstreamModel})
	}
	j.follow()
}

// follow shows where the job is by now.
func (j *job) follow() {
	r := j.run.shown
	if r == nil {
		return
	}
	if p, ok := phases[j.video.Phase]; ok && p != r.Phase() {
		r.Enter(p)
	}
	r.Advance(j.video.Progress)
}

// conclude shows how the job ended.
func (j *job) conclude() {
	result := flow.Result{Usage: dialogue.NoUsage, Reason: string(j.video.Phase)}
	if fault := j.video.Error; fault != nil { // of which nobody was told a status
		result.Fail(dialogue.FailedJob(fault.Code, fault.Message))
	}
	result.Fail(j.err)
	j.run.shown.End(result)
	j.run.shown = nil
}

// hide takes a job away that has not ended: another incarnation goes on with it.
func (j *job) hide() {
	j.run.shown.Leave()
	j.run.shown = nil
}

// endedByHand fails a job that an operator does not want. Its provider is asked to
// stop; one that does not makes it for nobody.
func (s *step) endedByHand() {
	upstream := s.video
	told, ok := errors.AsType[*dialogue.Error](context.Cause(s.run.ended))
	if !ok {
		told = internal(context.Cause(s.run.ended))
	}
	s.fail(told)
	if s.save(); !s.unsaved && upstream.UpstreamID != "" {
		s.svc.System.Go(s.svc.parent, "delete video", func(ctx context.Context) any { s.svc.forget(ctx, &upstream); return nil })
	}
}
