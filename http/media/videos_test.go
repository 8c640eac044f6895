package media_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// perSecond is a price that is easy to count.
var perSecond = &catalog.Price{PerSecond: 10_000}

// studio is a provider of videos that makes them as fast as the test says.
type studio struct {
	engine job.Engine
	refuse error           // of submissions
	only   video.Operation // "": all

	mu    sync.Mutex
	specs []video.Spec // oldest first
}

// asked returns the submitted jobs, the oldest first.
func (s *studio) asked() []video.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.specs)
}

func newStudio(takes time.Duration) *studio {
	return &studio{engine: job.Engine{Now: time.Now, Time: takes}}
}

func (s *studio) Supports(o video.Operation) bool { return s.only == "" || s.only == o }
func (s *studio) Idempotent() bool                { return true }

func (s *studio) Submit(ctx context.Context, key string, spec *video.Spec,
	open video.Opener) (string, video.Status, error) {
	if s.refuse != nil {
		return "", video.Status{}, s.refuse
	}
	file := spec.Reference
	if spec.Source != nil && spec.Source.File != nil {
		file = spec.Source.File
	}
	if file != nil {
		f, err := open(file.ID)
		if err != nil {
			return "", video.Status{}, err
		}
		n, _ := io.Copy(io.Discard, f)
		f.Close()
		if n != file.Size {
			return "", video.Status{}, errors.New("the file is not whole")
		}
	}
	s.mu.Lock()
	s.specs = append(s.specs, *spec)
	s.mu.Unlock()
	id, err := s.engine.Submit(ctx, key,
		job.Spec{Prompt: spec.Prompt, Width: spec.Size.Width, Height: spec.Size.Height, Seconds: spec.Seconds})
	return id, video.Status{State: video.Queued, PollAfter: time.Millisecond}, err
}

func (s *studio) Poll(ctx context.Context, id string) (video.Status, error) {
	st, err := s.engine.Poll(ctx, id)
	st.PollAfter = time.Millisecond
	return st.Status, err
}

func (s *studio) Content(ctx context.Context, id string, v video.Variant, byteRange string) (*video.Content, error) {
	c, err := s.engine.Content(ctx, id, v)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(c)
	out := &video.Content{Status: 200, Header: http.Header{"Content-Type": {c.MediaType}, "Etag": {`"` + id + `"`}}}
	var from, to int
	if n, _ := fmt.Sscanf(byteRange, "bytes=%d-%d", &from, &to); n > 0 {
		if from >= len(all) {
			out.Status = 416
			out.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", len(all)))
			all = nil
		} else {
			out.Status = 206
			out.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(all)))
			all = all[from : to+1]
		}
	}
	out.Header.Set("Content-Length", strconv.Itoa(len(all)))
	out.ReadCloser = io.NopCloser(bytes.NewReader(all))
	return out, err
}

func (s *studio) Delete(_ context.Context, id string) error { return s.engine.Delete(id) }

// openStudio assembles a gateway whose video-* come from a studio.
func openStudio(t *testing.T, takes time.Duration) (*gateway, *studio) {
	t.Helper()
	specs := []catalog.Provider{{Name: "studio", Shape: catalog.Sandbox}}
	models := []catalog.Model{
		{Pattern: "video-*", Price: perSecond, Targets: []catalog.Route{{Provider: "studio", Model: "*"}}},
	}
	cat, errs := catalog.New(specs, models)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s := newStudio(takes)
	g := &gateway{t: t, now: time.Now, videos: func(*catalog.Provider, *upstream.Client) video.Upstream { return s }}
	g.build(cat, specs)
	return g, s
}

func (g *gateway) send(method, path, contentType, body string, headers ...string) *reply {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.secret)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return &reply{res.StatusCode, res.Header, b}
}

const asJSON = "application/json"

// begun begins a job and returns its id.
func (g *gateway) begun(path, body string, headers ...string) string {
	g.t.Helper()
	r := g.send("POST", path, asJSON, body, headers...)
	if r.status != 200 || !strings.HasPrefix(r.get("id").Str, "video_") || r.get("status").Str != "queued" {
		g.t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	return r.get("id").Str
}

// ended waits for a job's end with long polls.
func (g *gateway) ended(id string) *reply {
	g.t.Helper()
	for range 50 {
		r := g.send("GET", "/v1/videos/"+id+"?wait=10s", "", "")
		if s := r.get("status").Str; r.status != 200 || s == "completed" || s == "failed" {
			return r
		}
	}
	g.t.Fatalf("%s does not end", id)
	return nil
}

func (g *gateway) refused(r *reply, status int, code, param string) {
	g.t.Helper()
	if r.status != status || r.get("error.code").Str != code || r.get("error.param").Str != param {
		g.t.Errorf("got %d %s, want %d %s about %q", r.status, r.body, status, code, param)
	}
}

func memberNames(r gjson.Result) (names []string) {
	r.ForEach(func(k, _ gjson.Result) bool { names = append(names, k.Str); return true })
	slices.Sort(names)
	return names
}

func TestAVideosWholeLife(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 50*time.Millisecond)
	id := g.begun("/v1/videos", `{"prompt":"a cat","seconds":8,"size":"1280x720"}`)
	r := g.ended(id)
	want := []string{
		"completed_at",
		"created_at",
		"error",
		"expires_at",
		"id",
		"model",
		"object",
		"progress",
		"prompt",
		"remixed_from_video_id",
		"seconds",
		"size",
		"status",
	}
	if got := memberNames(gjson.ParseBytes(r.body)); !slices.Equal(got, want) {
		t.Errorf("members %v", got)
	}
	if r.get("status").Str != "completed" || r.get("seconds").Str != "8" || r.get("size").Str != "1280x720" ||
		r.get("model").Str != "video-2" ||
		r.get("progress").Int() != 100 ||
		r.get("completed_at").Int() == 0 ||
		r.get("expires_at").Int() == 0 {
		t.Errorf("ended as %s", r.body)
	}
	if got := g.spent(); got != 80_000 {
		t.Errorf("spent %d", got)
	}
	if asked := s.asked(); len(asked) != 1 || asked[0].Prompt != "a cat" || asked[0].Model != "sora-2" {
		t.Errorf("asked %+v", asked)
	}

	for variant, mediaType := range map[string]string{"": "video/mp4", "?variant=thumbnail": "image/webp",
		"?variant=spritesheet": "image/jpeg"} {
		c := g.send("GET", "/v1/videos/"+id+"/content"+variant, "", "", "Accept", "application/binary")
		if c.status != 200 || c.header.Get("Content-Type") != mediaType || len(c.body) == 0 ||
			c.header.Get("Content-Length") != strconv.Itoa(len(c.body)) ||
			!strings.Contains(c.header.Get("Content-Disposition"), id) {
			t.Errorf("%s: %d %v, %d bytes", variant, c.status, c.header, len(c.body))
		}
	}
	content := "/v1/videos/" + id + "/content"
	whole := g.send("GET", content, "", "")
	part := g.send("GET", content, "", "", "Range", "bytes=4-7")
	if part.status != 206 || !bytes.Equal(part.body, whole.body[4:8]) ||
		part.header.Get("Content-Range") != fmt.Sprintf("bytes 4-7/%d", len(whole.body)) {
		t.Errorf("a part: %d %v %q", part.status, part.header, part.body)
	}
	tag := whole.header.Get("Etag")
	if r := g.send("GET", content, "", "", "If-None-Match", tag); r.status != 304 || !strings.Contains(tag, id) {
		t.Errorf("the same again: %d, %s", r.status, tag)
	}
	for _, tags := range []string{"*", "W/" + tag, `"other", ` + tag, `"other"`} {
		want := http.StatusNotModified
		if tags == `"other"` {
			want = http.StatusOK
		}
		if r := g.send("GET", content, "", "", "If-None-Match", tags); r.status != want {
			t.Errorf("If-None-Match: %s is answered with %d", tags, r.status)
		}
	}
	if r := g.send("GET", content, "", "", "Range", "bytes=4-7", "If-Range", tag); r.status != 206 {
		t.Errorf("a part of the same: %d", r.status)
	}
	if r := g.send("GET", content, "", "", "Range", "bytes=4-7", "If-Range", `"other"`); r.status != 200 {
		t.Errorf("a part of another: %d", r.status)
	}
	for _, asked := range []string{"bytes=999999999-999999999", "bytes=-0"} {
		beyond := g.send("GET", content, "", "", "Range", asked)
		g.refused(beyond, 416, "range_not_satisfiable", "Range")
		if beyond.header.Get("Content-Range") == "" {
			t.Errorf("%s: 416 without Content-Range", asked)
		}
	}
	if head := g.send("HEAD", content, "", ""); head.status != 200 || len(head.body) != 0 ||
		head.header.Get("Content-Length") != strconv.Itoa(len(whole.body)) {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	g.refused(g.send("GET", content+"?variant=poster", "", ""), 400, "invalid_value", "variant")

	if r := g.send("DELETE", "/v1/videos/"+id, "", ""); string(
		r.body,
	) != fmt.Sprintf(`{"id":%q,"object":"video.deleted","deleted":true}`, id) {
		t.Errorf("deleted: %d %s", r.status, r.body)
	}
	for _, path := range []string{"", "/content"} {
		g.refused(g.send("GET", "/v1/videos/"+id+path, "", ""), 404, "video_not_found", "video_id")
	}
	g.refused(g.send("DELETE", "/v1/videos/"+id, "", ""), 404, "video_not_found", "video_id")
	// A client that deletes the jobs of a page can go on to the next one.
	if r := g.send("GET", "/v1/videos?after="+id, "", ""); r.status != 200 || len(r.get("data").Array()) != 0 {
		t.Errorf("the page behind a deleted job: %d %s", r.status, r.body)
	}
}

func TestVideosMadeOfOthers(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 20*time.Millisecond)
	source := g.begun("/v1/videos", `{"prompt":"a cat","seconds":"8","size":"1280x720"}`)
	g.ended(source)
	of := `{"prompt":"a dog","video":{"id":"` + source + `"}`
	for path, want := range map[string]struct {
		body, seconds, from string
		op                  video.Operation
	}{
		"/v1/videos/" + source + "/remix": {`{"prompt":"a dog"}`, "8", source, video.Remix},
		"/v1/videos/edits":                {of + `}`, "8", "", video.Edit},
		"/v1/videos/extensions":           {of + `,"seconds":"4"}`, "12", "", video.Extend},
	} {
		id := g.begun(path, want.body)
		r := g.ended(id)
		all := s.asked()
		asked := all[len(all)-1]
		if r.get("seconds").Str != want.seconds || r.get("size").Str != "1280x720" ||
			r.get("remixed_from_video_id").Str != want.from ||
			r.get("prompt").Str != "a dog" {
			t.Errorf("%s: %s", path, r.body)
		}
		if asked.Operation != want.op || asked.Source == nil || asked.Source.ID == "" ||
			strings.HasPrefix(asked.Source.ID, "video_") {
			t.Errorf("%s: asked %+v", path, asked)
		}
	}
	if got := g.spent(); got != (8+8+8+4)*10_000 {
		t.Errorf("spent %d", got)
	}
}

func TestWhatIsNotReady(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Hour)
	id := g.begun("/v1/videos", `{"prompt":"a cat"}`)
	at := "/v1/videos/" + id
	g.refused(g.send("GET", at+"/content", "", ""), 400, "video_not_ready", "video_id")
	g.refused(g.send("DELETE", at, "", ""), 400, "video_not_terminal", "video_id")
	g.refused(g.send("POST", at+"/remix", asJSON, `{"prompt":"a dog"}`), 400, "video_not_completed", "video_id")
	g.refused(g.send("POST", "/v1/videos/edits", asJSON, `{"prompt":"a dog","video":{"id":"`+id+`"}}`), 400,
		"video_not_completed", "video.id")
	g.refused(g.send("POST", "/v1/videos/edits", asJSON, `{"prompt":"a dog","video":{"id":"video_unknown"}}`), 404,
		"video_not_found", "video.id")
	g.refused(g.send("POST", "/v1/videos/video_unknown/remix", asJSON, `{"prompt":"a dog"}`), 404, "video_not_found",
		"video_id")
	g.refused(g.send("POST", at+"/remix", asJSON, `{"prompt":""}`), 400, "invalid_value", "prompt")
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":"p","model":"no-such-model"}`), 404, "model_not_found",
		"model")
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":`), 400, "invalid_json", "")
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":"p","prompt":"q"}`), 400, "duplicate_key", "prompt")
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":"p","x":{"a":1,"a":2}}`), 400, "duplicate_key", "x.a")
	g.refused(g.send("POST", "/v1/videos", "text/plain", `prompt`), 415, "unsupported_media_type", "")
	g.refused(g.send("GET", at+"?wait=soon", "", ""), 400, "invalid_value", "wait")
	g.refused(g.send("GET", "/v1/videos?limit=101", "", ""), 400, "invalid_value", "limit")
	if r := g.send("GET", at, "", "", "X-Stainless-Poll-Helper", "true"); r.header.Get(
		"Openai-Poll-After-Ms",
	) != "5000" {
		t.Errorf("poll after %q", r.header.Get("Openai-Poll-After-Ms"))
	}
	start := time.Now()
	if r := g.send("GET", at+"?wait=1", "", ""); r.status != 200 || time.Since(start) < 900*time.Millisecond {
		t.Errorf("waited %s: %s", time.Since(start), r.body)
	}
	g.secret = "sd-other"
	for _, r := range []*reply{g.send("GET", at, "", ""), g.send("GET", at+"/content", "", ""),
		g.send("DELETE", at, "", ""),
		g.send("POST", at+"/remix", asJSON, `{"prompt":"a dog"}`)} {
		g.refused(r, 404, "video_not_found", "video_id")
	}
	if r := g.send("GET", "/v1/videos", "", ""); len(r.get("data").Array()) != 0 {
		t.Errorf("another user's jobs are listed: %s", r.body)
	}
	g.secret = "sd-narrow"
	if r := g.send("GET", at, "", ""); r.status != 403 {
		t.Errorf("without the scope: %d", r.status)
	}
}

func TestARefusedVideoIsToldAtOnce(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, time.Hour)
	s.refuse = &upstream.Failure{
		Class: upstream.CallerFault,
		Err: &dialogue.Error{
			Status:  400,
			Type:    "video_generation_user_error",
			Code:    "moderation_blocked",
			Message: "no",
		},
	}
	r := g.send("POST", "/v1/videos", asJSON, `{"prompt":"something bad"}`)
	g.refused(r, 400, "moderation_blocked", "")
	if r.get("error.type").Str != "video_generation_user_error" {
		t.Errorf("got %s", r.body)
	}
	if r := g.send("GET", "/v1/videos", "", ""); len(r.get("data").Array()) != 0 {
		t.Errorf("listed %s", r.body)
	}
	if got := g.spent(); got != 0 {
		t.Errorf("spent %d", got)
	}
}

// formOf is a form as the SDKs send it.
func formOf(t *testing.T, file []byte, fields ...string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("input_reference", "first.bin") // application/octet-stream
		if err != nil {
			t.Fatal(err)
		}
		part.Write(file)
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

func TestFormsWithPictures(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 10*time.Millisecond)
	picture := pngOf(1280, 720)
	contentType, body := formOf(t, picture, "prompt", "a cat", "size", "1280x720", "seconds", "4")
	r := g.send("POST", "/v1/videos", contentType, body)
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	g.ended(r.get("id").Str)
	ref := s.asked()[0].Reference
	if ref == nil || ref.Type != "image/png" || ref.Size != int64(len(picture)) {
		t.Errorf("the provider got %+v", ref)
	}
	if used := g.blobs.Used(); used != 0 {
		t.Errorf("%d bytes of uploads are left", used)
	}
	contentType, body = formOf(t, nil, "prompt", "a dog", "video[id]", r.get("id").Str)
	if r := g.send("POST", "/v1/videos/edits", contentType, body); r.status != 200 {
		t.Errorf("an edit: %d %s", r.status, r.body)
	}
	contentType, body = formOf(t, picture, "prompt", "a cat", "size", "720x1280")
	g.refused(g.send("POST", "/v1/videos", contentType, body), 400, "invalid_value", "input_reference")
	contentType, body = formOf(t, []byte("GIF89a"), "prompt", "a cat")
	g.refused(g.send("POST", "/v1/videos", contentType, body), 400, "invalid_image_format", "input_reference")
	contentType, body = formOf(t, nil, "prompt", "a cat", "prompt", "a dog")
	g.refused(g.send("POST", "/v1/videos", contentType, body), 400, "invalid_value", "prompt")
	if used := g.blobs.Used(); used != 0 {
		t.Errorf("%d bytes of uploads are left", used)
	}
}

// clipOf is a video as a client has one.
func clipOf(t *testing.T, width, height, seconds int) string {
	t.Helper()
	b, err := clip.Video(clip.Spec{Width: width, Height: height, Seconds: seconds})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// uploadOf is a form with files: each is its field, its name ("": none), its type
// ("": none) and its content.
func uploadOf(t *testing.T, fields []string, files ...[4]string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		h := textproto.MIMEHeader{
			"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": f[0]})},
		}
		if f[1] != "" {
			h.Set("Content-Disposition",
				mime.FormatMediaType("form-data", map[string]string{"name": f[0], "filename": f[1]}))
		}
		if f[2] != "" {
			h.Set("Content-Type", f[2])
		}
		part, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, f[3])
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

func TestVideosMadeOfUploads(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 10*time.Millisecond)
	mine := clipOf(t, 1280, 720, 5)
	const edits, extensions = "/v1/videos/edits", "/v1/videos/extensions"
	spent := int64(0)
	for name, c := range map[string]struct {
		path    string
		fields  []string
		file    [4]string
		seconds string
		paid    int64
	}{
		"an edit":      {edits, nil, [4]string{"video", "a.mp4", "video/mp4", mine}, "5", 5},
		"without type": {edits, nil, [4]string{"video", "blob", "application/octet-stream", mine}, "5", 5},
		"without name": {edits, nil, [4]string{"video", "", "", mine}, "5", 5},
		"by a model":   {edits, []string{"model", "video-other"}, [4]string{"video", "a.mp4", "", mine}, "5", 5},
		"an extension": {extensions, []string{"seconds", "4"}, [4]string{"video", "a.mp4", "", mine}, "9", 4},
	} {
		contentType, body := uploadOf(t, append([]string{"prompt", "a dog"}, c.fields...), c.file)
		r := g.send("POST", c.path, contentType, body)
		if r.status != 200 {
			t.Fatalf("%s: %d %s", name, r.status, r.body)
		}
		r = g.ended(r.get("id").Str)
		if r.get("status").Str != "completed" || r.get("seconds").Str != c.seconds || r.get("size").Str != "1280x720" ||
			!strings.HasPrefix(r.get("model").Str, "video-") ||
			r.get("remixed_from_video_id").Str != "" {
			t.Errorf("%s: %s", name, r.body)
		}
		all := s.asked()
		asked := all[len(all)-1]
		if from := asked.Source; from == nil || from.ID != "" || from.File == nil || from.File.Type != "video/mp4" ||
			from.File.Size != int64(len(mine)) {
			t.Errorf("%s: asked %+v", name, asked)
		}
		spent += c.paid * 10_000
		if got := g.spent(); got != spent {
			t.Errorf("%s: spent %d, want %d", name, got, spent)
		}
	}
	if used := g.blobs.Used(); used != 0 {
		t.Errorf("%d bytes of uploads are left", used)
	}
}

func TestUploadsThatAreRefusedCostNothing(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 10*time.Millisecond)
	mine, prompt := clipOf(t, 1280, 720, 4), []string{"prompt", "a dog"}
	upload := func(content string) [4]string { return [4]string{"video", "a.mp4", "video/mp4", content} }
	const edits, extensions = "/v1/videos/edits", "/v1/videos/extensions"
	for name, c := range map[string]struct {
		path        string
		fields      []string
		files       [][4]string
		code, param string
	}{
		"a picture":     {edits, prompt, [][4]string{upload(string(pngOf(8, 8)))}, "invalid_video_format", "video"},
		"an empty file": {edits, prompt, [][4]string{upload("")}, "invalid_video_format", "video"},
		"a large nothing": {edits, prompt, [][4]string{upload(strings.Repeat("x", 1<<20))}, "invalid_video_format",
			"video"},
		"a damaged video": {edits, prompt, [][4]string{upload(mine[:100])}, "invalid_video", "video"},
		"two videos":      {edits, prompt, [][4]string{upload(mine), upload(mine)}, "invalid_value", "video"},
		"a video and id": {edits, append([]string{"video[id]", "video_1"}, prompt...), [][4]string{upload(mine)},
			"invalid_value", "video"},
		"a size": {edits, prompt, [][4]string{upload(clipOf(t, 1920, 1080, 4))}, "invalid_value", "video"},
		"a length": {extensions, append([]string{"seconds", "20"}, prompt...),
			[][4]string{upload(clipOf(t, 1280, 720, 101))}, "invalid_value", "seconds"},
		"without prompt": {edits, nil, [][4]string{upload(mine)}, "missing_required_parameter", "prompt"},
		"with a picture": {edits, prompt, [][4]string{upload(mine),
			{"input_reference", "a.png", "", string(pngOf(1280, 720))}}, "unsupported_parameter", "input_reference"},
		"for a new video": {"/v1/videos", prompt, [][4]string{upload(mine)}, "invalid_value", "video"},
		"for a remix":     {"/v1/videos/video_1/remix", prompt, [][4]string{upload(mine)}, "invalid_value", "video"},
		"an unknown model": {edits, append([]string{"model", "no-such-model"}, prompt...), [][4]string{upload(mine)},
			"model_not_found", "model"},
	} {
		contentType, body := uploadOf(t, c.fields, c.files...)
		status := 400
		if c.code == "model_not_found" {
			status = 404
		}
		t.Log(name)
		g.refused(g.send("POST", c.path, contentType, body), status, c.code, c.param)
	}
	s.only = video.Create
	contentType, body := uploadOf(t, prompt, upload(mine))
	g.refused(g.send("POST", edits, contentType, body), 400, "unsupported_operation", "model")
	s.only, s.refuse = "", &upstream.Failure{
		Class: upstream.CallerFault,
		Err:   dialogue.Unsupported("video", "is not for this provider"),
	}
	g.refused(g.send("POST", edits, contentType, body), 400, "unsupported_parameter", "video")
	if used, spent, asked := g.blobs.Used(), g.spent(), s.asked(); used != 0 || spent != 0 || len(asked) != 0 {
		t.Errorf("%d bytes of uploads are left, %d spent, asked %+v", used, spent, asked)
	}
}

func TestAClientsKeyMakesOneVideoOfAnUpload(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, 10*time.Millisecond)
	first := ""
	for _, seconds := range []int{4, 4, 5} {
		contentType, body := uploadOf(t, []string{"prompt", "a dog"},
			[4]string{"video", "a.mp4", "video/mp4", clipOf(t, 1280, 720, seconds)})
		r := g.send("POST", "/v1/videos/edits", contentType, body, "Idempotency-Key", "k1")
		switch {
		case first == "":
			first = r.get("id").Str
			g.ended(first)
		case seconds == 4 && r.get("id").Str != first:
			t.Errorf("again: %s", r.body)
		case seconds == 5:
			g.refused(r, 409, "idempotency_key_reused", "Idempotency-Key")
		}
	}
	if used := g.blobs.Used(); used != 0 || len(s.asked()) != 1 {
		t.Errorf("%d bytes of uploads are left, %d were made", used, len(s.asked()))
	}
}

func TestAClientsKeyMakesOneVideo(t *testing.T) {
	t.Parallel()
	g, s := openStudio(t, time.Hour)
	first := g.begun("/v1/videos", `{"prompt":"a cat"}`, "Idempotency-Key", "k1")
	again := g.send("POST", "/v1/videos", asJSON, `{"prompt":"a cat", "seconds":4}`, "Idempotency-Key", "k1")
	if again.get("id").Str != first || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %s", again.body)
	}
	contentType, body := formOf(t, nil, "prompt", "a cat")
	if r := g.send("POST", "/v1/videos", contentType, body, "Idempotency-Key", "k1"); r.get("id").Str != first {
		t.Errorf("as a form: %s", r.body)
	}
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":"a dog"}`, "Idempotency-Key", "k1"), 409,
		"idempotency_key_reused", "Idempotency-Key")
	g.refused(g.send("POST", "/v1/videos", asJSON, `{"prompt":"a dog"}`, "Idempotency-Key", strings.Repeat("k", 256)),
		400, "invalid_value", "Idempotency-Key")
	if n := len(s.asked()); n != 1 {
		t.Errorf("%d were made", n)
	}
}

func TestVideosAreListed(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Hour)
	var ids []string
	for n := range 5 {
		time.Sleep(2 * time.Millisecond) // ids grow with the millisecond
		ids = append(ids, g.begun("/v1/videos", fmt.Sprintf(`{"prompt":"cat %d"}`, n)))
	}
	page := func(query string) (got []string, more bool) {
		r := g.send("GET", "/v1/videos"+query, "", "")
		for _, v := range r.get("data").Array() {
			got = append(got, v.Get("id").Str)
		}
		if len(got) > 0 && (r.get("first_id").Str != got[0] || r.get("last_id").Str != got[len(got)-1]) {
			t.Errorf("%s: %s", query, r.body)
		}
		return got, r.get("has_more").Bool()
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	if got, more := page(""); !slices.Equal(got, newest) || more {
		t.Errorf("all: %v %v", got, more)
	}
	if got, more := page("?limit=2&after=" + newest[1]); !slices.Equal(got, newest[2:4]) || !more {
		t.Errorf("a page: %v %v", got, more)
	}
	if got, more := page("?order=asc&limit=3"); !slices.Equal(got, ids[:3]) || !more {
		t.Errorf("ascending: %v %v", got, more)
	}
	for _, id := range []string{"video_1", "nonsense"} {
		g.refused(g.send("GET", "/v1/videos?after="+id, "", ""), 400, "invalid_value", "after")
	}
	g.secret = "sd-other"
	g.refused(g.send("GET", "/v1/videos?after="+ids[0], "", ""), 400, "invalid_value", "after")
}

// A long poll uses one of its key's requests per minute and one of its owner's
// watchers, and is answered at once when its key is revoked.
func TestLongPollEndsWhenTheStoreHasFailed(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Hour)
	at := "/v1/videos/" + g.begun("/v1/videos", `{"prompt":"a cat"}`)
	answered := make(chan *reply, 1)
	go func() { answered <- g.send("GET", at+"?wait=50s", "", "") }()
	for g.watchers.Used() == 0 {
		time.Sleep(time.Millisecond)
	}
	g.store.Refuse(errors.New("the disk is gone"))
	began := time.Now()
	key := identity.Key{ID: "new", Name: "n", Prefix: "12345678", Hash: state.HashSecret("sd-new"), Enabled: true}
	if err := identity.CreateKey(t.Context(), g.state, key); !errors.Is(err, state.ErrUnavailable) {
		t.Fatal(err)
	}
	if r := <-answered; r.status != 200 || time.Since(began) > 40*time.Second {
		t.Errorf("answered with %d after %s: %s", r.status, time.Since(began), r.body)
	}
}

func TestLongPollIsCountedAndEndsWithItsKey(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { g.auth.EndRevoked(ctx, nil) })
	defer wg.Wait()
	defer cancel()
	limited := identity.Key{
		ID:      "k",
		Hash:    state.HashSecret("sd-test"),
		User:    "7",
		Enabled: true,
		Limits:  identity.Limits{RPM: 2},
	}
	g.auth.SetFixed([]identity.Key{limited})
	at := "/v1/videos/" + g.begun("/v1/videos", `{"prompt":"a cat"}`)
	answered := make(chan *reply, 1)
	go func() { answered <- g.send("GET", at+"?wait=50s", "", "") }()
	for g.watchers.Held("user:7") == 0 {
		time.Sleep(time.Millisecond)
	}
	g.refused(g.send("GET", at+"?wait=1s", "", ""), 429, "rate_limit_exceeded", "")
	if r := g.send("GET", at, "", ""); r.status != 200 {
		t.Errorf("a request that does not wait: %d %s", r.status, r.body)
	}
	began := time.Now()
	g.auth.SetFixed(nil)
	g.refused(<-answered, 401, "invalid_api_key", "")
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("answered after %s", took)
	}
	for g.watchers.Used() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Pictures and videos take the turns of their key's user at a provider, not of the key.
func TestPicturesAndVideosTakeTheTurnsOfTheirUser(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Millisecond)
	if err := g.runtime.SetPaused(t.Context(), "studio", true); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { g.generate(object{"model": "video-1"}) })
	wg.Go(func() { g.send("POST", "/v1/videos", asJSON, `{"prompt":"a cat"}`) })
	var owners []string
	for len(owners) < 2 {
		waiters, err := g.runtime.Providers()[0].Limiter.Queue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		owners = nil
		for _, w := range waiters {
			owners = append(owners, w.Owner)
		}
	}
	if err := g.runtime.SetPaused(t.Context(), "studio", false); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !slices.Equal(owners, []string{"user:7", "user:7"}) {
		t.Errorf("turns are taken by %q", owners)
	}
}
