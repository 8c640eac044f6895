package videojob_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/dialogue"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// shown returns the only job that operators see in flight.
func (p *process) shown() flow.View {
	p.t.Helper()
	all := p.flow.Active(nil)
	if len(all) != 1 {
		p.t.Fatalf("%d jobs are shown, want one", len(all))
	}
	return all[0].View(time.Now())
}

// ended returns the only job that they see as ended.
func (p *process) ended() flow.Result {
	p.t.Helper()
	all := p.flow.Recent()
	if len(all) != 1 || len(p.flow.Active(nil)) != 0 {
		p.t.Fatalf("%d jobs are shown as ended, %d as in flight, want one and none", len(all), len(p.flow.Active(nil)))
	}
	return *all[0].View(time.Now()).Result
}

func TestJobsAreShownWithPhaseAndProgress(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		v := p.create(newRequest("a cat"))
		got := p.shown()
		if got.ID != v.ID || !got.Job || got.Phase != flow.Queued || got.Model != "video-2" ||
			got.Upstream != "sora-2" ||
			got.Provider != "vendor" ||
			got.Key != "key_1" ||
			!got.Began.Equal(v.Created) ||
			got.Progress != 0 {
			t.Errorf("shown as %+v", got)
		}
		var seen []flow.Phase
		progress := 0
		for now := v; !now.Final(); {
			_, changed, _ := work.WatchVideo(p.state, v.ID, owner)
			<-changed
			kittest.Quiesce()
			if now = p.look(v.ID); now.Phase != work.VideoInProgress {
				continue
			}
			got := p.shown()
			if seen = append(seen, got.Phase); got.Progress != now.Progress || got.Progress < progress {
				t.Errorf("%d %% are shown of %d %%, after %d %%", got.Progress, now.Progress, progress)
			}
			progress = got.Progress
		}
		if progress == 0 || slices.ContainsFunc(seen, func(p flow.Phase) bool { return p != flow.Making }) {
			t.Errorf("went through %v up to %d %%", seen, progress)
		}
		if r := p.ended(); r.Status != 0 || r.Reason != "completed" || r.Took != p.look(v.ID).Completed.Sub(v.Created) {
			t.Errorf("ended as %+v", r)
		}
	})
}

func TestJobsOfAnEarlierProcessAreShownFromTheirBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, vendor := journal.NewMemory(), newVendor()
		first := start(t, store, vendor, nil)
		first.credit()
		v := first.create(newRequest("a cat"))
		kittest.Pass(10 * time.Second)
		first.end()
		if n := len(first.flow.Active(nil)); n != 0 || first.flow.Totals().Ended != 0 {
			t.Errorf("%d jobs are shown by a process that has stopped, %d as ended", n, first.flow.Totals().Ended)
		}
		next := start(t, store, vendor, nil)
		kittest.Pass(5 * time.Second)
		if got := next.shown(); got.ID != v.ID || got.Phase != flow.Making || !got.Began.Equal(v.Created) ||
			got.Progress == 0 {
			t.Errorf("shown as %+v", got)
		}
		kittest.Pass(time.Minute)
		next.ended()
		next.end()
		time.Sleep(5 * time.Second)
	})
}

// A job that an operator ends fails at once, costs nothing and is deleted at its provider.
func TestOperatorsEndJobs(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*process) // it is created
		pass          time.Duration
		made          int
		remote        bool
	}{
		"at its provider's limiter": {before: func(p *process) { p.limiter.Pause() }, pass: 20 * time.Second},
		"queued":                    {made: 1, remote: true},
		"in progress":               {pass: 15 * time.Second, made: 1, remote: true},
		"its provider is gone": {after: func(p *process) { p.vendor.absent.Store(true) },
			pass: 20 * time.Second, made: 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, p *process) {
				if c.before != nil {
					c.before(p)
				}
				v := p.create(newRequest("a cat"))
				if c.after != nil {
					c.after(p)
				}
				kittest.Pass(c.pass)
				begin := time.Now()
				if err := p.flow.Cancel(v.ID); err != nil {
					t.Fatal(err)
				}
				kittest.Quiesce()
				now := p.look(v.ID)
				if now.Phase != work.VideoFailed || now.Error.Code != "cancelled_by_operator" ||
					time.Since(begin) > time.Second {
					t.Errorf("%v later it is %s, %+v", time.Since(begin), now.Phase, now.Error)
				}
				if r := p.ended(); r.Status != 502 || r.Code != "cancelled_by_operator" {
					t.Errorf("shown as %+v", r)
				}
				if err := p.flow.Cancel(v.ID); !errors.Is(err, flow.ErrOver) {
					t.Errorf("again: %v", err)
				}
				kittest.Pass(time.Minute)
				p.checkCharge(0)
				if gone := slices.Contains(p.vendor.gone, now.UpstreamID); gone != c.remote ||
					p.vendor.made() != c.made {
					t.Errorf("deleted at its provider: %v, made %d", gone, p.vendor.made())
				}
			})
		})
	}
}

// A client that still waits for the provider gets an error and has no job.
func TestAJobEndedBeforeAcceptanceIsAnErrorForItsClient(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		p.limiter.Pause()
		replied := make(chan error)
		go func() {
			_, _, err := p.svc.Create(t.Context(), newRequest("a cat"))
			replied <- err
		}()
		kittest.Pass(time.Second)
		if err := p.flow.Cancel(p.shown().ID); err != nil {
			t.Fatal(err)
		}
		err, ok := errors.AsType[*dialogue.Error](<-replied)
		if !ok || err.Code != "cancelled_by_operator" || !err.NoRetry {
			t.Errorf("got the error %v", err)
		}
		if list, _ := work.ListVideos(p.state.View(), owner, work.VideoPage{Limit: 10}); len(list) != 0 {
			t.Errorf("%d jobs are left", len(list))
		}
		kittest.Pass(time.Minute)
		p.checkCharge(0)
	})
}
