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
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// message is anything a job's actor or their parent accept besides the library's
// own. The set is closed, and only pointers are in it.
type message interface{ videoMessage() }

// begin asks the parent for the actor of a job whose record is there.
type begin struct {
	kit.Reply[struct{}]
	run *run
}

func (*begin) videoMessage() {}

// adopted asks the parent whether the jobs of earlier processes have their actors.
type adopted struct{ kit.Reply[struct{}] }

func (*adopted) videoMessage() {}

// stepped is the last act of a step.
type stepped struct {
	video state.Video
	// unsaved: the record does not say yet what video says.
	unsaved bool
	// hanging: what was interrupted still is, see recovered.
	hanging bool
	// stale: somebody else has written the record.
	stale bool
	// again is when the same is to be tried once more; 0: go on at once.
	again time.Duration
	// asked is how long the provider wants to be left alone.
	asked time.Duration
	// misses is how often in a row the provider did not know the job.
	misses int
	// err is what the client is told of a submission that was refused.
	err *dialogue.Error
}

func (*stepped) videoMessage() {}

// hurried tells that an operator has ended the job: the next step need not be waited
// for.
type hurried struct{}

func (*hurried) videoMessage() {}

// IgnoreDeadLetterLogging: the job may just have ended by itself.
func (*hurried) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: a stopping actor does not wait for its step, whose
// record is written all the same.
func (*stepped) IgnoreDeadLetterLogging() {}

var _, _, _, _ message = (*begin)(nil), (*adopted)(nil), (*stepped)(nil), (*hurried)(nil)

// run is what the incarnations of a job's actor share with whoever began it.
type run struct {
	id     string
	after  time.Duration // until the first step
	begun  atomic.Bool   // there was an incarnation before
	known  bool          // the job is from an earlier process
	told   atomic.Bool   // nobody waits, or the answer is decided
	answer chan answer

	// ended ends when an operator ends the job, with the cause.
	ended context.Context
	end   context.CancelCauseFunc
	shown *flow.Request // the actor's; nil: not yet, or not any more
}

func newRun(id string) *run {
	r := &run{id: id, answer: make(chan answer, 1)}
	r.ended, r.end = context.WithCancelCause(context.Background())
	return r
}

type answer struct {
	video state.Video
	err   error
}

// claim takes the right to decide what the client is told. Whoever gets it from
// the waiting client must send an answer.
func (r *run) claim() bool { return !r.told.Swap(true) }

// reply answers, if the client still waits or claimed says that it does.
func (r *run) reply(v state.Video, err error) {
	select {
	case r.answer <- answer{v, err}:
	default:
	}
}

// job is the control plane of one video that has not ended. Its state is private
// to Receive, and a step's while that runs.
type job struct {
	svc   *Service
	run   *run
	timer *kit.Timer

	video   state.Video
	unsaved bool
	// hanging: a step was interrupted, see recovered.
	hanging bool
	// stepping: a step is under way.
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
	case *hurried:
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
			j.run.reply(j.video, nil) // the record goes on
		}
	}
}

// load reads the record. False: there is nothing left to do.
func (j *job) load(c actor.Context) bool {
	v, ok := j.svc.State.View().AnyVideo(j.run.id)
	if !ok || v.Final() {
		c.Stop(c.Self())
		return false
	}
	j.video, j.unsaved = v, false
	return true
}

// reload goes on from the record, as after a restart.
func (j *job) reload(c actor.Context) {
	j.hanging, j.stepping = true, false
	if j.load(c) {
		j.wait(firstWait)
	}
}

func (j *job) wait(d time.Duration) {
	now := time.Now()
	j.timer.Stop()
	j.timer.Wake(now, now.Add(d))
}

// step starts the next step beside the actor.
func (j *job) step(c actor.Context) {
	s := &step{svc: j.svc, run: j.run, base: j.video, video: j.video, unsaved: j.unsaved, hanging: j.hanging, misses: j.misses}
	j.stepping = true
	j.svc.System.Go(c.Self(), "video step", s.perform)
}

func (j *job) stepped(c actor.Context, m *stepped) {
	j.stepping = false
	if m.stale {
		j.reload(c)
		return
	}
	was := next(&j.video)
	j.video, j.unsaved = m.video, m.unsaved
	if m.err != nil {
		j.err = m.err
	}
	j.misses, j.hanging = m.misses, m.hanging
	j.follow()
	switch {
	case j.video.Final():
		j.end(c)
	case j.run.ended.Err() != nil && !j.unsaved && next(&j.video) != settle:
		j.wait(0) // to end it, whatever it waits for
	case m.again > 0:
		j.wait(m.again)
	case next(&j.video) != poll:
		j.wait(0)
	default:
		if was != poll && j.run.claim() {
			j.run.reply(j.video, nil)
		}
		j.wait(pollWait(j.polls, m.asked, rand.Float64()))
		j.polls++
	}
}

// end is the last of a job. What it was is in its record.
func (j *job) end(c actor.Context) {
	j.conclude()
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
