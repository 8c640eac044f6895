package job_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/video"
)

// clock is a time that is set by hand.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }

func engine() (*job.Engine, *clock) {
	c := &clock{time.Unix(1_700_000_000, 0)}
	return &job.Engine{Now: c.now, Time: 100 * time.Second, Keep: time.Hour}, c
}

var fox = job.Spec{Prompt: "a fox", Width: 720, Height: 1280, Seconds: 4}

func submit(t *testing.T, e *job.Engine, key string, f job.Faults) string {
	t.Helper()
	spec := fox
	spec.Faults = f
	id, err := e.Submit(t.Context(), key, spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestJobGoesFromQueuedToCompletedToExpired(t *testing.T) {
	e, c := engine()
	id := submit(t, e, "", job.Faults{})
	rows := []struct {
		after    time.Duration
		state    video.State
		progress int
		content  error
	}{
		{0, video.Queued, 0, job.ErrNotReady},
		{9 * time.Second, video.Queued, 0, job.ErrNotReady},
		{10 * time.Second, video.InProgress, 10, job.ErrNotReady},
		{99 * time.Second, video.InProgress, 99, job.ErrNotReady},
		{100 * time.Second, video.Completed, 100, nil},
		{100*time.Second + time.Hour, video.Completed, 100, job.ErrExpired},
	}
	begin := c.Time
	for _, row := range rows {
		c.Time = begin.Add(row.after)
		s, err := e.Poll(t.Context(), id)
		if err != nil || s.State != row.state || s.Progress != row.progress {
			t.Errorf("after %v: %v %d %v", row.after, s.State, s.Progress, err)
		}
		if _, err := e.Content(t.Context(), id, video.Video); !errors.Is(err, row.content) {
			t.Errorf("after %v: content %v, want %v", row.after, err, row.content)
		}
	}
}

func TestJobEndsAsRequested(t *testing.T) {
	rows := []struct {
		name   string
		faults job.Faults
		state  video.State
		code   string
		poll   error
		get    error
	}{
		{"fails", job.Faults{Ending: job.Fails, At: 30}, video.Failed, "video_generation_failed", nil, job.ErrFailed},
		{"is blocked", job.Faults{Ending: job.Blocked, At: 30}, video.Failed, "moderation_blocked", nil, job.ErrFailed},
		{"freezes", job.Faults{Ending: job.Freezes, At: 30}, video.InProgress, "", nil, job.ErrNotReady},
		{"vanishes", job.Faults{Ending: job.Vanishes, At: 30}, "", "", video.ErrJobNotFound, video.ErrJobNotFound},
	}
	for _, row := range rows {
		e, c := engine()
		id := submit(t, e, "", row.faults)
		c.pass(29 * time.Second)
		if s, err := e.Poll(t.Context(), id); err != nil || s.State != video.InProgress || s.Progress != 29 {
			t.Errorf("%s: before it %v %d %v", row.name, s.State, s.Progress, err)
		}
		c.pass(time.Hour)
		s, err := e.Poll(t.Context(), id)
		code := ""
		if s.Error != nil {
			code = s.Error.Code
		}
		if !errors.Is(err, row.poll) || s.State != row.state || code != row.code {
			t.Errorf("%s: %v %q %v", row.name, s.State, code, err)
		}
		if _, err := e.Content(t.Context(), id, video.Video); !errors.Is(err, row.get) {
			t.Errorf("%s: content %v", row.name, err)
		}
	}
}

func TestAnotherEngineKnowsTheJobByItsID(t *testing.T) {
	e, c := engine()
	id := submit(t, e, "key", job.Faults{})
	read := func(e *job.Engine) string {
		s, err := e.Content(t.Context(), id, video.Video)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	c.pass(50 * time.Second)
	other := &job.Engine{Now: c.now}
	if s, err := other.Poll(t.Context(), id); err != nil || s.State != video.InProgress || s.Progress != 50 {
		t.Errorf("%v %d %v", s.State, s.Progress, err)
	}
	c.pass(50 * time.Second)
	if read(e) != read(other) {
		t.Error("two engines have different content")
	}
}

func TestKeyFindsTheJobItBegan(t *testing.T) {
	e, c := engine()
	first := submit(t, e, "key", job.Faults{})
	c.pass(time.Second)
	if again := submit(t, e, "key", job.Faults{}); again != first {
		t.Errorf("got %s, want %s", again, first)
	}
	if other := submit(t, e, "other", job.Faults{}); other == first {
		t.Error("another key found the same job")
	}
	if a, b := submit(t, e, "", job.Faults{}), submit(t, e, "", job.Faults{}); a == b {
		t.Error("no key found a job")
	}
	for _, n := range []int{1, 2, 3} {
		if _, err := e.Poll(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if got := e.Counts()[0]; got.ID != first || got.Submissions != 2 || got.Polls != n {
			t.Errorf("counts are %+v", got)
		}
	}
}

func TestPollsAndDownloadsBreakAsRequested(t *testing.T) {
	e, c := engine()
	id := submit(t, e, "", job.Faults{BusyPolls: 1, CutPolls: 2, CutDownloads: 1})
	c.pass(100 * time.Second)
	for i, want := range []error{job.ErrBusy, job.ErrCut, job.ErrCut, nil, nil} {
		if _, err := e.Poll(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("poll %d: %v, want %v", i+1, err, want)
		}
	}
	var lengths []int
	for _, want := range []error{job.ErrCut, nil} {
		content, err := e.Content(t.Context(), id, video.Video)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if !errors.Is(err, want) {
			t.Errorf("download: %v, want %v", err, want)
		}
		lengths = append(lengths, len(data))
	}
	if lengths[0] != lengths[1]/2 {
		t.Errorf("read %v bytes", lengths)
	}
}

func TestDeletedJobIsLost(t *testing.T) {
	e, _ := engine()
	id := submit(t, e, "", job.Faults{})
	if err := e.Delete(id); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Poll(t.Context(), id); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("poll: %v", err)
	}
	if err := e.Delete(id); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("delete: %v", err)
	}
}

func FuzzPollTakesAnyID(f *testing.F) {
	e, c := engine()
	id, err := e.Submit(f.Context(), "", fox)
	if err != nil {
		f.Fatal(err)
	}
	c.pass(time.Hour)
	f.Add(id)
	f.Add("job_")
	f.Add("job_AQAAAaH-v4axAAALuAAADhBi9IjwyLRJfwUAAtAIAAAAAAAIvg8HtWIkwQV2AjA")
	f.Fuzz(func(t *testing.T, id string) {
		s, err := e.Poll(t.Context(), id)
		if err == nil && (s.Progress < 0 || s.Progress > 100) {
			t.Errorf("%q: %+v", id, s)
		}
		if err != nil && !errors.Is(err, video.ErrJobNotFound) && !errors.Is(err, job.ErrBusy) && !errors.Is(err,
			job.ErrCut) {
			t.Errorf("%q: %v", id, err)
		}
	})
}

func TestPollsOfVanishedJobsAreCounted(t *testing.T) {
	e, c := engine()
	id := submit(t, e, "", job.Faults{Ending: job.Vanishes, At: 50})
	c.pass(time.Hour)
	for _, asked := range []string{id, id, "job_unknown"} {
		if _, err := e.Poll(t.Context(), asked); !errors.Is(err, video.ErrJobNotFound) {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if all := e.Counts(); len(all) != 1 || all[0].Polls != 2 {
		t.Errorf("counted %+v", all)
	}
}
