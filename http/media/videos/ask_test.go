package videos

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/video"
	"stagedoor/providers/video/mp4"
	"stagedoor/state"
	"stagedoor/state/work"
)

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dataOf(b []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
}

// TestRules keeps and breaks every rule of requests for videos.
func TestRules(t *testing.T) {
	fits, small := dataOf(pngOf(t, 720, 1280)), dataOf(pngOf(t, 72, 128))
	long := strings.Repeat("ä", MaxPrompt)
	type row struct {
		body  string
		param string // of the error; "": it is taken
		code  string // "": invalid_value
	}
	with := func(rest string) string { return `{"prompt":"a cat",` + rest + `}` }
	all := map[video.Operation][]row{
		video.Create: {
			{`{"prompt":"a cat"}`, "", ""},
			{`{"prompt":"` + long + `"}`, "", ""},
			{`{"prompt":"` + long + `x"}`, "prompt", ""},
			{`{"prompt":""}`, "prompt", ""},
			{`{"prompt":null}`, "prompt", "missing_required_parameter"},
			{`{}`, "prompt", "missing_required_parameter"},
			{`{"prompt":1}`, "prompt", ""},
			{with(`"model":"anything"`), "", ""},
			{with(`"model":null`), "", ""},
			{with(`"model":""`), "model", ""},
			{with(`"model":2`), "model", ""},
			{with(`"seconds":"4"`), "", ""},
			{with(`"seconds":8`), "", ""},
			{with(`"seconds":"12"`), "", ""},
			{with(`"seconds":"16"`), "", ""},
			{with(`"seconds":20`), "", ""},
			{with(`"seconds":null`), "", ""},
			{with(`"seconds":"5"`), "seconds", ""},
			{with(`"seconds":4.5`), "seconds", ""},
			{with(`"seconds":"04"`), "seconds", ""},
			{with(`"seconds":-4`), "seconds", ""},
			{with(`"seconds":true`), "seconds", ""},
			{with(`"seconds":""`), "seconds", ""},
			{with(`"size":"1280x720"`), "", ""},
			{with(`"size":"1024x1792"`), "", ""},
			{with(`"size":"1792x1024"`), "", ""},
			{with(`"size":"1920x1080"`), "size", ""},
			{with(`"size":"1920x1080","model":"video-2-pro"`), "", ""},
			{with(`"size":"1080x1920","model":"sora-2-pro"`), "", ""},
			{with(`"size":"640x480"`), "size", ""},
			{with(`"size":720`), "size", ""},
			{with(`"input_reference":{"image_url":"` + fits + `"}`), "", ""},
			{with(`"input_reference":{"image_url":"` + fits + `","file_id":null}`), "", ""},
			{with(`"input_reference":null`), "", ""},
			{with(`"input_reference":{"image_url":"` + small + `"}`), "input_reference", ""},
			{with(`"size":"1280x720","input_reference":{"image_url":"` + fits + `"}`), "input_reference", ""},
			{with(`"input_reference":{}`), "input_reference", ""},
			{with(`"input_reference":"x"`), "input_reference", ""},
			{with(`"input_reference":{"image_url":"` + fits + `","file_id":"f"}`), "input_reference", ""},
			{with(`"input_reference":{"file_id":"f"}`), "input_reference.file_id", "unsupported_parameter"},
			{with(`"input_reference":{"image_url":1}`), "input_reference.image_url", ""},
			{with(`"input_reference":{"image_url":"https://x.test/a.png"}`), "input_reference.image_url", ""},
			{with(`"input_reference":{"image_url":"data:image/png;base64,AAAA"}`), "input_reference.image_url", ""},
			{with(`"input_reference":{"image_url":"data:image/png;base64,!!"}`), "input_reference.image_url", ""},
			{with(`"characters":[{"id":"a"},{"id":"b"}]`), "", ""},
			{with(`"characters":[{"id":"a"},{"id":"b"},{"id":"c"}]`), "characters", ""},
			{with(`"characters":[{"id":""}]`), "characters.0.id", ""},
			{with(`"characters":{"id":"a"}`), "characters", ""},
			{with(`"user":7`), "user", ""},
			{with(`"unheard_of":{}`), "", ""},
		},
		video.Remix: {
			{`{"prompt":"a dog"}`, "", ""},
			{`{"prompt":""}`, "prompt", ""},
			{`{}`, "prompt", "missing_required_parameter"},
			{`{"prompt":"` + long + `x"}`, "prompt", ""},
		},
		video.Edit: {
			{with(`"video":{"id":"video_1"}`), "", ""},
			{with(`"video":{"id":""}`), "video.id", ""},
			{with(`"video":{"id":5}`), "video.id", ""},
			{with(`"video":{}`), "video.id", "missing_required_parameter"},
			{with(`"video":"video_1"`), "video", "unsupported_parameter"},
			{`{"prompt":"a dog"}`, "video", "missing_required_parameter"},
			{`{"video":{"id":"video_1"}}`, "prompt", "missing_required_parameter"},
		},
		video.Extend: {
			{with(`"video":{"id":"video_1"},"seconds":"8"`), "", ""},
			{with(`"video":{"id":"video_1"},"seconds":8`), "", ""},
			{with(`"video":{"id":"video_1"}`), "seconds", "missing_required_parameter"},
			{with(`"video":{"id":"video_1"},"seconds":"24"`), "seconds", ""},
			{with(`"video":{"id":"video_1"},"seconds":"8","characters":[]`), "characters", "unsupported_parameter"},
			{with(`"video":{"id":"video_1"},"seconds":"8","input_reference":{}`), "input_reference",
				"unsupported_parameter"},
		},
	}
	for op, rows := range all {
		for _, row := range rows {
			ask, err := Check(op, Sent{Body: []byte(row.body)}, "")
			shown := row.body[:min(len(row.body), 80)]
			if row.param == "" {
				if err != nil {
					t.Errorf("%s %s: %v", op, shown, err)
					continue
				}
				if err := ask.Close(); err != nil {
					t.Error(err)
				}
				continue
			}
			code := row.code
			if code == "" {
				code = "invalid_value"
			}
			var refusal *dialogue.Error
			if !errors.As(err, &refusal) || refusal.Status != 400 || refusal.Param != row.param ||
				refusal.Code != code ||
				!strings.HasPrefix(refusal.Message, row.param+":") {
				t.Errorf("%s %s: %v", op, shown, err)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	a, err := Check(video.Create, Sent{Body: []byte(`{"prompt":"p"}`)}, "")
	if err != nil || a.Model != "video-2" || a.Seconds != 4 || a.Size.String() != "720x1280" || a.Reference != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// A form is the same as the JSON that it flattens.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		fields []Text
		want   string // or the name of the field that is wrong
	}{
		{[]Text{{"prompt", "p"}, {"seconds", "8"}}, `{"prompt":"p","seconds":"8"}`},
		{[]Text{{"input_reference[image_url]", "u"}}, `{"input_reference":{"image_url":"u"}}`},
		{[]Text{{"video[id]", "v"}, {"prompt", "p"}}, `{"prompt":"p","video":{"id":"v"}}`},
		{[]Text{{"video", `{"id":"v"}`}}, `{"video":{"id":"v"}}`},
		{[]Text{{"prompt", `{"id":"v"}`}}, `{"prompt":"{\"id\":\"v\"}"}`},
		{[]Text{{"video", `{"id"`}}, "video"},
		{[]Text{{"prompt", "p"}, {"prompt", "q"}}, "prompt"},
		{[]Text{{"video[id]", "v"}, {"video[id]", "w"}}, "video[id]"},
		{[]Text{{"video", "v"}, {"video[id]", "w"}}, "video[id]"},
		{[]Text{{"video[", "v"}}, "video["},
		{[]Text{{"video[]", "v"}}, "video[]"},
		{[]Text{{"video[a][b]", "v"}}, "video[a][b]"},
	} {
		body, err := Body(c.fields)
		var refusal *dialogue.Error
		switch {
		case errors.As(err, &refusal):
			if refusal.Param != c.want {
				t.Errorf("%v: %v", c.fields, err)
			}
		case err != nil || string(body) != c.want:
			t.Errorf("%v: %s, %v", c.fields, body, err)
		}
	}
}

// An uploaded video stands where an id would, and is bounded as a video made here.
func TestUploads(t *testing.T) {
	upload := func(width, height, seconds int) Upload {
		b, err := clip.Video(clip.Spec{Width: width, Height: height, Seconds: seconds})
		if err != nil {
			t.Fatal(err)
		}
		f, err := mp4.ReadFile("a.mp4", bytes.NewReader(b), MaxUpload, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return Upload{"video", f}
	}
	short, long, wide := upload(1280, 720, 5), upload(720, 1280, 120), upload(1920, 1080, 4)
	small, endless := upload(720, 1280, 4), upload(720, 1280, 4)
	small.Width, small.Height = 64, 64
	endless.Duration = 120*time.Second + 1
	const asked = `{"prompt":"p","seconds":"4"`
	for _, c := range []struct {
		op          video.Operation
		body        string
		files       []Upload
		param, code string // of the error; "": it is taken
	}{
		{video.Edit, asked + `}`, []Upload{short}, "", ""},
		{video.Edit, asked + `,"model":"other"}`, []Upload{long}, "", ""},
		{video.Edit, asked + `,"model":"video-2-pro"}`, []Upload{wide}, "", ""},
		{video.Edit, asked + `}`, []Upload{wide}, "video", "invalid_value"},
		{video.Edit, asked + `}`, []Upload{small}, "video", "invalid_value"},
		{video.Edit, asked + `}`, []Upload{endless}, "video", "invalid_value"},
		{video.Edit, asked + `}`, []Upload{short, long}, "video", "invalid_value"},
		{video.Edit, asked + `,"video":{"id":"video_1"}}`, []Upload{short}, "video", "invalid_value"},
		{video.Edit, asked + `,"model":""}`, []Upload{short}, "model", "invalid_value"},
		{video.Edit, `{}`, []Upload{short}, "prompt", "missing_required_parameter"},
		{video.Extend, asked + `}`, []Upload{short}, "", ""},
		{video.Extend, asked + `}`, []Upload{long}, "seconds", "invalid_value"},
		{video.Extend, `{"prompt":"p"}`, []Upload{short}, "seconds", "missing_required_parameter"},
		{video.Create, asked + `}`, []Upload{short}, "video", "unsupported_parameter"},
		{video.Remix, asked + `}`, []Upload{short}, "video", "unsupported_parameter"},
	} {
		a, err := Check(c.op, Sent{Body: []byte(c.body), Videos: c.files}, "")
		var refusal *dialogue.Error
		switch {
		case c.param != "":
			if !errors.As(err, &refusal) || refusal.Status != 400 || refusal.Param != c.param ||
				refusal.Code != c.code {
				t.Errorf("%s %s: %v", c.op, c.body, err)
			}
		case err != nil || a.Upload != c.files[0].File || a.Source != "" || a.Model == "" ||
			a.Size != (video.Size{Width: a.Upload.Width, Height: a.Upload.Height}):
			t.Errorf("%s %s: %+v, %v", c.op, c.body, a, err)
		}
	}
	of := func(u Upload) state.Hash {
		a, err := Check(video.Edit, Sent{Body: []byte(`{"prompt":"p"}`), Videos: []Upload{u}}, "")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := a.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if of(short) != of(upload(1280, 720, 5)) || of(short) == of(upload(1280, 720, 4)) {
		t.Error("the same upload is not the same request, or another one is")
	}
}

func TestAFormsPictureIsTheReference(t *testing.T) {
	f, err := picture.NewFile("first.png", pngOf(t, 720, 1280))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Check(video.Create, Sent{Body: []byte(`{"prompt":"p"}`), Pictures: []File{{"input_reference", f}}}, "")
	if err != nil || a.Reference != f {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, body := range []string{`{"prompt":"p","size":"1280x720"}`,
		`{"prompt":"p","input_reference":{"image_url":"x"}}`} {
		if _, err := Check(video.Create, Sent{Body: []byte(body), Pictures: []File{{"input_reference", f}}},
			""); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
	if _, err := Check(video.Remix, Sent{Body: []byte(`{"prompt":"p"}`), Pictures: []File{{"input_reference", f}}},
		"video_1"); err == nil {
		t.Error("a remix took a picture")
	}
}

func TestWhatAJobBeginsWith(t *testing.T) {
	for _, c := range []struct {
		op     video.Operation
		source work.Video
		code   any // nil: it fits
	}{
		{video.Remix, work.Video{Phase: work.VideoCompleted}, nil},
		{video.Remix, work.Video{Phase: work.VideoFinalizing}, "video_not_completed"},
		{video.Edit, work.Video{Phase: work.VideoFailed}, "video_not_completed"},
		{video.Extend, work.Video{Phase: work.VideoQueued}, "video_not_completed"},
		{video.Extend, work.Video{Phase: work.VideoCompleted, Seconds: 112, Extensions: 5}, nil},
		{video.Extend, work.Video{Phase: work.VideoCompleted, Seconds: 113}, "invalid_value"},
		{video.Extend, work.Video{Phase: work.VideoCompleted, Seconds: 8, Extensions: 6}, "invalid_value"},
	} {
		err := (&Ask{Operation: c.op, Seconds: 8, SourceField: "video.id"}).Fits(&c.source)
		var refusal *dialogue.Error
		if errors.As(err, &refusal) != (c.code != nil) || refusal != nil &&
			(refusal.Code != c.code || refusal.Status != 400 || refusal.Param == "") {
			t.Errorf("%s of %+v: %v", c.op, c.source, err)
		}
	}
}

func TestFingerprintsTellAsksApart(t *testing.T) {
	seen := map[state.Hash]string{}
	for _, body := range []string{`{"prompt":"p"}`, `{"prompt":"q"}`, `{"prompt":"p","seconds":8}`,
		`{"prompt":"p","size":"1280x720"}`, `{"prompt":"p","user":"u"}`,
		`{"prompt":"p","model":"m"}`, fmt.Sprintf(`{"prompt":"p","input_reference":{"image_url":%q}}`,
			dataOf(pngOf(t, 720, 1280)))} {
		a, err := Check(video.Create, Sent{Body: []byte(body)}, "")
		if err != nil {
			t.Fatal(err)
		}
		h, err := a.Fingerprint()
		if err != nil || seen[h] != "" {
			t.Errorf("%s is as %s, %v", body, seen[h], err)
		}
		seen[h] = body
	}
	again, _ := Check(video.Create, Sent{Body: []byte(`{"seconds":"4", "prompt":"p"}`)}, "")
	if h, _ := again.Fingerprint(); seen[h] == "" {
		t.Error("the same in other words is another")
	}
}

func TestPages(t *testing.T) {
	for query, want := range map[string]string{"": "{ 20 false}", "limit=0": "{ 0 false}",
		"limit=100&order=asc&after=video_1": "{video_1 100 true}",
		"order=desc":                        "{ 20 false}", "limit=101": "limit", "limit=-1": "limit",
		"limit=x": "limit", "limit=": "limit",
		"order=up":                          "order",
		"after=" + strings.Repeat("x", 200): "after"} {
		q, _ := url.ParseQuery(query)
		p, err := Page(q)
		got := fmt.Sprint(p)
		if refusal := new(dialogue.Error); errors.As(err, &refusal) {
			got = refusal.Param
		}
		if got != want {
			t.Errorf("%q: %s", query, got)
		}
	}
	if got := string(List(nil, false)); got != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}` {
		t.Errorf("an empty page is %s", got)
	}
	two := []work.Video{{ID: "video_2", Phase: work.VideoQueued}, {ID: "video_1", Phase: work.VideoQueued}}
	if got := string(List(two, true)); !strings.HasSuffix(got,
		`],"first_id":"video_2","last_id":"video_1","has_more":true}`) || strings.Count(got, `"object":"video"`) != 2 {
		t.Errorf("a page is %s", got)
	}
}

// Whatever is sent is taken or refused with a reason, and nothing else.
func FuzzCheck(f *testing.F) {
	f.Add(`{"prompt":"p","seconds":8}`, "prompt", "p")
	f.Add(`{"prompt":"p","input_reference":{"image_url":"data:;base64,AA"}}`, "video[id]", "v")
	f.Fuzz(func(t *testing.T, body, name, value string) {
		form, err := Body([]Text{{name, value}, {"prompt", "p"}})
		bodies := [][]byte{[]byte(body)}
		if err == nil {
			bodies = append(bodies, form)
		}
		for _, b := range bodies {
			for op := range rules {
				a, err := Check(op, Sent{Body: b}, "")
				var refusal *dialogue.Error
				if err != nil && (!errors.As(err, &refusal) || refusal.Status < 400 || refusal.Status >= 500) {
					t.Fatalf("%s: %v", op, err)
				}
				if err == nil {
					_ = a.Close()
				}
			}
		}
	})
}
