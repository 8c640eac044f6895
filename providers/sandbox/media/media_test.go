package media_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/sandbox/media"

	_ "image/jpeg"

	_ "golang.org/x/image/webp"
)

// service is a sandbox over HTTP whose clock is set by hand.
type service struct {
	http.Handler
	now atomic.Int64 // Unix seconds
}

func newService() *service {
	s := &service{}
	s.now.Store(1_700_000_000)
	var ids atomic.Int64
	now := func() time.Time { return time.Unix(s.now.Load(), 0) }
	env := &dialogue.Env{Now: now, ID: func() string { return strconv.FormatInt(ids.Add(1), 10) }}
	model := &sandbox.Model{Env: env, Base: sandbox.Script{Pace: sandbox.MaxPace}}
	text := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.Copy(w, r.Body)
	})
	s.Handler = media.Handler(model, &job.Engine{Now: now, Time: 100 * time.Second}, text)
	return s
}

// call sends a request and returns the reply; its status is 0 if the connection
// was cut.
func (s *service) call(method, path, contentType, body string, header ...string) (w *httptest.ResponseRecorder) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w = httptest.NewRecorder()
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			w.Code = 0
		} else if p != nil {
			panic(p)
		}
	}()
	s.ServeHTTP(w, r)
	return w
}

func (s *service) json(path, body string, header ...string) *httptest.ResponseRecorder {
	return s.call(http.MethodPost, path, "application/json", body, header...)
}

func (s *service) get(path string) *httptest.ResponseRecorder {
	return s.call(http.MethodGet, path, "", "")
}

// form builds a body of texts; a value that begins with @ is a picture.
func form(t testing.TB, fields ...string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		content, isFile := strings.CutPrefix(fields[i+1], "@")
		var to io.Writer
		var err error
		if isFile {
			to, err = w.CreateFormFile(fields[i], "a.png")
		} else {
			to, err = w.CreateFormField(fields[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(to, content)
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

// square is a PNG of 64x64 whose left half is black, or transparent.
func square(t testing.TB, left color.NRGBA) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			m.SetNRGBA(x, y, color.NRGBA{255, 255, 255, 255})
			if x < 32 {
				m.SetNRGBA(x, y, left)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func decode(t testing.TB, data []byte) (image.Image, string) {
	t.Helper()
	m, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m, format
}

func TestImagesGenerations(t *testing.T) {
	s := newService()
	rows := []struct {
		name, body, format string
		w, h               int
		tokens             int64
	}{
		{"standard", `{"prompt":"a fox"}`, "png", 1024, 1024, 1056},
		{
			"low and long",
			`{"prompt":"a fox","size":"1536x1024","quality":"low","output_format":"jpeg","output_compression":40}`,
			"jpeg",
			1536,
			1024,
			408,
		},
		{
			"high webp",
			`{"prompt":"a fox","size":"512x768","quality":"high","output_format":"webp"}`,
			"webp",
			512,
			768,
			1560,
		},
	}
	for _, row := range rows {
		reply := s.json("/v1/images/generations", row.body)
		doc := gjson.Parse(reply.Body.String())
		data, err := base64.StdEncoding.DecodeString(doc.Get("data.0.b64_json").String())
		if err != nil || reply.Code != 200 {
			t.Fatalf("%s: %d %v", row.name, reply.Code, err)
		}
		m, format := decode(t, data)
		if format != row.format || m.Bounds() != image.Rect(0, 0, row.w, row.h) ||
			doc.Get("usage.output_tokens").Int() != row.tokens {
			t.Errorf("%s: %s %v %s", row.name, format, m.Bounds(), doc.Get("usage").Raw)
		}
	}
}

func TestImagesStreamShowsPartialsAndThenTheWhole(t *testing.T) {
	reply := newService().json("/v1/images/generations",
		`{"prompt":"a fox","size":"256x256","stream":true,"partial_images":2}`)
	var names []string
	for line := range strings.Lines(reply.Body.String()) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if got, want := strings.Join(names,
		" "), "image_generation.partial_image image_generation.partial_image image_generation.completed"; got != want {
		t.Errorf("events %s", got)
	}
	if kind := reply.Header().Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("Content-Type %s", kind)
	}
}

func TestImagesEditKeepsWhatTheMaskDoesNotMark(t *testing.T) {
	s := newService()
	kind, body := form(t, "prompt", "a fox", "image[]", "@"+square(t, color.NRGBA{200, 10, 10, 255}), "mask",
		"@"+square(t, color.NRGBA{}))
	reply := s.call(http.MethodPost, "/v1/images/edits", kind, body)
	data, _ := base64.StdEncoding.DecodeString(gjson.Get(reply.Body.String(), "data.0.b64_json").String())
	m, _ := decode(t, data)
	white, red := 0, 0
	for y := range 64 {
		for x := range 64 {
			switch c := color.NRGBAModel.Convert(m.At(x, y)); {
			case x >= 32 && c == color.Color(color.NRGBA{255, 255, 255, 255}):
				white++
			case x < 32 && c == color.Color(color.NRGBA{200, 10, 10, 255}):
				red++
			}
		}
	}
	if white != 32*64 || red > 64 {
		t.Errorf("%d pixels kept, %d left as they were", white, red)
	}
}

func TestVendorRoutes(t *testing.T) {
	s := newService()
	picture, mask := "@"+square(t, color.NRGBA{9, 99, 200, 255}), "@"+square(t, color.NRGBA{0, 0, 0, 255})
	rows := []struct {
		path   string
		fields []string
		size   string
	}{
		{"/edit", []string{"image_file", picture, "mask", mask, "prompt", "a fox", "model", "V_2"}, "64x64"},
		{
			"/remix",
			[]string{"image_request", `{"prompt":"a fox","aspect_ratio":"ASPECT_16_9"}`, "image_file", picture},
			"1312x736",
		},
		{"/reframe", []string{"image_file", picture, "resolution", "RESOLUTION_512_1536", "model", "V_2"}, "512x1536"},
		{"/upscale", []string{"image_request", `{}`, "image_file", picture}, "128x128"},
		{"/v1/ideogram-v3/generate", []string{"prompt", "a fox", "resolution", "832x1248", "seed", "7"}, "832x1248"},
		{"/v1/ideogram-v3/remix", []string{"prompt", "a fox", "image", picture, "image_weight", "80"}, "64x64"},
		{"/v1/ideogram-v3/edit", []string{"prompt", "a fox", "image", picture, "mask", mask}, "64x64"},
		{"/v1/ideogram-v3/reframe", []string{"image", picture, "resolution", "1280x704"}, "1280x704"},
		{"/v1/ideogram-v3/replace-background", []string{"prompt", "a fox", "image", picture}, "64x64"},
	}
	for _, row := range rows {
		kind, body := form(t, row.fields...)
		reply := s.call(http.MethodPost, row.path, kind, body)
		doc := gjson.Parse(reply.Body.String())
		if reply.Code != 200 || !doc.Get("data.0.is_image_safe").Bool() {
			t.Errorf("%s: %d %s", row.path, reply.Code, reply.Body)
			continue
		}
		url := doc.Get("data.0.url").String()
		m, _ := decode(t, s.get(url[strings.Index(url, "/sandbox"):]).Body.Bytes())
		if got := strconv.Itoa(m.Bounds().Dx()) + "x" + strconv.Itoa(m.Bounds().Dy()); got != row.size {
			t.Errorf("%s: %s, want %s", row.path, got, row.size)
		}
	}
	kind, body := form(t, "image_file", picture)
	if reply := s.call(http.MethodPost, "/describe", kind, body); !strings.Contains(
		gjson.Get(reply.Body.String(), "descriptions.0.text").String(),
		"64x64",
	) {
		t.Errorf("described as %s", reply.Body)
	}
}

func TestRefusalsAndFaults(t *testing.T) {
	s := newService()
	rows := []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"no prompt", "/v1/images/generations", `{}`, 400, `"param":"prompt"`},
		{"not JSON", "/v1/images/generations", `{`, 400, "invalid_json"},
		{"too large", "/v1/images/generations", `{"prompt":"x","size":"99999x99999"}`, 400, `"param":"size"`},
		{
			"not a picture",
			"/v1/images/edits",
			`{"prompt":"x","images":[{"image_url":"data:image/png;base64,AAAA"}]}`,
			400,
			`"param":"images.0.image_url"`,
		},
		{"blocked", "/v1/images/generations", `{"prompt":"[sandbox: block]"}`, 400, "moderation_blocked"},
		{
			"blocked for an older model",
			"/v1/images/generations",
			`{"model":"dall-e-3","prompt":"[sandbox: block]"}`,
			400,
			"content_policy_violation",
		},
		{"status", "/v1/images/generations", `{"prompt":"[sandbox: status=503]"}`, 503, "sandbox_503"},
		{"cut", "/v1/images/generations", `{"prompt":"[sandbox: cut]","size":"64x64"}`, 0, ""},
		{
			"cut stream",
			"/v1/images/generations",
			`{"prompt":"[sandbox: cut=1]","size":"64x64","stream":true,"partial_images":3}`,
			0,
			"partial_image",
		},
		{
			"error in a stream",
			"/v1/images/generations",
			`{"prompt":"[sandbox: error=1]","size":"64x64","stream":true,"partial_images":3}`,
			200,
			"event: error",
		},
		{"garbage", "/v1/images/generations", `{"prompt":"[sandbox: garbage]","size":"64x64"}`, 200, "Bad Gateway"},
		{"vendor blocked", "/generate", `{"image_request":{"prompt":"[sandbox: block]"}}`, 422, `{"error":"`},
		{"unsafe", "/v1/images/generations", `{"prompt":"[sandbox: unsafe]"}`, 400, `"moderation_stage":"output"`},
		{"vendor unsafe", "/generate", `{"image_request":{"prompt":"[sandbox: unsafe]"}}`, 200, `"url":null`},
		{
			"vendor both sizes",
			"/generate",
			`{"image_request":{"prompt":"x","resolution":"1024x1024","aspect_ratio":"ASPECT_1_1"}}`,
			400,
			"aspect_ratio",
		},
		{"video size", "/v1/videos", `{"prompt":"x","size":"1x1"}`, 400, `"param":"size"`},
		{"video length", "/v1/videos", `{"prompt":"x","seconds":"5"}`, 400, `"param":"seconds"`},
		{"video blocked", "/v1/videos", `{"prompt":"[sandbox: block]"}`, 400, "moderation_blocked"},
		{"video cut", "/v1/videos", `{"prompt":"[sandbox: cut]"}`, 0, ""},
		{"remix of nothing", "/v1/videos/video_1/remix", `{"prompt":"x"}`, 404, "video_not_found"},
		{
			"veo ratio",
			"/v1beta/models/veo:predictLongRunning",
			`{"instances":[{"prompt":"x"}],"parameters":{"aspectRatio":"1:1"}}`,
			400,
			"INVALID_ARGUMENT",
		},
		{"text goes on", "/v1beta/models/m:generateContent", `{"contents":[]}`, 418, `{"contents":[]}`},
	}
	for _, row := range rows {
		reply := s.json(row.path, row.body)
		if reply.Code != row.status || !strings.Contains(reply.Body.String(), row.says) {
			t.Errorf("%s: %d %.300s", row.name, reply.Code, reply.Body)
		}
	}
}

func TestVideoFromSubmissionToContent(t *testing.T) {
	s := newService()
	kind, body := form(t, "prompt", "a fox runs", "seconds", "8", "size", "1280x720")
	first := gjson.Parse(s.call(http.MethodPost, "/v1/videos", kind, body, "Idempotency-Key", "k").Body.String())
	second := gjson.Parse(s.json("/v1/videos", `{"prompt":"a fox runs"}`, "Idempotency-Key", "k").Body.String())
	id := first.Get("id").String()
	if first.Get("status").String() != "queued" || second.Get("id").String() != id || len(first.Map()) != 13 {
		t.Fatalf("%s and %s", first.Raw, second.Raw)
	}
	if reply := s.get("/v1/videos/" + id + "/content"); reply.Code != 400 ||
		!strings.Contains(reply.Body.String(), "video_not_ready") {
		t.Errorf("content too early: %d", reply.Code)
	}
	s.now.Add(40)
	if got := gjson.Get(s.get("/v1/videos/"+id).Body.String(), "progress").Int(); got != 40 {
		t.Errorf("progress %d", got)
	}
	s.now.Add(60)
	for variant, kind := range map[string]string{"video": "video/mp4", "thumbnail": "image/webp",
		"spritesheet": "image/jpeg"} {
		if reply := s.get("/v1/videos/" + id + "/content?variant=" + variant); reply.Code != 200 ||
			reply.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d %s", variant, reply.Code, reply.Header())
		}
	}
	part := s.call(http.MethodGet, "/v1/videos/"+id+"/content", "", "", "Range", "bytes=4-7")
	if part.Code != 206 || part.Body.String() != "ftyp" {
		t.Errorf("range: %d %q", part.Code, part.Body)
	}
	remix := gjson.Parse(s.json("/v1/videos/"+id+"/remix", `{"prompt":"at night"}`).Body.String())
	if remix.Get("remixed_from_video_id").String() != id || remix.Get("status").String() != "queued" ||
		remix.Get("seconds").String() != "8" {
		t.Errorf("remix %s", remix.Raw)
	}
	longer := gjson.Parse(
		s.json("/v1/videos/extensions", `{"video":{"id":"`+id+`"},"prompt":"on","seconds":"4"}`).Body.String(),
	)
	if longer.Get("seconds").String() != "12" {
		t.Errorf("extension %s", longer.Raw)
	}
	counts := gjson.Get(s.get("/sandbox/jobs").Body.String(), "jobs.0")
	if counts.Get("submissions").Int() != 2 || counts.Get("polls").Int() != 1 || counts.Get("downloads").Int() != 4 {
		t.Errorf("counts %s", counts.Raw)
	}
	if got := len(gjson.Get(s.get("/v1/videos?limit=2").Body.String(), "data").Array()); got != 2 {
		t.Errorf("%d listed", got)
	}
	if reply := s.call(http.MethodDelete, "/v1/videos/"+id, "", ""); reply.Code != 200 ||
		s.get("/v1/videos/"+id).Code != 404 {
		t.Errorf("delete: %d", reply.Code)
	}
}

func TestVideosOfUploads(t *testing.T) {
	mine, err := clip.Video(clip.Spec{Width: 1280, Height: 720, Seconds: 5})
	if err != nil {
		t.Fatal(err)
	}
	s := newService()
	for _, c := range []struct {
		path, video, seconds string // "": refused
	}{
		{"/v1/videos/edits", "@" + string(mine), "5"},
		{"/v1/videos/extensions", "@" + string(mine), "9"},
		{"/v1/videos/edits", "@bytes", ""},
		{"/v1/videos/edits", "@" + string(mine[:64]), ""},
		{"/v1/videos/edits", "bytes", ""},
	} {
		contentType, body := form(t, "prompt", "at night", "seconds", "4", "video", c.video)
		reply := s.call(http.MethodPost, c.path, contentType, body)
		got := gjson.Parse(reply.Body.String())
		switch {
		case c.seconds == "":
			if reply.Code != 400 || got.Get("error.param").String() != "video" {
				t.Errorf("%.20q: %d %s", c.video, reply.Code, reply.Body)
			}
		case reply.Code != 200 || got.Get("seconds").String() != c.seconds || got.Get("size").String() != "1280x720":
			t.Errorf("%s: %d %s", c.path, reply.Code, reply.Body)
		}
	}
}

func TestVeoOperation(t *testing.T) {
	s := newService()
	name := gjson.Get(s.json("/v1beta/models/veo-3:predictLongRunning",
		`{"instances":[{"prompt":"waves"}],"parameters":{"aspectRatio":"9:16","durationSeconds":6}}`).Body.String(),
		"name").
		String()
	if running := s.get("/v1beta/" + name).Body.String(); gjson.Get(running, "done").Exists() ||
		gjson.Get(running, "name").String() != name {
		t.Errorf("running: %s", running)
	}
	s.now.Add(100)
	done := s.get("/v1beta/" + name).Body.String()
	uri := gjson.Get(done, "response.generateVideoResponse.generatedSamples.0.video.uri").String()
	if !gjson.Get(done, "done").Bool() || !strings.Contains(uri, "/v1beta/files/") {
		t.Fatalf("done: %s", done)
	}
	if reply := s.get(uri[strings.Index(uri, "/v1beta"):]); reply.Header().Get("Content-Type") != "video/mp4" ||
		reply.Code != 200 {
		t.Errorf("file: %d", reply.Code)
	}
	blocked := gjson.Get(s.json("/v1beta/models/veo-3:predictLongRunning",
		`{"instances":[{"prompt":"[sandbox: block=10]"}]}`).Body.String(), "name").
		String()
	s.now.Add(100)
	if got := s.get(
		"/v1beta/" + blocked,
	).Body.String(); gjson.Get(got, "response.generateVideoResponse.raiMediaFilteredCount").
		Int() !=
		1 {
		t.Errorf("blocked: %s", got)
	}
}

func TestStallEndsWithTheClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/videos",
		strings.NewReader(`{"prompt":"[sandbox: stall]"}`))
	time.AfterFunc(time.Millisecond, cancel)
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("the connection was not cut")
		}
	}()
	newService().ServeHTTP(httptest.NewRecorder(), r)
}

func FuzzRequests(f *testing.F) {
	kind, body := form(f, "prompt", "x", "image", "@"+square(f, color.NRGBA{1, 2, 3, 255}), "resolution", "64x64")
	paths := []string{
		"/v1/images/generations",
		"/v1/images/edits",
		"/generate",
		"/remix",
		"/v1/ideogram-v3/reframe",
		"/describe",
		"/v1/videos",
		"/v1/videos/edits",
		"/v1beta/models/veo:predictLongRunning",
	}
	for i := range paths {
		f.Add(i, kind, body)
		f.Add(
			i,
			"application/json",
			`{"prompt":"x","size":"64x64","image_request":{"prompt":"x","resolution":"64x64"},"instances":[{"prompt":"x"}]}`,
		)
	}
	s := newService()
	f.Fuzz(func(t *testing.T, path int, kind, body string) {
		if strings.Contains(body, "sandbox:") {
			return // a directive to wait is one
		}
		reply := s.call(http.MethodPost, paths[uint(path)%uint(len(paths))], kind, body)
		if reply.Code == 0 || reply.Code >= 500 {
			t.Errorf("%d %s", reply.Code, reply.Body)
		}
	})
}
