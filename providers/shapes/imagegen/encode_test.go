package imagegen_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
)

// decoded is the neutral form of a form.
func decoded(t testing.TB, path string, parts ...string) *picture.Request {
	t.Helper()
	in, err := form(t, path, parts...)
	if param, rule := verdict(t, path, in, err); param != "" {
		t.Fatalf("%s: %s %s", path, param, rule)
	}
	return route(t, path).Decode(in)
}

func fromJSON(t testing.TB, path, body string) *picture.Request {
	t.Helper()
	in, err := route(t, path).FromJSON([]byte(body))
	if param, rule := verdict(t, path, in, err); param != "" {
		t.Fatalf("%s: %s %s", path, param, rule)
	}
	return route(t, path).Decode(in)
}

// sent is a call as one line: the path, then JSON, or the parts of a form.
func sent(t testing.TB, r *picture.Request, model string) (line, losses string) {
	t.Helper()
	var rep dialogue.Report
	call, err := imagegen.Shape.Encode(t.Context(), r, model, &rep)
	if err != nil {
		t.Fatal(err)
	}
	body, err := call.Body.Open()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil || int64(len(text)) != call.Body.Len() {
		t.Fatalf("read %d bytes of %d: %v", len(text), call.Body.Len(), err)
	}
	media, params, _ := mime.ParseMediaType(call.Body.ContentType())
	if media == "application/json" {
		return call.Path + " " + string(text), rep.Header()
	}
	out := []string{call.Path}
	parts := multipart.NewReader(bytes.NewReader(text), params["boundary"])
	for {
		p, err := parts.NextPart()
		if err == io.EOF {
			return strings.Join(out, " "), rep.Header()
		}
		if err != nil {
			t.Fatal(err)
		}
		value, _ := io.ReadAll(p)
		if p.FileName() != "" {
			c, _, err := image.DecodeConfig(bytes.NewReader(value))
			if err != nil {
				t.Fatal(err)
			}
			value = fmt.Appendf(nil, "%dx%d(%s,%s)", c.Width, c.Height, p.FileName(), p.Header.Get("Content-Type"))
		}
		out = append(out, p.FormName()+"="+string(value))
	}
}

const v3 = "/v1/imagegen-v3/"

// What came in this shape goes on as it came: the client's own JSON, or the same
// fields and files.
func TestOwnShapeIsSentAsItCame(t *testing.T) {
	for _, tt := range []struct {
		r     *picture.Request
		model string
		want  string
	}{
		{fromJSON(t, "/generate", `{"image_request": {"prompt":"a cat", "unheard":[1, 2] }}`), "V_2",
			`/generate {"image_request": {"prompt":"a cat", "unheard":[1, 2] }}`},
		{fromJSON(t, "/generate", `{"image_request":{"prompt":"a","model":"V_2"}}`), "V_2_TURBO",
			`/generate {"image_request":{"prompt":"a","model":"V_2_TURBO"}}`},
		{fromJSON(t, "/generate", `{"image_request":{"prompt":"a"}}`), "V_2A",
			`/generate {"image_request":{"prompt":"a","model":"V_2A"}}`},
		{fromJSON(t, "/generate", `{"image_request":{"prompt":"a","aspect_ratio":"SPECT_16_10"}}`), "V_2",
			`/generate {"image_request":{"prompt":"a","aspect_ratio":"ASPECT_16_10"}}`},
		{fromJSON(t, "/generate", `{"image_request":{"prompt":"a","resolution":"1024x768","num_images":2}}`), "V_2",
			`/generate {"image_request":{"prompt":"a","resolution":"RESOLUTION_1024_768","num_images":2}}`},
		{fromJSON(t, v3+"generate", `{"prompt":"a","rendering_speed":"TURBO","style_codes":["0a1b2c3d"]}`),
			"imagegen-v3",
			`/v1/ideogram-v3/generate {"prompt":"a","rendering_speed":"TURBO","style_codes":["0a1b2c3d"]}`},
		{decoded(t, "/edit", "prompt=a hat", "model=V_2", "image_file@40x30", "mask@40x30", "num_images=2",
			"style_type=ANIME"), "V_2_TURBO",
			"/edit prompt=a hat model=V_2_TURBO style_type=ANIME num_images=2 image_file=40x30(image_file.png,image/png) mask=40x30(mask.png,image/png)"},
		{decoded(t, "/remix", `image_request={"prompt":"a hat","image_weight":70,"seed":0,"unheard":{"of":1}}`,
			"image_file@40x30"), "V_2",
			`/remix image_request={"prompt":"a hat","model":"V_2","image_weight":70,"num_images":1,"seed":0,"unheard":{"of":1}} image_file=40x30(image_file.png,image/png)`},
		{decoded(t, "/reframe", "image_file@40x30", "resolution=1024x768", "model=V_2"), "V_2",
			"/reframe resolution=RESOLUTION_1024_768 model=V_2 num_images=1 image_file=40x30(image_file.png,image/png)"},
		{decoded(t, "/describe", "image_file@40x30", "describe_model_version=V_2"), "V_2",
			"/describe describe_model_version=V_2 image_file=40x30(image_file.png,image/png)"},
		{decoded(t, "/describe", "image_file@40x30"), "imagegen-v3",
			"/describe image_file=40x30(image_file.png,image/png)"},
		{decoded(t, "/upscale", `image_request={"resemblance":20,"magic_prompt_version":"V_0_2"}`, "image_file@40x30"),
			"V_2",
			`/upscale image_request={"resemblance":20,"num_images":1,"magic_prompt_version":"V_0_2"} image_file=40x30(image_file.png,image/png)`},
		{decoded(t, v3+"generate", "prompt=a", "aspect_ratio=16x9", "style_codes=0a1b2c3d", "style_codes=FFFFFFFF",
			`color_palette={"name":"EMBER"}`), "imagegen-v3",
			`/v1/ideogram-v3/generate prompt=a aspect_ratio=16x9 num_images=1 style_codes=0a1b2c3d style_codes=FFFFFFFF color_palette={"name":"EMBER"}`},
		{decoded(t, v3+"remix", "prompt=a", "image@40x30", "style_reference_images@8x8", "style_reference_images@9x9",
			"image_weight=3", "character_reference_images@5x5"), "imagegen-v3",
			"/v1/ideogram-v3/remix prompt=a image_weight=3 num_images=1 image=40x30(image.png,image/png) style_reference_images=8x8(style_reference_images.png,image/png)" +
				" style_reference_images=9x9(style_reference_images.png,image/png) character_reference_images=5x5(character_reference_images.png,image/png)"},
		{decoded(t, v3+"edit", "prompt=a", "image@40x30", "mask@40x30", "negative_prompt=b", "aspect_ratio=1x1"),
			"imagegen-v3",
			"/v1/ideogram-v3/edit prompt=a aspect_ratio=1x1 negative_prompt=b num_images=1 image=40x30(image.png,image/png) mask=40x30(mask.png,image/png)"},
		{decoded(t, v3+"replace-background", "prompt=a", "image@40x30", "rendering_speed=QUALITY"), "imagegen-v3",
			"/v1/ideogram-v3/replace-background prompt=a rendering_speed=QUALITY num_images=1 image=40x30(image.png,image/png)"},
		{decoded(t, v3+"reframe", "image@40x30", "resolution=1024x768"), "imagegen-v3",
			"/v1/ideogram-v3/reframe resolution=1024x768 num_images=1 image=40x30(image.png,image/png)"},
	} {
		got, losses := sent(t, tt.r, tt.model)
		if got != tt.want || losses != "" {
			t.Errorf("got  %s (lost %q)\nwant %s", got, losses, tt.want)
		}
	}
}

func TestOneCallOfSeveralAsksForItsPart(t *testing.T) {
	r := fromJSON(t, "/generate", `{"image_request":{"prompt":"a","num_images":8}}`)
	part := *r
	part.N = 3
	if got, _ := sent(t, &part, "V_2"); got != `/generate {"image_request":{"prompt":"a","num_images":3}}` {
		t.Error(got)
	}
}

// alpha is a mask of the images shape: its left half is transparent.
func alpha(t testing.TB) *picture.File {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 4, 2))
	for i := range 8 {
		if i%4 > 1 {
			m.Set(i%4, i/4, color.NRGBA{9, 9, 9, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	f, err := picture.NewFile("", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What came from elsewhere becomes what the vendor can do, and what it can't is
// listed.
func TestOtherShapesAreTranslated(t *testing.T) {
	n := 80
	images := func(change func(r *picture.Request)) *picture.Request {
		r := &picture.Request{Inbound: "images", Operation: picture.Generate, Prompt: "a", N: 1}
		change(r)
		return r
	}
	for _, tt := range []struct {
		r                   *picture.Request
		model, want, losses string
	}{
		{images(func(r *picture.Request) { r.Size = picture.Size{Width: 1536, Height: 1024}; r.Quality = "high" }),
			"imagegen-v3",
			"/v1/ideogram-v3/generate prompt=a aspect_ratio=3x2 rendering_speed=QUALITY num_images=1", "size"},
		{images(func(r *picture.Request) {
			r.Size = picture.Size{Width: 1024, Height: 1024}
			r.N = 3
			r.Quality = "auto"
		}), "imagegen-v3",
			"/v1/ideogram-v3/generate prompt=a resolution=1024x1024 num_images=3", ""},
		{images(func(r *picture.Request) { r.Size = picture.Size{Width: 1024, Height: 1024}; r.Quality = "low" }),
			"V_2",
			`/generate {"image_request":{"prompt":"a","resolution":"RESOLUTION_1024_1024","model":"V_2","num_images":1}}`, "quality"},
		{images(func(r *picture.Request) { r.Size = picture.Size{Width: 1792, Height: 1024} }), "V_1",
			`/generate {"image_request":{"prompt":"a","aspect_ratio":"ASPECT_16_9","model":"V_1","num_images":1}}`,
			"size"},
		{images(func(r *picture.Request) { r.Size = picture.Size{Width: 1024, Height: 1024} }), "V_2A",
			`/generate {"image_request":{"prompt":"a","aspect_ratio":"ASPECT_1_1","model":"V_2A","num_images":1}}`, ""},
		{images(func(r *picture.Request) {
			r.Background, r.OutputFormat, r.Compression, r.Moderation, r.Style, r.Partials = "transparent", "webp", &n,
				"low", "vivid", 2
			r.User = "u"
		}), "imagegen-v3", "/v1/ideogram-v3/generate prompt=a num_images=1",
			"output_format,output_compression,background,moderation,style,partial_images,user"},
		{images(func(r *picture.Request) {
			r.Operation, r.Sources = picture.Edit, []*picture.File{drawn(t, 8, 4), drawn(t, 9, 4)}
		}), "imagegen-v3",
			"/v1/ideogram-v3/remix prompt=a num_images=1 image=8x4(image.png,image/png) style_reference_images=9x4(style_reference_images.png,image/png)", "image"},
		{images(func(r *picture.Request) {
			r.Operation, r.Sources, r.Mask = picture.Edit, []*picture.File{drawn(t, 4, 2)}, alpha(t)
		}), "V_2",
			"/edit prompt=a model=V_2 num_images=1 image_file=4x2(image_file.png,image/png) mask=4x2(mask.png,image/png)", ""},
		// From one generation of this shape to another.
		{decoded(t, v3+"generate", "prompt=a", "aspect_ratio=4x5", "rendering_speed=TURBO", "style_type=FICTION",
			"style_reference_images@8x8", "style_preset=X"), "V_2",
			`/generate {"image_request":{"prompt":"a","aspect_ratio":"ASPECT_3_4","model":"V_2","num_images":1}}`,
			"rendering_speed,style_reference_images,style_preset,style_type,aspect_ratio"},
		{fromJSON(t, "/generate", `{"image_request":{"prompt":"a","aspect_ratio":"ASPECT_16_9","style_type":"ANIME","magic_prompt_option":"OFF"}}`), "ideogram-v3",
			"/v1/ideogram-v3/generate prompt=a aspect_ratio=16x9 magic_prompt=OFF num_images=1", "style_type"},
	} {
		got, losses := sent(t, tt.r, tt.model)
		if got != tt.want || losses != tt.losses {
			t.Errorf("got  %s\nwant %s\nlost %q, want %q", got, tt.want, losses, tt.losses)
		}
	}
}

func TestMaskOfImagesIsTurnedAround(t *testing.T) {
	r := &picture.Request{
		Inbound:   "images",
		Operation: picture.Edit,
		Prompt:    "a",
		N:         1,
		Sources:   []*picture.File{drawn(t, 4, 2)},
		Mask:      alpha(t),
	}
	call, err := imagegen.Shape.Encode(t.Context(), r, "imagegen-v3", new(dialogue.Report))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := call.Body.Open()
	_, params, _ := mime.ParseMediaType(call.Body.ContentType())
	f, err := multipart.NewReader(body, params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.File["mask"][0].Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range []uint8{0, 0, 255, 255} {
		if got := m.At(x, 1).(color.Gray).Y; got != want {
			t.Errorf("pixel %d is %d, want %d", x, got, want)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := imagegen.Shape.Encode(ctx, r, "imagegen-v3", new(dialogue.Report)); !errors.Is(err, context.Canceled) {
		t.Errorf("for a client that has left: %v", err)
	}
	r.Mask = drawn(t, 4, 2)
	if _, err := imagegen.Shape.Encode(t.Context(), r, "imagegen-v3", new(dialogue.Report)); err == nil ||
		!strings.Contains(err.Error(), "mask: must have an alpha channel") {
		t.Errorf("a mask without alpha: %v", err)
	}
	r.Mask = alpha(t)
	var refused *dialogue.Error
	if _, err := imagegen.Shape.Encode(t.Context(), r, "V_1", new(dialogue.Report)); !errors.As(err, &refused) ||
		refused.Param != "model" {
		t.Errorf("an edit by a model that makes none: %v", err)
	}
	r.Operation, r.Mask = picture.ReplaceBackground, nil
	if _, err := imagegen.Shape.Encode(t.Context(), r, "V_2", new(dialogue.Report)); err == nil {
		t.Error("V_2 has no way to replace backgrounds")
	}
}

func TestReplyIsReadAndWritten(t *testing.T) {
	r := decoded(t, v3+"generate", "prompt=a cat", "style_type=DESIGN")
	reply, err := imagegen.Shape.Body(r, []byte(`{"created":"2025-01-02T03:04:05.678901+00:00","data":[
		{"prompt":"a big cat","resolution":"1280x704","is_image_safe":true,"seed":7,"url":"https://h/x.png","style_type":"GENERAL"},
		{"prompt":"a cat","resolution":"1280x704","is_image_safe":false,"seed":8,"url":null},
		{"prompt":"a cat","resolution":"512x512","upscaled_resolution":"2048x2048","is_image_safe":true,"seed":9,"url":"https://h/y.png"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if reply.Delivered() != 2 || !reply.Images[1].Unsafe || reply.Images[0].URL != "https://h/x.png" {
		t.Errorf("%+v", reply)
	}
	want := `{"created":"2025-01-02T03:04:05.678901+00:00","data":[` +
		`{"prompt":"a big cat","resolution":"1280x704","is_image_safe":true,"seed":7,"url":"https://h/x.png","style_type":"GENERAL"},` +
		`{"prompt":"a cat","resolution":"1280x704","is_image_safe":false,"seed":8,"url":null,"style_type":"DESIGN"},` +
		`{"prompt":"a cat","resolution":"512x512","upscaled_resolution":"2048x2048","is_image_safe":true,"seed":9,"url":"https://h/y.png","style_type":"DESIGN"}]}`
	if got := string(imagegen.AppendReply(nil, r, reply)); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDescriptionsAreReadAndWritten(t *testing.T) {
	r := decoded(t, "/describe", "image_file@8x8")
	reply, err := imagegen.Shape.Body(r, []byte(`{"descriptions":[{"text":"a \"cat\""},{"text":"an animal"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(
		imagegen.AppendReply(nil, r, reply),
	), `{"descriptions":[{"text":"a \"cat\""},{"text":"an animal"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	for _, body := range []string{``, `{`, `[]`, `{}`, `{"data":{}}`, `{"error":"no"}`, `{"data":[` + strings.Repeat(`{},`, 70) + `{}]}`} {
		if _, err := imagegen.Shape.Body(decoded(t, v3+"generate", "prompt=a"), []byte(body)); err == nil {
			t.Errorf("%s was taken for a reply", body)
		}
	}
	if _, err := imagegen.Shape.Body(decoded(t, "/describe", "image_file@8x8"), []byte(`{"data":[]}`)); err == nil {
		t.Error("a reply without descriptions was taken for one")
	}
}

func TestRefusalForSafetyIsAContentPolicyViolation(t *testing.T) {
	e := imagegen.Shape.DecodeError(422, nil, []byte(`{"error":"Prompt is not safe"}`))
	if e.Status != 422 || e.Type != dialogue.TypeInvalidRequest || e.Code != "content_policy_violation" ||
		e.Message != "Prompt is not safe" {
		t.Errorf("%+v", e)
	}
	if e := imagegen.Shape.DecodeError(400, nil, nil); e.Status != 400 || e.Message == "" {
		t.Errorf("%+v", e)
	}
}
