package videojob

import (
	"errors"
	"testing"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state/work"
)

var at = time.Unix(1_800_000_000, 0)

// A status of the provider moves a job forward or changes nothing.
func TestStatusMovesAJobForward(t *testing.T) {
	queued := work.Video{Phase: work.VideoQueued}
	half := work.Video{Phase: work.VideoInProgress, Progress: 50}
	for _, c := range []struct {
		name     string
		before   work.Video
		status   video.Status
		phase    work.VideoPhase
		progress int
		code     string
	}{
		{"begins", queued, video.Status{State: video.InProgress, Progress: 3}, work.VideoInProgress, 3, ""},
		{"begins without a number", queued, video.Status{State: video.InProgress, Progress: -1},
			work.VideoInProgress, 0, ""},
		{"waits with a number", queued, video.Status{State: video.Queued, Progress: 10}, work.VideoQueued, 0, ""},
		{"goes on", half, video.Status{State: video.InProgress, Progress: 60}, work.VideoInProgress, 60, ""},
		{"goes back", half, video.Status{State: video.InProgress, Progress: 40}, work.VideoInProgress, 50, ""},
		{"waits again", half, video.Status{State: video.Queued, Progress: 0}, work.VideoInProgress, 50, ""},
		{"too much", half, video.Status{State: video.InProgress, Progress: 140}, work.VideoInProgress, 99, ""},
		{"nothing", half, video.Status{State: video.InProgress, Progress: -1}, work.VideoInProgress, 50, ""},
		{"an unknown word", half, video.Status{Progress: 55}, work.VideoInProgress, 55, ""},
		{"an unknown word at first", queued, video.Status{Progress: 55}, work.VideoQueued, 0, ""},
		{"ends", half, video.Status{State: video.Completed, Progress: 10}, work.VideoFinalizing, 50, ""},
		{"ends at once", queued, video.Status{State: video.Completed}, work.VideoFinalizing, 0, ""},
		{"fails", half, video.Status{State: video.Failed, Error: &video.Fault{Code: "moderation_blocked",
			Message: "no"}}, work.VideoFinalizing, 50, "moderation_blocked"},
		{"fails without a word", half, video.Status{State: video.Failed}, work.VideoFinalizing, 50, codeFailed},
	} {
		got := applyStatus(c.before, c.status, at)
		if got.Phase != c.phase || got.Progress != c.progress {
			t.Errorf("%s: %s, %d %%", c.name, got.Phase, got.Progress)
		}
		if (got.Error != nil) != (c.code != "") ||
			got.Error != nil && (got.Error.Code != c.code || got.Error.Message == "") {
			t.Errorf("%s: %+v", c.name, got.Error)
		}
		if ended := got.Phase == work.VideoFinalizing; ended != got.Completed.Equal(at) ||
			ended && c.code == "" && got.Expires.IsZero() {
			t.Errorf("%s: completed %s, expires %s", c.name, got.Completed, got.Expires)
		}
	}
}

func TestTheReportedLengthIsTheWholeVideos(t *testing.T) {
	for _, c := range []struct {
		operation             video.Operation
		seconds, billable     int64 // asked for
		total                 int   // reported
		reported, most, shown int64
	}{
		{video.Create, 8, 8, 0, 0, 20, 8},
		{video.Create, 8, 8, 4, 4, 20, 4},
		{video.Create, 8, 8, 20, 20, 20, 20},
		{video.Create, 8, 8, 21, 21, 20, 8},
		{video.Extend, 12, 4, 12, 4, 20, 12},
		{video.Extend, 12, 4, 16, 8, 20, 16},
		{video.Extend, 12, 4, 8, -1, 20, 12}, // no longer than its source
		{video.Extend, 12, 4, 4, -1, 20, 12},
		{video.Extend, 12, 4, 40, 32, 20, 12},
		{video.Remix, 40, 40, 40, 40, 120, 40},
		{video.Edit, 40, 40, 121, 121, 120, 40},
	} {
		before := work.Video{
			Phase:     work.VideoInProgress,
			Operation: string(c.operation),
			Size:      "720x1280",
			Seconds:   c.seconds,
			Billable:  c.billable,
		}
		s := video.Status{State: video.Completed, Seconds: c.total, Size: video.Size{Width: 1280, Height: 720}}
		v := applyStatus(before, s, at)
		l := lengthOf(&v)
		if l.Asked != c.billable || l.Reported != c.reported || l.Most != c.most || v.Seconds != c.shown ||
			v.Size != "1280x720" {
			t.Errorf("%s of %d s, %d of them new, reported as %d s: got %+v and %d s of %s",
				c.operation, c.seconds, c.billable, c.total, l, v.Seconds, v.Size)
		}
	}
}

func TestAJobIsSettledAsReported(t *testing.T) {
	v := markSettled(
		applyStatus(work.Video{Phase: work.VideoInProgress},
			video.Status{State: video.Completed, Expires: at.Add(time.Hour)}, at),
		7,
		at,
		time.Minute,
	)
	if v.Phase != work.VideoCompleted || v.Progress != 100 || v.Cost != 7 ||
		!v.Until.Equal(at.Add(time.Hour+time.Minute)) {
		t.Errorf("%+v", v)
	}
	// A provider that reports a far expiry does not keep the record forever.
	v = markSettled(
		applyStatus(work.Video{Phase: work.VideoInProgress},
			video.Status{State: video.Completed, Expires: at.AddDate(7000, 0, 0)}, at),
		7,
		at,
		time.Minute,
	)
	if last := at.Add(mostLife); !v.Expires.Equal(last) || !v.Until.Equal(last.Add(time.Minute)) {
		t.Errorf("a far expiry: %+v", v)
	}
	v = markSettled(failLate(work.Video{Phase: work.VideoInProgress, Progress: 30}, at), 0, at, time.Minute)
	if v.Phase != work.VideoFailed || v.Progress != 30 || v.Error.Code != codeDeadline ||
		!v.Until.Equal(at.Add(time.Minute)) {
		t.Errorf("%+v", v)
	}
}

func TestNextAction(t *testing.T) {
	for phase, want := range map[work.VideoPhase]action{
		work.VideoAccepted: submit, work.VideoSubmitting: submit,
		work.VideoQueued: poll, work.VideoInProgress: poll, work.VideoFinalizing: settle,
		work.VideoCompleted: nothing, work.VideoFailed: nothing,
	} {
		if got := nextAction(&work.Video{Phase: phase}); got != want {
			t.Errorf("%s: %d", phase, got)
		}
	}
}

// Only an interrupted submission to a provider that would make a second video fails.
func TestInterruptedSubmissionsAreRecovered(t *testing.T) {
	for _, phase := range []work.VideoPhase{work.VideoAccepted, work.VideoSubmitting, work.VideoQueued,
		work.VideoInProgress, work.VideoFinalizing} {
		for _, idempotent := range []bool{true, false} {
			got := recoverJob(work.Video{Phase: phase}, idempotent, at)
			lost := phase == work.VideoSubmitting && !idempotent
			if (got.Error != nil) != lost || lost && got.Error.Code != codeSubmission || !lost && got.Phase != phase {
				t.Errorf("%s, %v: %s, %+v", phase, idempotent, got.Phase, got.Error)
			}
		}
	}
}

func TestRefusalsAreRetriedOnlyWhenSafe(t *testing.T) {
	denied := &dialogue.Error{Status: 400, Code: "denied"}
	for _, c := range []struct {
		class       upstream.Class
		keys, no    string // what follows with and without idempotency keys
		reached     bool
		rate        time.Duration
		waitAtLeast time.Duration
	}{
		{class: upstream.NotSent, keys: "again", no: "again", waitAtLeast: firstWait},
		{class: upstream.RateLimited, keys: "again", no: "again", rate: 40 * time.Second,
			waitAtLeast: 40 * time.Second},
		{class: upstream.Overloaded, keys: "again", no: "again", rate: time.Hour, waitAtLeast: time.Minute},
		{class: upstream.MaybeSent, keys: "again", no: codeSubmission, reached: true},
		{class: upstream.TimedOut, keys: "again", no: codeSubmission, reached: true},
		{class: upstream.Cancelled, keys: "again", no: codeSubmission, reached: true},
		{class: upstream.Transient, keys: "again", no: "denied", reached: true},
		{class: upstream.CallerFault, keys: "denied", no: "denied"},
		{class: upstream.Credential, keys: "denied", no: "denied"},
	} {
		for idempotent, want := range map[bool]string{true: c.keys, false: c.no} {
			r := decideRefusal(&upstream.Failure{Class: c.class, Err: denied, RetryAfter: c.rate}, idempotent, 1,
				throttle.Outcome{Kind: throttle.KindOf(c.class), RetryAfter: c.rate})
			got := "again"
			if !r.again {
				got = codeOf(r.err)
			}
			if got != want || r.again && (r.reached != c.reached || r.wait < c.waitAtLeast || r.wait > longestRetry) {
				t.Errorf("class %d, %v: %s, %+v", c.class, idempotent, got, r)
			}
		}
	}
	for _, idempotent := range []bool{true, false} {
		if r := decideRefusal(errors.New("odd"), idempotent, 1, throttle.Outcome{}); r.again ||
			codeOf(r.err) != codeSubmission {
			t.Errorf("an error of no class: %+v", r)
		}
	}
}

func TestPollWaitGrowsAndFollowsTheProvider(t *testing.T) {
	last := time.Duration(0)
	for n := range 30 {
		wait := pollWait(n, 0, 0)
		if wait < last || wait < firstWait || wait > longestWait {
			t.Errorf("poll %d after %s", n, wait)
		}
		last = wait
	}
	if last != longestWait {
		t.Errorf("ends with %s", last)
	}
	for _, c := range []struct{ asked, want time.Duration }{{time.Millisecond, time.Second},
		{5 * time.Second, 5 * time.Second}, {time.Hour, longestRetry}} {
		if got := pollWait(9, c.asked, 0); got != c.want {
			t.Errorf("asked for %s: %s", c.asked, got)
		}
	}
	if a, b := pollWait(9, 0, 0), pollWait(9, 0, 0.99); b <= a || b > a*6/5 {
		t.Errorf("jitter from %s to %s", a, b)
	}
}
