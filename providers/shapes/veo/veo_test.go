package veo_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/sandbox/media"
	"stagedoor/providers/shapes/veo"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

func at(t *testing.T, h http.Handler) *veo.Provider {
	t.Helper()
	return atOver(t, h, nil)
}

// atOver is at with a transport in place of the network.
func atOver(t *testing.T, h http.Handler, transport http.RoundTripper) *veo.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := upstream.New(
		upstream.Options{BaseURL: srv.URL + "/v1beta", APIKeys: []string{"secret-key"}, Transport: transport},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return veo.New(c, false)
}

func simulated(t *testing.T) *veo.Provider {
	t.Helper()
	engine := &job.Engine{Now: time.Now, Time: time.Nanosecond}
	return at(t, media.Handler(&sandbox.Model{Env: &dialogue.Env{Now: time.Now}}, engine, http.NotFoundHandler()))
}

func spec(prompt string) *video.Spec {
	return &video.Spec{
		Operation: video.Create,
		Model:     "veo-3",
		Prompt:    prompt,
		Seconds:   8,
		Size:      video.Size{Width: 720, Height: 1280},
	}
}

func TestOperationIsMadePolledAndDownloaded(t *testing.T) {
	p := simulated(t)
	id, s, err := p.Submit(t.Context(), "", spec("a fox"), nil)
	if err != nil || s.State != video.Queued || !strings.HasPrefix(id, "models/veo-3/operations/") {
		t.Fatalf("%q %+v %v", id, s, err)
	}
	if s, err = p.Poll(t.Context(), id); err != nil || s.State != video.Completed {
		t.Fatalf("%+v %v", s, err)
	}
	c, err := p.Content(t.Context(), id, video.Video, "bytes=0-9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || len(b) != 10 || c.Status != 206 ||
		c.Header.Get("Content-Type") != "video/mp4" {
		t.Errorf("%d bytes, %d %v, %v", len(b), c.Status, c.Header, err)
	}
	if _, err := p.Content(t.Context(), id, video.Thumbnail, ""); !errors.Is(err, video.ErrNoVariant) {
		t.Errorf("thumbnail: %v", err)
	}
	longer := spec("on and on")
	longer.Operation, longer.Seconds, longer.Added, longer.Source = video.Extend, 16, 8, &video.Source{ID: id}
	if _, _, err := p.Submit(t.Context(), "", longer, nil); err != nil {
		t.Errorf("extend: %v", err)
	}
	longer.Source = &video.Source{File: &video.File{ID: "f", Type: "video/mp4", Size: 5}}
	opened := 0
	open := func(string) (io.ReadCloser, error) { opened++; return io.NopCloser(strings.NewReader("bytes")), nil }
	if _, _, err := p.Submit(t.Context(), "", longer, open); err != nil || opened == 0 {
		t.Errorf("extend an upload, opened %d times: %v", opened, err)
	}
}

func TestSandboxEndsAreTold(t *testing.T) {
	p := simulated(t)
	for prompt, code := range map[string]string{"[sandbox: block=0]": "moderation_blocked", "[sandbox: fail=0]": "video_generation_failed"} {
		id, _, err := p.Submit(t.Context(), "", spec(prompt), nil)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := p.Poll(t.Context(), id); err != nil || s.State != video.Failed || s.Error.Code != code {
			t.Errorf("%s: %+v %v", prompt, s, err)
		}
	}
	id, _, err := p.Submit(t.Context(), "", spec("[sandbox: vanish=0]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Poll(t.Context(), id); !errors.Is(err, video.ErrJobNotFound) {
		t.Errorf("vanished: %v", err)
	}
}

func TestRepliesAreUnderstood(t *testing.T) {
	rows := []struct {
		name, body string
		state      video.State
		code       string
		fails      bool
	}{
		{"runs", `{"name":"models/m/operations/o","metadata":{}}`, video.InProgress, "", false},
		{
			"done",
			`{"name":"o","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://x/y"}}]}}}`,
			video.Completed,
			"",
			false,
		},
		{
			"done flat",
			`{"name":"o","done":true,"response":{"generatedVideos":[{"video":{"uri":"https://x/y"}}]}}`,
			video.Completed,
			"",
			false,
		},
		{
			"filtered",
			`{"name":"o","done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":1}}}`,
			video.Failed,
			"moderation_blocked",
			false,
		},
		{
			"error",
			`{"name":"o","done":true,"error":{"code":13,"message":"secret-key"}}`,
			video.Failed,
			"video_generation_failed",
			false,
		},
		{"nothing", `{"name":"o","done":true}`, video.Failed, "video_generation_failed", false},
		{"a page", `<html>`, "", "", true},
		{"no name", `{"done":true}`, "", "", true},
		{"a way out", `{"name":"models/../../x"}`, "", "", true},
	}
	for _, row := range rows {
		p := at(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, row.body) }))
		s, err := p.Poll(t.Context(), "models/m/operations/o")
		if (err != nil) != row.fails || s.State != row.state {
			t.Errorf("%s: %+v %v", row.name, s, err)
		}
		if row.code != "" &&
			(s.Error == nil || s.Error.Code != row.code || strings.Contains(s.Error.Message, "secret-key")) {
			t.Errorf("%s: %+v", row.name, s.Error)
		}
	}
}

func TestWhatVeoCannotMakeIsRefusedUnasked(t *testing.T) {
	p := at(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") }))
	rows := []struct {
		param  string
		change func(*video.Spec)
	}{
		{"size", func(s *video.Spec) { s.Size.Width = 1024 }},
		{"seconds", func(s *video.Spec) { s.Seconds = 12 }},
		{"seconds", func(s *video.Spec) { s.Operation, s.Added, s.Source = video.Extend, 4, &video.Source{ID: "o"} }},
		{"video", func(s *video.Spec) { s.Operation, s.Added = video.Extend, 8 }},
		{"characters", func(s *video.Spec) { s.Characters = []string{"c"} }},
		{"model", func(s *video.Spec) { s.Operation = video.Remix }},
		{"model", func(s *video.Spec) { s.Model = "../x" }},
	}
	for _, row := range rows {
		s := spec("a fox")
		row.change(s)
		_, _, err := p.Submit(t.Context(), "", s, nil)
		if refusal := new(dialogue.Error); !errors.As(err, &refusal) || refusal.Param != row.param || refusal.Status != 400 {
			t.Errorf("%s: %v", row.param, err)
		}
	}
}

func TestFirstFrameGoesAlong(t *testing.T) {
	var body string
	p := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		io.WriteString(w, `{"name":"models/m/operations/o"}`)
	}))
	s := spec("a fox")
	s.Reference = &video.File{ID: "f", Type: "image/png", Size: 7}
	open := func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("PICTURE")), nil }
	if _, _, err := p.Submit(t.Context(), "", s, open); err != nil {
		t.Fatal(err)
	}
	want := `{"instances":[{"prompt":"a fox","image":{"mimeType":"image/png","bytesBase64Encoded":"UElDVFVSRQ=="}}],` +
		`"parameters":{"aspectRatio":"9:16","resolution":"720p","durationSeconds":8}}`
	if body != want {
		t.Errorf("sent %s\nwant %s", body, want)
	}
}

func TestKeyIsNeverSentToAnotherHost(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "secret-key") {
				t.Errorf("%s has the key", name)
			}
		}
		w.Header().Set("Content-Type", "video/mp4")
		io.WriteString(w, "MOVIE")
	}))
	defer files.Close()
	const public = "http://files.test"
	network := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "files.test:80" {
			address = files.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer network.CloseIdleConnections()
	for _, how := range []string{"at once", "redirected"} {
		p := atOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			uri := public + "/f"
			if how == "redirected" {
				uri = "http://" + r.Host + "/v1beta/files/f"
			}
			if strings.HasPrefix(r.URL.Path, "/v1beta/files/") {
				if r.Header.Get("X-Goog-Api-Key") != "secret-key" {
					t.Error("the provider itself was not shown the key")
				}
				http.Redirect(w, r, public+"/f", http.StatusFound)
				return
			}
			io.WriteString(
				w,
				`{"name":"o","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"`+uri+`"}}]}}}`,
			)
		}), network)
		c, err := p.Content(t.Context(), "o", video.Video, "")
		if err != nil {
			t.Fatal(how, err)
		}
		if b, err := io.ReadAll(c); string(b) != "MOVIE" || err != nil {
			t.Errorf("%s: %q %v", how, b, err)
		}
		c.Close()
	}
}

func TestBadKeyIsTheGatewaysFault(t *testing.T) {
	p := at(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		io.WriteString(
			w,
			`{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`,
		)
	}))
	_, _, err := p.Submit(t.Context(), "", spec("a fox"), nil)
	if f := new(upstream.Failure); !errors.As(err, &f) || f.Class != upstream.Credential || f.Err.Status != 502 {
		t.Errorf("%v", err)
	}
}
