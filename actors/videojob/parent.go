package videojob

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state/work"
)

// restartAlways restarts the actors of jobs with back-off and without a limit, because each holds money and owes its
// owner a video. They continue from their records.
func restartAlways(system *kit.System) *kit.Backoff {
	return &kit.Backoff{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Report: func(f kit.Failure) {
		system.Logger().
			Error("video job failed", "actor", f.Child, "reason", f.Reason, "failures", f.Count, "restart_in", f.Delay)
	}}
}

// parent starts the jobs' actors and supervises them. Each incarnation of it adopts all jobs of this process that have
// not ended, because the actors of the earlier one were stopped.
type parent struct {
	svc  *Service
	live map[string]string // jobs by the id of their actor
}

// Receive implements actor.Actor.
func (p *parent) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.live = make(map[string]string)
		p.adoptAll(c)
	case *adopting:
		p.adopt(c, m.jobs)
		m.Resolve(struct{}{}, nil)
	case *startJob:
		p.startJob(c, m)
	case *actor.Terminated:
		p.svc.slots.release(p.live[m.Who.GetId()])
		delete(p.live, m.Who.GetId())
		p.count()
	}
}

// count publishes the number of actors for readers on other goroutines.
func (p *parent) count() { p.svc.live.Store(int64(len(p.live))) }

// adoptAll starts actors for the jobs that have not ended, but not for those that other processes work on.
func (p *parent) adoptAll(c actor.Context) {
	view := p.svc.State.View()
	p.svc.slots.releaseEnded(func(id string) bool {
		v, ok := work.FindAnyVideo(view, id)
		return ok && v.Final()
	})
	unfinished := work.ListUnfinishedVideos(view)
	if p.svc.State.Several() {
		unfinished = slices.DeleteFunc(unfinished, func(v work.Video) bool { return v.Node != p.svc.State.Node() })
	}
	p.adopt(c, unfinished)
}

// adopt starts actors for jobs that an earlier process, or an earlier incarnation of the parent, has begun.
func (p *parent) adopt(c actor.Context, jobs []work.Video) {
	going := make(map[string]bool, len(p.live))
	for _, id := range p.live {
		going[id] = true
	}
	for n := range jobs {
		if going[jobs[n].ID] {
			continue // the parent has restarted since this process took the job over, and has found it then
		}
		p.svc.slots.adopt(jobs[n].ID, jobs[n].Owner)
		r := newRun(jobs[n].ID)
		r.known, r.after = true, spread(&jobs[n], n)
		r.answered.Store(true)
		if err := p.spawn(c, r); err != nil {
			p.svc.System.Logger().Error("video job not adopted", "video", r.id, "cause", err)
		}
	}
	if len(jobs) > 0 {
		p.svc.System.Logger().Info("video jobs of an earlier process go on", "count", len(jobs))
	}
	p.count()
}

// startJob contains a panic, because a restart of the parent would stop all other jobs.
func (p *parent) startJob(c actor.Context, m *startJob) {
	defer func() {
		if reason := recover(); reason != nil {
			m.Resolve(struct{}{}, fmt.Errorf("spawn panicked: %T", reason))
		}
	}()
	m.Resolve(struct{}{}, p.spawn(c, m.run))
}

// spawn starts the actor of a job.
func (p *parent) spawn(c actor.Context, r *run) error {
	props := p.svc.System.Props("video", func() actor.Actor { return &job{svc: p.svc, run: r} },
		kit.WithSupervisor(restartAlways(p.svc.System)))
	pid, err := p.svc.System.SpawnChild(c, props, "v")
	if err == nil {
		p.live[pid.GetId()] = r.id
		p.count()
	}
	return err
}
