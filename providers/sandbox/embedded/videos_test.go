package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// upstreamOf is the upstream of a process, with its engine.
type upstreamOf struct {
	video.Upstream
	engine *job.Engine
}

// process returns the upstream of a new process.
func process() *upstreamOf {
	engine := &job.Engine{Now: time.Now, Time: time.Nanosecond}
	return &upstreamOf{NewVideos(&sandbox.Model{Env: &dialogue.Env{Now: time.Now}}, engine), engine}
}

func spec(prompt string) *video.Spec {
	return &video.Spec{
		Operation: video.Create,
		Model:     "sandbox",
		Prompt:    prompt,
		Seconds:   4,
		Size:      video.Size{Width: 720, Height: 1280},
	}
}

func submit(t *testing.T, v *upstreamOf, key, prompt string) string {
	t.Helper()
	id, _, err := v.Submit(t.Context(), key, spec(prompt), nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func content(t *testing.T, v *upstreamOf, id string) string {
	t.Helper()
	c, err := v.Content(t.Context(), id, video.Video, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestJobsOutliveTheProcess(t *testing.T) {
	before, after := process(), process()
	id := submit(t, before, "key", "a fox")
	if s, err := after.Poll(t.Context(), id); err != nil || s.State != video.Completed {
		t.Fatalf("%+v %v", s, err)
	}
	if content(t, before, id) != content(t, after, id) {
		t.Error("the video is another one")
	}
	if again := submit(t, before, "key", "a fox"); again != id {
		t.Error("the key made another job")
	}
	// After a restart the key is unknown, and the same submission makes the same video.
	if content(t, after, submit(t, after, "key", "a fox")) != content(t, before, id) {
		t.Error("the repeated submission made another video")
	}
}

func TestFaultsLookLikeThoseOfANetwork(t *testing.T) {
	v := process()
	for prompt, class := range map[string]upstream.Class{"[sandbox: status=400]": upstream.CallerFault,
		"[sandbox: status=429]": upstream.RateLimited,
		"[sandbox: status=503]": upstream.Overloaded, "[sandbox: cut]": upstream.MaybeSent,
		"[sandbox: garbage]": upstream.MaybeSent,
		"[sandbox: block]":   upstream.CallerFault, "[sandbox: nonsense]": upstream.CallerFault} {
		_, _, err := v.Submit(t.Context(), prompt, spec(prompt), nil)
		if f := new(upstream.Failure); !errors.As(err, &f) || f.Class != class {
			t.Errorf("%s: %v", prompt, err)
		}
	}
	id := submit(t, v, "", "[sandbox: busy-polls=1 cut-polls=1 cut-downloads=1]")
	for _, class := range []upstream.Class{upstream.Overloaded, upstream.MaybeSent} {
		_, err := v.Poll(t.Context(), id)
		if f := new(upstream.Failure); !errors.As(err, &f) || f.Class != class {
			t.Errorf("poll: %v", err)
		}
	}
	c, err := v.Content(t.Context(), id, video.Video, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadAll(c); !errors.As(err, new(*upstream.Failure)) {
		t.Errorf("download: %v", err)
	}
	if _, err := v.Poll(t.Context(), "job_x"); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("unknown job: %v", err)
	}
}

func TestLostReplyIsFoundByItsKey(t *testing.T) {
	v := process()
	if _, _, err := v.Submit(t.Context(), "k", spec("[sandbox: cut]"), nil); err == nil {
		t.Fatal("the reply was not lost")
	}
	if id := submit(t, v, "k", "[sandbox: cut]"); v.engine.Counts()[0].ID != id || len(v.engine.Counts()) != 1 {
		t.Errorf("jobs %+v", v.engine.Counts())
	}
}

func TestDerivedJobs(t *testing.T) {
	v := process()
	source := submit(t, v, "", "a fox")
	mine, err := clip.Video(clip.Spec{Width: 720, Height: 1280, Seconds: 5})
	if err != nil {
		t.Fatal(err)
	}
	open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(mine)), nil }
	made := &video.Source{ID: source}
	upload := &video.Source{File: &video.File{ID: "f", Type: "video/mp4", Size: int64(len(mine))}}
	for _, c := range []struct {
		op   video.Operation
		from *video.Source
	}{{video.Remix, made}, {video.Edit, made}, {video.Extend, made}, {video.Edit, upload}, {video.Extend, upload}} {
		s := spec("at night")
		s.Operation, s.Source, s.Seconds, s.Added = c.op, c.from, 12, 8
		if id, _, err := v.Submit(t.Context(), "", s, open); err != nil || id == source {
			t.Errorf("%s of %+v: %q %v", c.op, c.from, id, err)
		}
	}
	s := spec("at night")
	s.Operation, s.Source = video.Remix, &video.Source{ID: "job_gone"}
	if _, _, err := v.Submit(t.Context(), "", s, nil); err == nil {
		t.Error("a video was made of nothing")
	}
}

func TestContentHonoursRanges(t *testing.T) {
	v := process()
	id := submit(t, v, "", "a fox")
	whole := content(t, v, id)
	size := len(whole)
	for text, want := range map[string]struct {
		status             int
		body, contentRange string
	}{
		"":               {200, whole, ""},
		"bytes=0-9":      {206, whole[:10], fmt.Sprintf("bytes 0-9/%d", size)},
		"bytes=-10":      {206, whole[size-10:], fmt.Sprintf("bytes %d-%d/%d", size-10, size-1, size)},
		"bytes=9999999-": {416, "", fmt.Sprintf("bytes */%d", size)},
		"bytes=-0":       {416, "", fmt.Sprintf("bytes */%d", size)},
		"bytes=0-1,5-6":  {200, whole, ""},
	} {
		c, err := v.Content(t.Context(), id, video.Video, text)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(c)
		if err != nil || string(body) != want.body || c.Status != want.status ||
			c.Header.Get("Content-Range") != want.contentRange {
			t.Errorf("%q: status %d, %d bytes, %v, %v", text, c.Status, len(body), c.Header, err)
		}
	}
}
