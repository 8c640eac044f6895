package videojob_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// The process is killed after each commit, and before and after the call that makes the video. The
// next process ends the job. Either the video was made once, or the job failed and cost nothing
// because the result is unknown.
func TestAKillNeitherRepeatsNorLosesAVideo(t *testing.T) {
	phase := func(name string) func(*process) {
		return func(p *process) {
			p.disk.killed = func(op journal.Op) bool { return contains(op, journal.Job, `"phase":"`+name+`"`) }
		}
	}
	for _, c := range []struct {
		name string
		kill func(*process)
		lost bool // if the provider knows no idempotency keys
	}{
		{"held", func(p *process) {
			p.disk.killed = func(op journal.Op) bool { return op.Table == journal.Hold && op.Kind == journal.Put }
		}, false},
		{"accepted", phase("accepted"), false},
		{"submitting", phase("submitting"), true},
		{"before the call", func(p *process) {
			p.vendor.before = func() error { p.disk.kill(); return nil }
		}, true},
		{"after the call", func(p *process) {
			p.vendor.after = func() error { p.disk.kill(); return nil }
		}, true},
		{"queued", phase("queued"), false},
		{"in progress", phase("in_progress"), false},
		{"finalizing", phase("finalizing"), false},
		{"settled", func(p *process) {
			p.disk.killed = func(op journal.Op) bool { return op.Table == journal.Receipt && op.Kind == journal.Put }
		}, false},
		{"completed", phase("completed"), false},
	} {
		for _, idempotent := range []bool{true, false} {
			name := c.name + ", no keys"
			if idempotent {
				name = c.name
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, v := journal.NewMemory(), newVendor()
					v.idempotent = idempotent
					first := start(t, store, v, nil)
					first.credit()
					c.kill(first)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					_, _, _ = first.svc.Create(ctx,
						newRequest("a cat")) // the process is dead, so its result does not count
					cancel()
					kittest.Pass(2 * time.Minute)
					first.disk.mu.Lock()
					dead := first.disk.dead
					first.disk.mu.Unlock()
					if !dead {
						t.Fatal("it was not killed")
					}
					first.end()
					v.before, v.after = nil, nil

					// The configuration comes later than the jobs.
					v.absent.Store(true)
					second := start(t, store, v, nil)
					kittest.Pass(time.Minute)
					v.absent.Store(false)
					kittest.Pass(5 * time.Minute)
					judge(t, second, c.name == "held", c.lost && !idempotent)
					second.end()
					time.Sleep(5 * time.Second)
				})
			})
		}
	}
}

// judge looks at the one job after all.
func judge(t *testing.T, p *process, never, lost bool) {
	t.Helper()
	list, _ := work.ListVideos(p.state.View(), owner, work.VideoPage{Limit: 10})
	if never {
		if len(list) != 0 || p.vendor.made() != 0 {
			t.Errorf("%d jobs, %d made", len(list), p.vendor.made())
		}
		p.checkCharge(0)
		return
	}
	if len(list) != 1 {
		t.Fatalf("%d jobs", len(list))
	}
	v := list[0]
	for _, key := range p.vendor.keys {
		if key != v.ID {
			t.Errorf("submitted under %s", key)
		}
	}
	if lost {
		if v.Phase != work.VideoFailed || v.Error.Code != "submission_lost" || len(p.vendor.keys) > 1 {
			t.Errorf("ended as %s, %+v, after %d submissions", v.Phase, v.Error, len(p.vendor.keys))
		}
		p.checkCharge(0)
		return
	}
	if v.Phase != work.VideoCompleted || p.vendor.made() != 1 || v.Cost != 4*second {
		t.Errorf("ended as %s, %+v, cost %d, made %d", v.Phase, v.Error, v.Cost, p.vendor.made())
	}
	p.checkCharge(4 * second)
}

// A process that stops lets a submission end, and no provider gets the job twice.
func TestAStopLosesNoSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, v := journal.NewMemory(), newVendor()
		v.idempotent = false
		v.before = func() error { time.Sleep(5 * time.Second); return nil }
		first := start(t, store, v, nil)
		first.credit()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		job, _, err := first.svc.Create(ctx, newRequest("a cat"))
		if err != nil {
			t.Fatal(err)
		}
		first.end()
		next := start(t, store, v, nil)
		kittest.Pass(5 * time.Minute)
		if got := next.look(job.ID); got.Phase != work.VideoCompleted || v.made() != 1 {
			t.Errorf("ended as %+v, made %d", got, v.made())
		}
		next.checkCharge(4 * second)
		next.end()
		time.Sleep(5 * time.Second)
	})
}
