package gemini_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/gemini"
)

// dot is a picture of one pixel.
func dot(t *testing.T) *picture.File {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	f, err := picture.NewFile("dot.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// sentPicture is the body of the call for a request.
func sentPicture(t *testing.T, r *picture.Request, rep *dialogue.Report) gjson.Result {
	t.Helper()
	call, err := gemini.Pictures.Codec.Encode(t.Context(), r, "m", rep)
	if err != nil {
		t.Fatal(err)
	}
	body, err := call.Body.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || int64(len(text)) != call.Body.Len() || !gjson.ValidBytes(text) {
		t.Fatalf("%d bytes of %d, %v: %s", len(text), call.Body.Len(), err, text)
	}
	return gjson.ParseBytes(text)
}

func TestPicturesAreSentBeforeTheTextThatChangesThem(t *testing.T) {
	source, style := dot(t), dot(t)
	seed := int64(7)
	sent := sentPicture(t, &picture.Request{Operation: picture.Generate, Prompt: "a cat",
		Sources: []*picture.File{source}, Styles: []*picture.File{style}, Seed: &seed}, new(dialogue.Report))
	parts := sent.Get("contents.0.parts").Array()
	if len(parts) != 3 || parts[0].Get("inlineData.mimeType").Str != "image/png" ||
		parts[1].Get("inlineData.data").Str == "" || !strings.Contains(parts[2].Get("text").Str, "a cat") {
		t.Errorf("the parts are %s", sent.Get("contents"))
	}
	config := sent.Get("generationConfig")
	if config.Get("seed").Int() != 7 || config.Get("imageConfig").Exists() {
		t.Errorf("without a size: %s", config)
	}
}

func TestOnlyLargePicturesNameTheirSize(t *testing.T) {
	for edge, want := range map[int]string{1024: "", 1536: "", 1537: "2K", 2560: "2K", 2561: "4K"} {
		sent := sentPicture(t, &picture.Request{Operation: picture.Generate, Prompt: "a cat",
			Size: picture.Size{Width: edge, Height: edge}}, new(dialogue.Report))
		config := sent.Get("generationConfig.imageConfig")
		if config.Get("imageSize").Str != want || config.Get("aspectRatio").Str != "1:1" {
			t.Errorf("%d pixels: %s, want the size %q", edge, config, want)
		}
	}
}

func TestAReplyWithoutAPictureSaysWhy(t *testing.T) {
	candidate := func(reason string) string { return `{"candidates":[{"finishReason":"` + reason + `"}]}` }
	for _, c := range []struct{ body, code, stage string }{
		{`{"promptFeedback":{"blockReason":"SAFETY"}}`, "moderation_blocked", "input"},
		{candidate("IMAGE_SAFETY"), "moderation_blocked", "output"},
		{candidate("RECITATION"), "moderation_blocked", "output"},
		{candidate("STOP"), "upstream_invalid_response", ""},
		{`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"text/plain","data":"aGk="}}]}}]}`,
			"upstream_invalid_response", ""},
		{`{"candidates":[{"content":{"parts":[
			{"thought":true,"inlineData":{"mimeType":"image/png","data":"aGk="}}]}}]}`,
			"upstream_invalid_response", ""},
		{`{"candidates":`, "upstream_invalid_response", ""},
	} {
		_, err := gemini.Pictures.Codec.Body(nil, []byte(c.body))
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Code != c.code ||
			gjson.GetBytes(e.ModerationDetails, "moderation_stage").Str != c.stage {
			t.Errorf("%s: %#v", c.body, err)
		}
	}
}

func TestTokensOfPicturesAreCountedApart(t *testing.T) {
	reply, err := gemini.Pictures.Codec.Body(nil, []byte(`{"candidates":[{"content":{"parts":[{"text":"here"},
		{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":300,"candidatesTokenCount":1300,"totalTokenCount":1600,
		"promptTokensDetails":[{"modality":"TEXT","tokenCount":42},{"modality":"IMAGE","tokenCount":258}],
		"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":1290}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Images) != 1 || !slices.Equal(reply.Images[0].Base64, []byte("aGk=")) {
		t.Errorf("the pictures are %+v", reply.Images)
	}
	want := picture.Usage{InputText: 42, InputImage: 258, OutputText: 10, OutputImage: 1290}
	if *reply.Usage != want {
		t.Errorf("%+v, want %+v", *reply.Usage, want)
	}
}
