package videojob_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/actors/videojob"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

func TestAVideoIsMadeAndPaid(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		v := p.create(newRequest("a cat"))
		if v.Phase != work.VideoQueued || v.UpstreamID == "" || v.Spec != nil {
			t.Fatalf("created as %+v", v)
		}
		if b, _ := p.ledger.Balance(t.Context(), "7"); b.Held != 4*second {
			t.Errorf("%d held", b.Held)
		}
		last, seen := v, 0
		for !last.Final() {
			_, changed, ok := work.WatchVideo(p.state, v.ID, owner)
			if !ok {
				t.Fatal("it is gone")
			}
			<-changed
			now := p.look(v.ID)
			if now.Progress < last.Progress {
				t.Errorf("went from %d to %d %%", last.Progress, now.Progress)
			}
			last = now
			seen++
		}
		if last.Phase != work.VideoCompleted || last.Progress != 100 || last.Cost != 4*second ||
			last.Expires.IsZero() ||
			seen < 3 {
			t.Errorf("ended as %+v after %d changes", last, seen)
		}
		p.checkCharge(4 * second)
		r, err := money.Receipts(t.Context(), p.state, "7", v.ID)
		if err != nil || len(r) != 1 || r[0].Charged != 4*second || r[0].Usage.Seconds != 4 ||
			r[0].Provider != "vendor" {
			t.Errorf("receipts %+v, %v", r, err)
		}
		kittest.Quiesce()
		if n := p.svc.InFlight(); n != 0 {
			t.Errorf("%d actors are left", n)
		}
		counts := p.vendor.engine.Counts()
		if len(counts) != 1 || counts[0].Submissions != 1 || counts[0].Polls > 10 {
			t.Errorf("the provider saw %+v", counts)
		}
	})
}

// The hold is for the requested length, and the charge for the length that was made.
func TestAVideoIsPaidAsItsProviderReportsIt(t *testing.T) {
	for reported, want := range map[int]struct {
		seconds int64
		flags   string
	}{0: {4, ""}, 3: {3, ""}, 4: {4, ""}, 8: {8, ""}, 9000: {20, ledger.FlagAbsurd}} {
		play(t, func(t *testing.T, p *process) {
			p.vendor.seconds = reported
			v := p.create(newRequest("a cat"))
			kittest.Pass(5 * time.Minute)
			v = p.look(v.ID)
			if v.Phase != work.VideoCompleted || v.Cost != want.seconds*second {
				t.Errorf("%d s reported: got %+v", reported, v)
			}
			r, err := money.Receipts(t.Context(), p.state, "7", v.ID)
			if err != nil || len(r) != 1 || r[0].Charged != want.seconds*second || r[0].Usage.Seconds != want.seconds ||
				strings.Contains(strings.Join(r[0].Flags, " "), ledger.FlagAbsurd) != (want.flags != "") {
				t.Errorf("%d s reported: got the receipts %+v, %v", reported, r, err)
			}
		})
	}
}

// Every failure is reported as a failed job and costs nothing.
func TestVideosThatFailCostNothing(t *testing.T) {
	broken := errors.New("a broken connection")
	for name, c := range map[string]struct {
		set  func(*vendor)
		code string
	}{
		"provider fails": {func(v *vendor) { v.faults = job.Faults{Ending: job.Fails, At: 50} },
			"video_generation_failed"},
		"moderation": {func(v *vendor) { v.faults = job.Faults{Ending: job.Blocked, At: 50} },
			"moderation_blocked"},
		"provider forgets": {func(v *vendor) { v.faults = job.Faults{Ending: job.Vanishes, At: 50} },
			"upstream_lost"},
		"never ends": {func(v *vendor) { v.faults = job.Faults{Ending: job.Freezes, At: 50} },
			"deadline_exceeded"},
		"cannot be asked":     {func(v *vendor) { v.polling = func() error { return broken } }, "deadline_exceeded"},
		"provider never free": {func(v *vendor) { v.before = failing(upstream.Overloaded) }, "deadline_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, p *process) {
				c.set(p.vendor)
				v := p.create(newRequest("a cat"))
				kittest.Pass(40 * time.Minute)
				v = p.look(v.ID)
				if v.Phase != work.VideoFailed || v.Error == nil || v.Error.Code != c.code || v.Error.Message == "" ||
					v.Completed.IsZero() {
					t.Errorf("ended as %+v, %+v", v, v.Error)
				}
				p.checkCharge(0)
			})
		})
	}
}

func failing(class upstream.Class) func() error {
	return func() error {
		return &upstream.Failure{
			Class: class,
			Err: &dialogue.Error{
				Status:  400,
				Type:    dialogue.TypeInvalidRequest,
				Code:    "moderation_blocked",
				Message: "no",
			},
		}
	}
}

// A client that waits gets the refusal as its error, and there is no job.
func TestARefusalIsTheClientsErrorAndLeavesNoJob(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		play(t, func(t *testing.T, p *process) {
			p.vendor.idempotent = idempotent
			p.vendor.before = failing(upstream.CallerFault)
			o := newRequest("something bad")
			o.Video.Once, o.Video.Asked = "k", state.HashSecret("body")
			_, _, err := p.svc.Create(t.Context(), o)
			var e *dialogue.Error
			if !errors.As(err, &e) || e.Code != "moderation_blocked" || e.Status != 400 {
				t.Errorf("got the error %v", err)
			}
			if list, _ := work.ListVideos(p.state.View(), owner, work.VideoPage{Limit: 10}); len(list) != 0 {
				t.Errorf("%d jobs are left", len(list))
			}
			kittest.Pass(time.Minute)
			p.checkCharge(0)
			p.vendor.before = nil
			if v, again, err := p.svc.Create(t.Context(), o); again || err != nil || v.UpstreamID == "" {
				t.Errorf("tried again: %v, %v, %v", v.Phase, again, err)
			}
		})
	}
}

// If a connection breaks during a submission, the job is sent again under the same key where that
// is safe, and otherwise not.
func TestASubmissionThatBreaksIsNeverMadeTwice(t *testing.T) {
	for _, c := range []struct {
		idempotent bool
		code       any
		made       int
		charged    int64
	}{{true, nil, 1, 4 * second}, {false, "submission_lost", 1, 0}} {
		play(t, func(t *testing.T, p *process) {
			p.vendor.idempotent = c.idempotent
			n := 0
			p.vendor.after = func() error {
				if n++; n == 1 {
					return failing(upstream.MaybeSent)()
				}
				return nil
			}
			_, _, err := p.svc.Create(t.Context(), newRequest("a cat"))
			var e *dialogue.Error
			if errors.As(err, &e) != (c.code != nil) || e != nil && e.Code != c.code {
				t.Errorf("got the error %v", err)
			}
			kittest.Pass(5 * time.Minute)
			if got := p.vendor.made(); got != c.made {
				t.Errorf("made %d times", got)
			}
			p.checkCharge(c.charged)
		})
	}
}

// TestAJobGoesOnWhenAWriteDidNotReachTheStore: each phase is written at the third try. The provider knows no
// idempotency keys, so that it would make an accepted job a second time.
func TestAJobGoesOnWhenAWriteDidNotReachTheStore(t *testing.T) {
	for _, phase := range []string{"submitting", "queued", "in_progress", "finalizing", "completed"} {
		play(t, func(t *testing.T, p *process) {
			p.vendor.idempotent = false
			tries := 0
			p.disk.away = func(op journal.Op) bool {
				if !contains(op, journal.Job, `"phase":"`+phase+`"`) {
					return false
				}
				tries++
				return tries < 3
			}
			v := p.create(newRequest("a cat"))
			kittest.Pass(5 * time.Minute)
			if v = p.look(v.ID); v.Phase != work.VideoCompleted || p.vendor.made() != 1 || tries < 3 {
				t.Errorf("%s: ended as %+v after %d submissions and %d tries", phase, v, p.vendor.made(), tries)
			}
			p.checkCharge(4 * second)
		})
	}
}

func TestABusyProviderIsTriedAgain(t *testing.T) {
	for _, class := range []upstream.Class{upstream.NotSent, upstream.RateLimited, upstream.Overloaded} {
		play(t, func(t *testing.T, p *process) {
			p.vendor.idempotent = false
			n := 0
			p.vendor.before = func() error {
				if n++; n < 6 {
					return failing(class)()
				}
				return nil
			}
			v := p.create(newRequest("a cat"))
			if v.Status() != "queued" {
				t.Errorf("got the status %s", v.Status())
			}
			kittest.Pass(5 * time.Minute)
			if v = p.look(v.ID); v.Phase != work.VideoCompleted || v.Attempts != 6 || p.vendor.made() != 1 {
				t.Errorf("ended as %+v", v)
			}
			p.checkCharge(4 * second)
		})
	}
}

// Polls that fail change nothing.
func TestFailedPollsChangeNothing(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		p.vendor.faults = job.Faults{BusyPolls: 4, CutPolls: 3}
		v := p.create(newRequest("a cat"))
		kittest.Pass(3 * time.Minute)
		if v = p.look(v.ID); v.Phase != work.VideoCompleted {
			t.Errorf("ended as %+v", v)
		}
	})
}

func TestAKeyStartsOneJob(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		o := newRequest("a cat")
		o.Video.Once, o.Video.Asked = "mine", state.HashSecret("body")
		first := p.create(o)
		second, again, err := p.svc.Create(t.Context(), o)
		if err != nil || !again || second.ID != first.ID {
			t.Errorf("%s, %v, %v", second.ID, again, err)
		}
		other := newRequest("a dog")
		other.Video.Once, other.Video.Asked = "mine", state.HashSecret("another body")
		_, _, err = p.svc.Create(t.Context(), other)
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 409 {
			t.Errorf("got the error %v", err)
		}
		if p.vendor.made() != 1 {
			t.Errorf("made %d", p.vendor.made())
		}
	})
}

// Two concurrent requests with one key start one job.
func TestConcurrentRequestsWithAKeyStartOneJob(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		ids := make(chan string, 8)
		for range cap(ids) {
			go func() {
				o := newRequest("a cat")
				o.Video.Once, o.Video.Asked = "mine", state.HashSecret("body")
				v, _, err := p.svc.Create(context.Background(), o)
				if err != nil {
					t.Error(err)
				}
				ids <- v.ID
			}()
		}
		first := <-ids
		for range cap(ids) - 1 {
			if id := <-ids; id != first {
				t.Errorf("%s beside %s", id, first)
			}
		}
		kittest.Pass(5 * time.Minute)
		if p.vendor.made() != 1 {
			t.Errorf("made %d", p.vendor.made())
		}
		p.checkCharge(4 * second)
	})
}

func TestWithoutMoneyNoVideoIsMade(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		for range credits / (4 * second) {
			p.create(newRequest("a cat"))
		}
		_, _, err := p.svc.Create(t.Context(), newRequest("one more"))
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 429 || e.Code != "insufficient_quota" {
			t.Errorf("got the error %v", err)
		}
		if n := p.vendor.made(); n != credits/(4*second) {
			t.Errorf("made %d", n)
		}
		kittest.Pass(5 * time.Minute)
		p.checkCharge(credits / (4 * second) * 4 * second)
	})
}

// A job continues if its client leaves during the submission.
func TestAClientThatLeavesHasItsVideoMade(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		p.vendor.before = func() error { time.Sleep(10 * time.Second); return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, _, err := p.svc.Create(ctx, newRequest("a cat"))
		if err != nil || v.Status() != "queued" {
			t.Fatalf("%v, %v", v.Status(), err)
		}
		kittest.Pass(5 * time.Minute)
		if v = p.look(v.ID); v.Phase != work.VideoCompleted {
			t.Errorf("ended as %+v", v)
		}
		p.checkCharge(4 * second)
	})
}

func TestOneProviderIsAskedForWhatItCanDo(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		p.vendor.supports = func(o video.Operation) bool { return o == video.Create }
		o := newRequest("longer")
		o.Spec.Operation = video.Extend
		_, _, err := p.svc.Create(t.Context(), o)
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Code != "unsupported_operation" {
			t.Errorf("got the error %v", err)
		}
		o.Plan[0].Provider.Name = "another"
		if _, _, err = p.svc.Create(t.Context(), o); !errors.As(err, &e) || e.Status != 400 ||
			e.Param != "model" {
			t.Errorf("got the error %v", err)
		}
		p.checkCharge(0)
	})
}

func TestDeletingIsForJobsThatHaveEnded(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		v := p.create(newRequest("a cat"))
		if err := p.svc.Delete(t.Context(), v.ID, owner); !errors.Is(err, state.ErrExists) {
			t.Errorf("in flight: %v", err)
		}
		kittest.Pass(5 * time.Minute)
		if err := p.svc.Delete(t.Context(), v.ID, "user:8"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("another owner: %v", err)
		}
		if err := p.svc.Delete(t.Context(), v.ID, owner); err != nil {
			t.Error(err)
		}
		kittest.Quiesce()
		if err := p.svc.Delete(t.Context(), v.ID, owner); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
		if len(p.vendor.gone) != 1 {
			t.Errorf("the provider deleted %v", p.vendor.gone)
		}
		kittest.Pass(2 * time.Hour)
		if n, err := p.state.Sweep(t.Context(), 0); n == 0 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		if _, ok := work.FindAnyVideo(p.state.View(), v.ID); ok {
			t.Error("the record is left")
		}
	})
}

// TestADeletionThatFailsIsRepeated, whether a client has deleted the job or an operator has ended it, after a restart,
// and although the user is erased meanwhile.
func TestADeletionThatFailsIsRepeated(t *testing.T) {
	for name, remove := range map[string]func(p *process, id string) error{
		"client": func(p *process, id string) error {
			kittest.Pass(5 * time.Minute)
			return p.svc.Delete(p.t.Context(), id, owner)
		},
		"operator": func(p *process, id string) error { return p.flow.Cancel(id) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, vendor := journal.NewMemory(), newVendor()
				vendor.deleting = func() error { return errors.New("the provider cannot be reached") }
				p := start(t, store, vendor, nil)
				p.credit()
				v := p.create(newRequest("a cat"))
				kittest.Quiesce()
				if err := remove(p, v.ID); err != nil {
					t.Fatal(err)
				}
				kittest.Pass(30 * time.Second)
				p.end()
				p = start(t, store, vendor, nil)
				if _, err := work.EraseOwner(t.Context(), p.state, owner); err != nil {
					t.Fatal(err)
				}
				kittest.Pass(2 * time.Hour)
				if _, err := p.state.Sweep(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				due := work.ListVideoDeletions(p.state.View(), 9)
				if len(due) != 1 || due[0].ID != v.ID || due[0].Prompt != "" || len(vendor.gone) != 1 {
					t.Fatalf("%+v are due after %d attempts, want %s after one", due, len(vendor.gone), v.ID)
				}
				vendor.deleting = nil
				if err := p.svc.DeleteUpstream(t.Context(), &due[0]); err != nil {
					t.Error(err)
				}
				if _, err := work.EndVideoDeletion(t.Context(), p.state, v.ID, false); err != nil {
					t.Error(err)
				}
				if _, err := p.state.Sweep(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if v, ok := work.FindAnyVideo(p.state.View(), v.ID); ok {
					t.Errorf("the record stays after the deletion: %+v", v)
				}
				p.end()
				time.Sleep(5 * time.Second) // the actor library's last timer
			})
		})
	}
}

// A deletion at a provider that is paused fails soon, so that those behind it do not wait.
func TestADeletionDoesNotWaitForAPausedProvider(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		v := p.create(newRequest("a cat"))
		kittest.Pass(5 * time.Minute)
		v = p.look(v.ID)
		p.limiter.Pause()
		begin := time.Now()
		err := p.svc.DeleteUpstream(t.Context(), &v)
		if waited := time.Since(begin); err == nil || waited > 5*time.Second {
			t.Errorf("waited %v for %v", waited, err)
		}
	})
}

func TestContentComesFromTheProvider(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		v := p.create(newRequest("a cat"))
		kittest.Pass(2 * time.Minute)
		v = p.look(v.ID)
		c, err := p.svc.Content(t.Context(), &v, video.Thumbnail, "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c)
		if err != nil || len(b) == 0 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		_ = p.vendor.engine.Delete(v.UpstreamID)
		_, err = p.svc.Content(t.Context(), &v, video.Video, "")
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Code != "video_expired" || e.Status != 404 {
			t.Errorf("got the error %v", err)
		}
	})
}

// A panic in a step or an actor loses no video and no money.
func TestPanicsAreSurvived(t *testing.T) {
	for name, set := range map[string]func(*vendor){
		"submission": func(v *vendor) {
			n := 0
			v.after = func() error {
				if n++; n == 1 {
					panic("submit")
				}
				return nil
			}
		},
		"poll": func(v *vendor) {
			n := 0
			v.polling = func() error {
				if n++; n == 2 {
					panic("poll")
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, p *process) {
				set(p.vendor)
				v := p.create(newRequest("a cat"))
				kittest.Pass(5 * time.Minute)
				if v = p.look(v.ID); v.Phase != work.VideoCompleted || p.vendor.made() != 1 {
					t.Errorf("ended as %+v, made %d", v, p.vendor.made())
				}
				p.checkCharge(4 * second)
				if n := p.limiter.InFlight(); n != 0 {
					t.Errorf("%d permits are out", n)
				}
			})
		})
	}
}

// One owner may have half of the jobs in flight. The next process counts the jobs that it
// continues, and a job that has ended gives its slot back.
func TestOneOwnerCannotTakeAllVideoJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, vendor := journal.NewMemory(), newVendor()
		p := start(t, store, vendor, nil)
		p.credit()
		p.svc.Slots().Resize(4)
		p.create(newRequest("first"))
		p.create(newRequest("second"))
		var refused *share.Refused
		if _, _, err := p.svc.Create(t.Context(), newRequest("third")); !errors.As(err, &refused) || !refused.Share ||
			refused.Pool != share.Videos {
			t.Errorf("a third job of four: %v", err)
		}
		other := newRequest("another")
		other.Video.Owner, other.Video.Account = "key:other", ""
		p.create(other)
		p.end()
		p = start(t, store, vendor, nil)
		slots := p.svc.Slots()
		if slots.Used() != 3 || slots.Held(string(owner)) != 2 {
			t.Errorf("the next process counts %d jobs, %d of the first owner", slots.Used(), slots.Held(string(owner)))
		}
		kittest.Pass(5 * time.Minute)
		if used := slots.Used(); used != 0 {
			t.Errorf("%d slots are taken when all jobs have ended", used)
		}
		p.end()
		time.Sleep(5 * time.Second) // the actor library's last timer
	})
}

// Records of jobs are in memory for as long as clients may ask for them.
func TestAnOwnerKeepsABoundedNumberOfVideos(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		p.svc.Config.Kept = 2
		free := func(prompt string) *videojob.Request {
			r := newRequest(prompt)
			r.Video.Account = ""
			return r
		}
		first := p.create(free("first"))
		p.create(free("second"))
		kittest.Pass(5 * time.Minute) // they have ended
		var refused *dialogue.Error
		_, _, err := p.svc.Create(t.Context(), newRequest("third"))
		if !errors.As(err, &refused) || refused.Status != 403 || refused.Code != "storage_quota_exceeded" ||
			!refused.NoRetry {
			t.Errorf("a third video: %v", err)
		}
		if held := p.svc.Slots().Used(); held != 0 {
			t.Errorf("the refused video holds %d slots", held)
		}
		other := free("another")
		other.Video.Owner = "key:other"
		p.create(other)
		if err := p.svc.Delete(t.Context(), first.ID, owner); err != nil {
			t.Fatal(err)
		}
		p.create(newRequest("third"))
	})
}

// A key that is refused stops neither the job nor its model while another key of the provider can
// be used.
func TestSubmissionsContinueWithASpareKey(t *testing.T) {
	for _, class := range []upstream.Class{upstream.RateLimited, upstream.Credential} {
		play(t, func(t *testing.T, p *process) {
			client, err := upstream.New(
				upstream.Options{BaseURL: "http://vendor.example", APIKeys: []string{"first", "second"}},
			)
			if err != nil {
				t.Fatal(err)
			}
			p.vendor.judge = (&engine.Provider{Client: client}).Judge
			n := 0
			p.vendor.before = func() error {
				if n++; n > 1 {
					return nil
				}
				f := &upstream.Failure{
					Class:      class,
					RetryAfter: 10 * time.Minute,
					Err:        &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit},
				}
				client.Keys().RecordFailure("first", "sora-2", f, time.Now())
				return f
			}
			v := p.create(newRequest("a cat"))
			stats, err := p.limiter.Stats(t.Context())
			if err != nil || stats.CoolDown != 0 {
				t.Errorf("class %d: the limiter cools down for %s, %v", class, stats.CoolDown, err)
			}
			kittest.Pass(time.Minute)
			if v = p.look(v.ID); v.Phase != work.VideoCompleted || v.Attempts != 2 {
				t.Errorf("class %d: after a minute it is %s after %d attempts", class, v.Phase, v.Attempts)
			}
			p.checkCharge(4 * second)
		})
	}
}

// A job whose record was swept, because the clock leapt, is neither made nor charged a second time
// under the same key.
func TestAKeyStartsOneJobAfterItsRecordIsGone(t *testing.T) {
	play(t, func(t *testing.T, p *process) {
		o := newRequest("a cat")
		o.Video.Once, o.Video.Asked = "mine", state.HashSecret("body")
		first := p.create(o)
		kittest.Pass(time.Minute)
		kittest.Pass(3000 * time.Hour) // beyond its content and the time it is kept
		for n := 1; n > 0; {
			var err error
			if n, err = p.state.Sweep(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := work.FindAnyVideo(p.state.View(), first.ID); ok {
			t.Fatal("its record is still there")
		}
		for _, asked := range []string{"body", "another body"} {
			o := newRequest("a cat")
			o.Video.Once, o.Video.Asked = "mine", state.HashSecret(asked)
			_, again, err := p.svc.Create(t.Context(), o)
			var e *dialogue.Error
			if !errors.As(err, &e) || again || e.Status != 409 || e.Code != "idempotency_key_reused" {
				t.Errorf("%s: again %v, %v", asked, again, err)
			}
		}
		if p.vendor.made() != 1 {
			t.Errorf("made %d times", p.vendor.made())
		}
		p.checkCharge(4 * second)
	})
}
