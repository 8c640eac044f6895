package videos_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/sandbox/media"
	"stagedoor/providers/shapes/videos"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// at makes the provider behind a handler on a real socket.
func at(t *testing.T, h http.Handler, keys ...string) *videos.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := upstream.New(upstream.Options{BaseURL: srv.URL + "/v1", APIKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return videos.New(c, true)
}

// simulated is the provider before the sandbox, whose jobs take no time to speak
// of unless they order some.
func simulated(t *testing.T) (*videos.Provider, *job.Engine) {
	t.Helper()
	engine := &job.Engine{Now: time.Now, Time: time.Nanosecond}
	m := &sandbox.Model{Env: &dialogue.Env{Now: time.Now}}
	return at(t, media.Handler(m, engine, http.NotFoundHandler()), "k"), engine
}

func answering(status int, body string, header ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

func spec(prompt string) *video.Spec {
	return &video.Spec{
		Operation: video.Create,
		Model:     "sora-2",
		Prompt:    prompt,
		Seconds:   4,
		Size:      video.Size{Width: 720, Height: 1280},
	}
}

func submit(t *testing.T, p *videos.Provider, key string, s *video.Spec) string {
	t.Helper()
	id, _, err := p.Submit(t.Context(), key, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestJobIsMadePolledDownloadedAndDeleted(t *testing.T) {
	p, engine := simulated(t)
	id := submit(t, p, "key", spec("a fox"))
	if again := submit(t, p, "key", spec("a fox")); again != id {
		t.Errorf("the same key made %q of %q", again, id)
	}
	s, err := p.Poll(t.Context(), id)
	if err != nil || s.State != video.Completed || s.Progress != 100 || s.Expires.IsZero() {
		t.Fatalf("poll: %+v %v", s, err)
	}
	for v, mediaType := range map[video.Variant]string{video.Video: "video/mp4", video.Thumbnail: "image/webp", video.Spritesheet: "image/jpeg"} {
		c, err := p.Content(t.Context(), id, v, "")
		if err != nil {
			t.Fatal(v, err)
		}
		b, err := io.ReadAll(c)
		c.Close()
		if err != nil || len(b) == 0 || c.Header.Get("Content-Type") != mediaType || c.Status != 200 {
			t.Errorf("%s: %d bytes, %v, %v", v, len(b), c.Header, err)
		}
	}
	if n := engine.Counts()[0]; n.Submissions != 2 || n.Polls != 1 || n.Downloads != 3 {
		t.Errorf("the upstream counted %+v", n)
	}
	if err := p.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Poll(t.Context(), id); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("after deletion: %v", err)
	}
	if err := p.Delete(t.Context(), id); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("second deletion: %v", err)
	}
}

func TestRangesAndVariantsOfContent(t *testing.T) {
	p, _ := simulated(t)
	id := submit(t, p, "", spec("a fox"))
	rows := []struct {
		v       video.Variant
		asked   string
		status  int
		content string
		err     error
	}{
		{video.Video, "bytes=0-9", 206, "bytes 0-9/", nil},
		{video.Video, "bytes=99999999-", 416, "bytes */", nil},
		{"poster", "", 0, "", video.ErrNoVariant},
	}
	for _, row := range rows {
		c, err := p.Content(t.Context(), id, row.v, row.asked)
		if !errors.Is(err, row.err) {
			t.Errorf("%s %s: %v", row.v, row.asked, err)
		}
		if err != nil {
			continue
		}
		if got := c.Header.Get("Content-Range"); c.Status != row.status || !strings.HasPrefix(got, row.content) {
			t.Errorf("%s: %d %q", row.asked, c.Status, got)
		}
		c.Close()
	}
}

func TestVideosAreMadeOfOthers(t *testing.T) {
	p, _ := simulated(t)
	source := &video.Source{ID: submit(t, p, "", spec("a fox"))}
	mine, err := clip.Video(clip.Spec{Width: 1280, Height: 720, Seconds: 4})
	if err != nil {
		t.Fatal(err)
	}
	file := &video.Source{File: &video.File{ID: "f", Type: "video/mp4", Size: int64(len(mine))}}
	open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(mine)), nil }
	for _, s := range []video.Spec{
		{Operation: video.Remix, Source: source}, {Operation: video.Edit, Source: source},
		{Operation: video.Edit, Source: file},
		{Operation: video.Extend, Source: source, Seconds: 12, Added: 8},
		{Operation: video.Extend, Source: file, Seconds: 12, Added: 8},
	} {
		s.Prompt = "at night"
		if _, status, err := p.Submit(t.Context(), "", &s, open); err != nil || status.State == "" {
			t.Errorf("%s: %+v %v", s.Operation, status, err)
		}
	}
	for _, s := range []video.Spec{{Operation: video.Remix, Source: file}, {Operation: video.Edit}, {Operation: video.Edit, Source: &video.Source{ID: "../x"}}, {Operation: "paint"}} {
		if _, _, err := p.Submit(t.Context(), "", &s, open); classOf(err) != upstream.CallerFault {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestPictureGoesWithAJob(t *testing.T) {
	var saw atomic.Value
	p := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if int64(len(b)) != r.ContentLength {
			t.Errorf("%d bytes of %d", len(b), r.ContentLength)
		}
		saw.Store(r.Header.Get("Content-Type") + "\n" + string(b))
		io.WriteString(w, `{"id":"v1","status":"queued"}`)
	}))
	open := func(id string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("PICTURE")), nil }
	s := spec("a fox")
	s.Reference = &video.File{ID: "f", Type: "image/png", Size: 7}
	for _, row := range []struct {
		characters []string
		want       []string
	}{
		{nil, []string{"multipart/form-data; boundary=", "name=\"seconds\"\r\n\r\n4\r\n",
			"filename=\"input_reference.png\"\r\nContent-Type: image/png\r\n\r\nPICTURE\r\n"}},
		{[]string{"char_1"}, []string{"application/json", `"characters":[{"id":"char_1"}]`,
			`"image_url":"data:image/png;base64,UElDVFVSRQ=="}}`}},
	} {
		s.Characters = row.characters
		if _, _, err := p.Submit(t.Context(), "", s, open); err != nil {
			t.Fatal(err)
		}
		for _, want := range row.want {
			if got := saw.Load().(string); !strings.Contains(got, want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
	}
}

func classOf(err error) upstream.Class {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f.Class
	}
	return upstream.OK
}

func TestRefusalsAreClassified(t *testing.T) {
	rows := []struct {
		status int
		body   string
		class  upstream.Class
	}{
		{400, `{"error":{"message":"no","code":"moderation_blocked"}}`, upstream.CallerFault},
		{401, `{}`, upstream.Credential},
		{404, `{}`, upstream.CallerFault},
		{429, `{}`, upstream.RateLimited},
		{500, `<html>`, upstream.Transient},
		{503, ``, upstream.Overloaded},
		{302, ``, upstream.Transient},
		{
			200,
			`<html>`,
			upstream.MaybeSent,
		},
		{200, `{"status":"queued"}`, upstream.MaybeSent},
		{200, `{"id":"a/b"}`, upstream.MaybeSent},
	}
	for _, row := range rows {
		p := at(t, answering(row.status, row.body), "secret-key")
		_, _, err := p.Submit(t.Context(), "", spec("a fox"), nil)
		if classOf(err) != row.class {
			t.Errorf("%d %s: %v", row.status, row.body, err)
		}
		if row.status == 404 {
			if _, err = p.Poll(t.Context(), "v1"); !errors.Is(err, video.ErrJobNotFound) {
				t.Errorf("poll: %v", err)
			}
		}
	}
	p := at(t, answering(400, rows[0].body))
	_, _, err := p.Submit(t.Context(), "", spec("a fox"), nil)
	if f := new(dialogue.Error); !errors.As(err, &f) || f.Code != "moderation_blocked" {
		t.Errorf("moderation: %v", err)
	}
}

func TestForeignWordsAreUnderstood(t *testing.T) {
	for word, want := range map[string]video.State{"pending": video.Queued, "NOT_START": video.Queued, "processing": video.InProgress,
		"success": video.Completed, "canceled": video.Failed, "expired": video.Failed, "dreaming": ""} {
		p := at(t,
			answering(200, `{"id":"v","status":"`+word+`","progress":"33%","new":{}}`, "Openai-Poll-After-Ms", "2500"))
		s, err := p.Poll(t.Context(), "v")
		if err != nil || s.State != want || s.PollAfter != 2500*time.Millisecond {
			t.Errorf("%s: %+v %v", word, s, err)
		}
	}
}

func TestFinishedJobsReportTheirLengthAndSize(t *testing.T) {
	portrait := video.Size{Width: 720, Height: 1280}
	for _, c := range []struct {
		status, members string
		seconds         int
		size            video.Size
	}{
		{"completed", `"seconds":"8","size":"720x1280"`, 8, portrait},
		{"completed", `"seconds":8,"size":"720x1280"`, 8, portrait},
		{"completed", `"seconds":"7.5"`, 8, video.Size{}},
		{"completed", `"seconds":1e300,"size":"720x1280x2"`, math.MaxInt32, video.Size{}},
		{"completed", `"seconds":"-4","size":"0x1280"`, 0, video.Size{}},
		{"completed", `"seconds":"NaN","size":"99999999x1"`, 0, video.Size{}},
		{"completed", `"seconds":null,"size":null`, 0, video.Size{}},
		{"completed", `"seconds":{},"size":[]`, 0, video.Size{}},
		{"in_progress", `"seconds":"8","size":"720x1280"`, 0, video.Size{}},
		{"failed", `"seconds":"8","size":"720x1280"`, 0, video.Size{}},
	} {
		s, err := at(t, answering(200, `{"id":"v","status":"`+c.status+`",`+c.members+`}`)).Poll(t.Context(), "v")
		if err != nil || s.Seconds != c.seconds || s.Size != c.size {
			t.Errorf("%s %s: got %d s, %v, %v, want %d s, %v", c.status, c.members, s.Seconds, s.Size, err, c.seconds,
				c.size)
		}
	}
}

func TestFailedJobSaysNothingOfTheProvider(t *testing.T) {
	p := at(
		t,
		answering(
			200,
			`{"id":"v","status":"failed","error":{"code":"sentinel_block","message":"see https://inner.example.com/x?key=1 with secret-key"}}`,
		),
		"secret-key",
	)
	s, err := p.Poll(t.Context(), "v")
	if err != nil || s.Error == nil || s.Error.Code != "sentinel_block" {
		t.Fatalf("%+v %v", s, err)
	}
	if m := s.Error.Message; strings.Contains(m, "secret-key") || strings.Contains(m, "inner.example") {
		t.Errorf("the client reads %q", m)
	}
}

func TestJobIsFoundWithTheKeyThatMadeIt(t *testing.T) {
	p := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer second" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"id":"v","status":"queued"}`)
	}), "first", "second", "third")
	for range 3 { // whichever has its turn
		if s, err := p.Poll(t.Context(), "v"); err != nil || s.State != video.Queued {
			t.Errorf("%+v %v", s, err)
		}
	}
}

func TestDownloadThatBreaksIsNoEnd(t *testing.T) {
	p, _ := simulated(t)
	id := submit(t, p, "", spec("a fox [sandbox: cut-downloads=1]"))
	c, err := p.Content(t.Context(), id, video.Video, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.Copy(io.Discard, c); classOf(err) != upstream.MaybeSent {
		t.Errorf("%v", err)
	}
}

func TestPageIsNoContent(t *testing.T) {
	for _, kind := range []string{"text/html", "application/json", "image/svg+xml"} {
		p := at(t, answering(200, "x", "Content-Type", kind))
		if c, err := p.Content(t.Context(), "v", video.Video, ""); err == nil {
			c.Close()
			t.Errorf("%s passed", kind)
		}
	}
}

func TestHundredMegabytesAreNotHeld(t *testing.T) {
	const size = 100 << 20
	chunk := make([]byte, 64<<10)
	p := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Content-Length", "104857600")
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := p.Content(t.Context(), "v", video.Video, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{c}, make([]byte, 32<<10))
	runtime.ReadMemStats(&after)
	if err != nil || n != size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if held := after.TotalAlloc - before.TotalAlloc; held > 4<<20 {
		t.Errorf("%d bytes were allocated for a download of %d", held, n)
	} else {
		t.Logf("%d KiB were allocated in all", held>>10)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	p := at(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Poll(ctx, "v"); classOf(err) != upstream.Cancelled {
		t.Errorf("%v", err)
	}
}
