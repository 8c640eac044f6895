package videojob

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/recording"
	"stagedoor/providers/dialogue"
	"stagedoor/state/work"
)

// message is a message that a job's actor or its parent accepts, besides those of the library. The set is closed and
// contains only pointer types.
type message interface{ videoMessage() }

// startJob asks the parent to start the actor of a job that has a record.
type startJob struct {
	kit.Reply[struct{}]
	run *run
}

func (*startJob) videoMessage() {}

// adopting asks the parent to start actors for jobs that another process has begun. The reply comes after the jobs that
// the parent has found itself have actors, too.
type adopting struct {
	kit.Reply[struct{}]
	jobs []work.Video
}

func (*adopting) videoMessage() {}

// stepped reports the result of a step, which has ended.
type stepped struct {
	base, video work.Video // as in job
	// unsaved is set if the record does not have the content of video yet.
	unsaved bool
	// hanging is set if it is still unknown whether an interrupted action was done; see recovered.
	hanging bool
	// stale is set if another actor has written the record.
	stale bool
	// again is the time after which to repeat the step; 0 means the next step at once.
	again time.Duration
	// asked is the time after which the provider wants to be polled again.
	asked time.Duration
	// misses counts polls in a row in which the provider did not know the job.
	misses int
	// err is the client's error for a submission that was refused.
	err *dialogue.Error
}

func (*stepped) videoMessage() {}

// cancelled reports that an operator has ended the job, so that the next step starts at once.
type cancelled struct{}

func (*cancelled) videoMessage() {}

// IgnoreDeadLetterLogging marks a message that may arrive after the job has ended.
func (*cancelled) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging marks a message that may arrive late, because a stopping actor does not wait for its step.
// The step writes its record anyway.
func (*stepped) IgnoreDeadLetterLogging() {}

var _, _, _, _ message = (*startJob)(nil), (*adopting)(nil), (*stepped)(nil), (*cancelled)(nil)

// run is shared by the incarnations of a job's actor and the caller that started the job.
type run struct {
	id       string
	after    time.Duration // until the first step
	begun    atomic.Bool   // an earlier incarnation existed
	known    bool          // an earlier process started the job
	answered atomic.Bool   // the reply is decided, or the client has left
	answer   chan answer

	// draft keeps the submission while the client that has sent it waits, or is nil.
	draft *recording.Draft

	// ended ends with the cause when an operator ends the job.
	ended context.Context
	end   context.CancelCauseFunc
	shown *flow.Request // used by the actor only; nil before and after the job is shown
}

// newRun returns the shared part of a job with this id.
func newRun(id string) *run {
	r := &run{id: id, answer: make(chan answer, 1)}
	r.ended, r.end = context.WithCancelCause(context.Background())
	return r
}

// answer is the reply to the client that started the job.
type answer struct {
	video work.Video
	err   error
}

// claim returns true to the first caller only, which may decide the reply. If the waiting client lost the claim, a
// reply will come.
func (r *run) claim() bool { return !r.answered.Swap(true) }

// reply sends the reply to the client. The caller must have claimed it.
func (r *run) reply(v work.Video, err error) {
	select {
	case r.answer <- answer{v, err}:
	default:
	}
}

// job is the actor of one video that has not ended. Its state is private to Receive, and to the step while that runs.
type job struct {
	svc   *Service
	run   *run
	timer *kit.Timer

	base    work.Video // the content of the record
	video   work.Video
	unsaved bool // the record does not have the content of video yet
	// hanging is described at stepped.hanging.
	hanging bool
	// stepping is set while a step runs.
	stepping bool
	polls    int
	misses   int
	err      *dialogue.Error
}

// Receive implements actor.Actor.
func (j *job) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		j.timer = j.svc.System.NewTimer(c.Self())
		j.hanging = j.run.begun.Swap(true) || j.run.known
		if j.load(c) {
			j.show(c.Self())
			j.wait(j.run.after)
		}
	case *cancelled:
		if !j.stepping {
			j.wait(0)
		}
	case *kit.Tick:
		if j.timer.Fired(m) {
			j.step(c)
		}
	case *stepped:
		j.stepped(c, m)
	case *kit.Crashed:
		j.svc.System.Logger().Error("step of a video job panicked", "video", j.run.id,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		j.reload(c)
	case *actor.Stopping, *actor.Restarting:
		j.timer.Stop()
	case *actor.Stopped:
		j.hide()
		if j.run.claim() {
			j.run.reply(j.video, nil) // the job continues from its record after a restart
		}
	}
}

// load reads the record. It returns false if there is nothing left to do.
func (j *job) load(c actor.Context) bool {
	v, ok := work.FindAnyVideo(j.svc.State.View(), j.run.id)
	if !ok || v.Final() || j.svc.takenOver(&v) {
		c.Stop(c.Self())
		return false
	}
	j.base, j.video, j.unsaved = v, v, false
	return true
}

// reload continues from the record, as after a restart.
func (j *job) reload(c actor.Context) {
	j.hanging, j.stepping = true, false
	if j.load(c) {
		j.wait(firstWait)
	}
}

// wait sets the timer for the next step, and replaces an earlier one.
func (j *job) wait(d time.Duration) {
	now := time.Now()
	j.timer.Stop()
	j.timer.Wake(now, now.Add(d))
}

// step starts the next step on a goroutine of its own. If another process has taken the job over, it stops the actor
// instead, because only one of them may submit, poll and charge.
func (j *job) step(c actor.Context) {
	if v, ok := work.FindAnyVideo(j.svc.State.View(), j.run.id); ok && j.svc.takenOver(&v) {
		c.Stop(c.Self())
		return
	}
	s := &step{
		svc:     j.svc,
		run:     j.run,
		base:    j.base,
		video:   j.video,
		unsaved: j.unsaved,
		hanging: j.hanging,
		misses:  j.misses,
	}
	j.stepping = true
	j.svc.System.Go(c.Self(), "video step", s.perform)
}

// stepped takes over the result of a step and decides what to do next: reply, wait, poll, start the
// next step, or end.
func (j *job) stepped(c actor.Context, m *stepped) {
	j.stepping = false
	if m.stale {
		j.reload(c)
		return
	}
	was := nextAction(&j.video)
	j.base, j.video, j.unsaved = m.base, m.video, m.unsaved
	if m.err != nil {
		j.err = m.err
	}
	j.misses, j.hanging = m.misses, m.hanging
	j.updateShown()
	switch {
	case j.video.Final() && !j.unsaved:
		j.finish(c)
	case j.run.ended.Err() != nil && !j.unsaved && nextAction(&j.video) != settle:
		j.wait(0) // ends the job now, whatever it waits for
	case m.again > 0:
		j.wait(m.again)
	case nextAction(&j.video) != poll:
		j.wait(0)
	default:
		if was != poll && j.run.claim() {
			j.run.reply(j.video, nil)
		}
		j.wait(pollWait(j.polls, m.asked, rand.Float64()))
		j.polls++
	}
}

// finish replies to the client and stops the actor. The record has the result.
func (j *job) finish(c actor.Context) {
	j.showEnd()
	switch {
	case j.err != nil:
		j.run.reply(j.video, j.err) // the step has claimed the answer
	case !j.video.Deleted.IsZero():
		j.run.reply(j.video, dialogue.FailedJob(j.video.Error.Code, j.video.Error.Message))
	case j.run.claim():
		j.run.reply(j.video, nil)
	}
	c.Stop(c.Self())
}
