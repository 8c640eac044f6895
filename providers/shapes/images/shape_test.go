package images_test

import (
	"context"
	"errors"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/images"
)

func sent(t *testing.T, r *picture.Request, model string) (*picture.Call, string, *dialogue.Report) {
	t.Helper()
	rep := new(dialogue.Report)
	call, err := images.Shape.Encode(t.Context(), r, model, rep)
	if err != nil {
		t.Fatal(err)
	}
	body, err := call.Body.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil || int64(len(b)) != call.Body.Len() {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return call, string(b), rep
}

// Requests of other shapes are translated into this one, and fields that it does not
// have are reported.
func TestOtherShapesAreTranslated(t *testing.T) {
	seed := int64(7)
	r := &picture.Request{
		Inbound:        imagegen.Name,
		Operation:      picture.Generate,
		Prompt:         "a cat",
		NegativePrompt: "dogs",
		N:              2,
		Aspect:         picture.Aspect{Width: 16, Height: 9},
		RenderingSpeed: "QUALITY",
		Seed:           &seed,
		StyleType:      "DESIGN",
	}
	for model, want := range map[string]string{
		"gpt-image-1": `{"model":"gpt-image-1","prompt":"a cat\nAvoid: dogs","n":2,"size":"1536x1024","quality":"high"}`,
		"dall-e-3":    `{"model":"dall-e-3","prompt":"a cat\nAvoid: dogs","n":2,"size":"1792x1024","response_format":"b64_json"}`,
	} {
		call, got, rep := sent(t, r, model)
		if got != want || call.Path != "/images/generations" {
			t.Errorf("%s: sent %s", model, got)
		}
		lost := "size,seed,style_type,negative_prompt:prompt"
		if model == "dall-e-3" {
			lost += ",rendering_speed"
		}
		if rep.Header() != lost {
			t.Errorf("%s: lost %s", model, rep.Header())
		}
	}
	exact := &picture.Request{Inbound: imagegen.Name, Operation: picture.Generate, Prompt: "a", N: 1}
	for _, a := range []picture.Aspect{{Width: 1, Height: 1}, {Width: 3, Height: 2}, {Width: 2, Height: 3}} {
		exact.Aspect = a
		if _, _, rep := sent(t, exact, "gpt-image-1"); rep.Header() != "" {
			t.Errorf("%s, which the model makes: lost %s", a.Ratio(), rep.Header())
		}
	}
	for _, r := range []*picture.Request{{Operation: picture.Remix}, {Inbound: images.Name, Operation: picture.Edit},
		{Inbound: images.Name, Operation: picture.Edit, Body: []byte(`{"model":"x"}`)}} {
		var e *dialogue.Error
		if _, err := images.Shape.Encode(t.Context(), r, "dall-e-3", nil); !errors.As(err, &e) || e.Param != "model" {
			t.Errorf("an edit by a model that makes none: %v", err)
		}
	}
	for _, op := range []picture.Operation{picture.Describe, picture.Upscale} {
		var e *dialogue.Error
		if _, err := images.Shape.Encode(t.Context(), &picture.Request{Operation: op}, "m", nil); !errors.As(err, &e) ||
			e.Status != 400 {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// What was black, to be changed, is transparent afterwards; what was white is not.
func TestMasksOfBlackAndWhiteBecomeTransparent(t *testing.T) {
	source, err := picture.NewFile("", pngOf(t, 8, 4))
	if err != nil {
		t.Fatal(err)
	}
	mask := file(t, "mask", 8, 4) // black at 0,0, transparent black elsewhere
	r := &picture.Request{
		Inbound:   imagegen.Name,
		Operation: picture.Edit,
		Prompt:    "a hat",
		N:         1,
		Sources:   []*picture.File{source},
		Mask:      mask.File,
		MaskKeeps: true,
	}
	call, body, _ := sent(t, r, "gpt-image-1")
	_, params, err := mime.ParseMediaType(call.Body.ContentType())
	if err != nil {
		t.Fatal(err)
	}
	form, err := multipart.NewReader(strings.NewReader(body), params["boundary"]).ReadForm(1 << 20)
	if err != nil || len(form.File["image"]) != 1 || len(form.File["mask"]) != 1 {
		t.Fatalf("%+v, %v", form, err)
	}
	f, err := form.File["mask"][0].Open()
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(f)
	if err != nil || got.Bounds().Dx() != 8 || got.Bounds().Dy() != 4 {
		t.Fatal(err)
	}
	if _, _, _, a := got.At(0, 0).RGBA(); a != 0 {
		t.Error("black is kept")
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := images.Shape.Encode(ctx, r, "gpt-image-1", new(dialogue.Report)); !errors.Is(err, context.Canceled) {
		t.Errorf("for a client that has left: %v", err)
	}
	r.MaskKeeps = false
	if _, again, _ := sent(t, r, "gpt-image-1"); strings.Contains(again, "rgba") {
		t.Error("a mask of this shape was changed")
	}
}

func TestPartsOfARequestAskForTheirShare(t *testing.T) {
	r := &picture.Request{
		Inbound:   images.Name,
		Operation: picture.Generate,
		N:         3,
		Body:      []byte(`{"model":"x","n":10,"prompt":"a"}`),
	}
	if _, got, _ := sent(t, r, "y"); got != `{"model":"y","n":3,"prompt":"a"}` {
		t.Errorf("sent %s", got)
	}
	if string(r.Body) != `{"model":"x","n":10,"prompt":"a"}` {
		t.Error("the client's bytes were written to")
	}
}

func TestWhatTheUpstreamsModelRefusesIsNotSent(t *testing.T) {
	const asked = `{"model":"x","prompt":"a","response_format":"b64_json","size":"auto","quality":"auto"}`
	for model, want := range map[string]string{
		"gpt-image-1": `{"model":"gpt-image-1","prompt":"a","size":"auto","quality":"auto"}`,
		"dall-e-2":    `{"model":"dall-e-2","prompt":"a","response_format":"b64_json","quality":"auto"}`,
		"other":       `{"model":"other","prompt":"a","response_format":"b64_json","size":"auto","quality":"auto"}`,
	} {
		r := &picture.Request{Inbound: images.Name, Operation: picture.Generate, N: 1, Body: []byte(asked)}
		if _, got, _ := sent(t, r, model); got != want || string(r.Body) != asked {
			t.Errorf("%s: sent %s of %s", model, got, r.Body)
		}
	}
}

func TestRepliesAreReadAndWritten(t *testing.T) {
	r := &picture.Request{Inbound: imagegen.Name, Operation: picture.Generate, Model: "gen-image-1"}
	const doc = `{"created":5,"output_format":"webp","size":"8x4","quality":"low","background":"opaque","data":[{"b64_json":"aGk="}],"usage":{"total_tokens":9,"input_tokens":4,"output_tokens":5,"input_tokens_details":{"text_tokens":1,"image_tokens":3}}}`
	p, err := images.Shape.Body(r, []byte(doc))
	if err != nil || p.Raw != nil || p.Delivered() != 1 || p.Images[0].Width != 8 || p.Usage.OutputImage != 5 ||
		p.Usage.InputImage != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	got := gjson.ParseBytes(images.NewEmitter(r, itself, time.Now).Reply(p))
	for path, want := range map[string]string{"created": "5", "output_format": "webp", "size": "8x4", "quality": "low", "background": "opaque",
		"data.0.b64_json": "aGk=", "usage.total_tokens": "9", "usage.input_tokens_details.image_tokens": "3",
		"usage.output_tokens_details.image_tokens": "5"} {
		if got.Get(path).String() != want {
			t.Errorf("%s is %s", path, got.Get(path))
		}
	}
}

func TestEventsAreWritten(t *testing.T) {
	r := &picture.Request{Inbound: images.Name, Operation: picture.Edit, Model: "gen-image-1", OutputFormat: "png"}
	e := images.NewEmitter(r, itself, func() time.Time { return time.Unix(7, 0) })
	image := picture.Image{Data: []byte("hi")}
	shown := picture.Image{Data: []byte("hi"), MediaType: "image/webp", Width: 96, Height: 64}
	for got, want := range map[string]string{
		string(e.Partial(&picture.Partial{Index: 1,
			Image: shown})): "event: image_edit.partial_image\ndata: {\"type\":\"image_edit.partial_image\",\"b64_json\":\"aGk=\",\"created_at\":7,\"background\":\"auto\",\"output_format\":\"webp\",\"size\":\"96x64\",\"quality\":\"auto\",\"partial_image_index\":1}\n\n",
		string(e.Completed(&picture.Reply{Images: []picture.Image{image},
			Usage: &picture.Usage{OutputImage: 2}})): "event: image_edit.completed\ndata: {\"type\":\"image_edit.completed\",\"b64_json\":\"aGk=\",\"created_at\":7,\"background\":\"auto\",\"output_format\":\"png\",\"size\":\"auto\",\"quality\":\"auto\",\"usage\":{\"total_tokens\":2,\"input_tokens\":0,\"output_tokens\":2,\"input_tokens_details\":{\"text_tokens\":0,\"image_tokens\":0},\"output_tokens_details\":{\"text_tokens\":0,\"image_tokens\":2}}}\n\n",
		string(e.Partial(&picture.Partial{Raw: []byte("{\n\"x\":1}")})): "event: image_edit.partial_image\ndata: {\"x\":1}\n\n",
		string(e.Failure(dialogue.Missing("x"))):                        "event: error\ndata: {\"error\":{\"message\":\"x: is required\",\"type\":\"invalid_request_error\",\"param\":\"x\",\"code\":\"missing_required_parameter\"}}\n\n",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func FuzzReplies(f *testing.F) {
	f.Add(`{"data":[{"b64_json":"aGk="}]}`, "image_generation.completed")
	f.Add(`{"type":"image_edit.partial_image","partial_image_index":-1,"usage":{"input_tokens":-5}}`, "error")
	f.Fuzz(func(t *testing.T, data, name string) {
		r := &picture.Request{Inbound: images.Name, Operation: picture.Generate}
		if p, err := images.Shape.Body(r, []byte(data)); (p == nil) == (err == nil) {
			t.Errorf("%v, %v", p, err)
		}
		if ev, err := images.Shape.Event(r, name, []byte(data)); ev != nil && err != nil {
			t.Errorf("%v, %v", ev, err)
		}
	})
}
