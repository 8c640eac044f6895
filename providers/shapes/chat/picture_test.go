package chat_test

import (
	"bytes"
	"errors"
	pixels "image"
	"image/png"
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	pictures "stagedoor/providers/picture"
	"stagedoor/providers/shapes/chat"
)

func TestPicturesToChangeAreDataURLsBeforeTheText(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, pixels.NewGray(pixels.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	dot, err := pictures.NewFile("dot.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer dot.Close()
	call, err := chat.Pictures.Codec.Encode(t.Context(), &pictures.Request{
		Operation: pictures.Generate, Prompt: "a cat",
		Sources: []*pictures.File{dot}, Styles: []*pictures.File{dot}, Seed: new(int64(7)),
		Size: pictures.Size{Width: 64, Height: 64}}, "m", new(dialogue.Report))
	if err != nil {
		t.Fatal(err)
	}
	body, err := call.Body.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || int64(len(text)) != call.Body.Len() {
		t.Fatalf("%d bytes of %d, %v", len(text), call.Body.Len(), err)
	}
	const content = "messages.0.content."
	for path, want := range map[string]string{"model": "m", "modalities": `["image","text"]`, "seed": "7",
		"image_config.aspect_ratio": "1:1", content + "#": "3", content + "0.type": "image_url",
		content + "1.type": "image_url", content + "2.type": "text"} {
		if got := gjson.GetBytes(text, path).String(); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	address := gjson.GetBytes(text, content+"0.image_url.url").Str
	if got := chatPicture(t, address); got.MediaType != "image/png" || len(got.Base64) == 0 {
		t.Errorf("the address is %q", address)
	}
	_, err = chat.Pictures.Codec.Encode(t.Context(), &pictures.Request{Operation: pictures.Describe}, "m", nil)
	if err == nil {
		t.Error("a picture is described by a model that draws")
	}
}

// chatPicture returns the picture of a reply that has an address for it.
func chatPicture(t *testing.T, address string) pictures.Image {
	t.Helper()
	reply, err := chat.Pictures.Codec.Body(nil, []byte(`{"choices":[{"message":{"content":[{"type":"image_url",`+
		`"image_url":{"url":"`+address+`"}}]}}]}`))
	if err != nil || len(reply.Images) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	return reply.Images[0]
}

func TestAPictureIsInTheReplyOrAtAnAddress(t *testing.T) {
	for _, address := range []string{"https://pictures.example.com/a;base64,b", "data:image/png,raw"} {
		if got := chatPicture(t, address); got.URL != address || got.Base64 != nil {
			t.Errorf("%q: %+v", address, got)
		}
	}
	if got := chatPicture(t, "data:image/webp;base64,aGk="); got.MediaType != "image/webp" ||
		string(got.Base64) != "aGk=" || got.URL != "" {
		t.Errorf("%+v", got)
	}
}

func TestAReplyOfWordsIsNoPicture(t *testing.T) {
	for body, code := range map[string]string{
		`{"choices":[{"finish_reason":"content_filter"}]}`:                             "moderation_blocked",
		`{"choices":[{"message":{"refusal":"I will not"},"finish_reason":"stop"}]}`:    "moderation_blocked",
		`{"choices":[{"message":{"content":"Here it is!"},"finish_reason":"stop"}]}`:   "upstream_invalid_response",
		`{"choices":[{"message":{"images":[{"image_url":{"url":""}},{"text":"x"}]}}]}`: "upstream_invalid_response",
		`{"choices":`: "upstream_invalid_response",
	} {
		_, err := chat.Pictures.Codec.Body(nil, []byte(body))
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %#v", body, err)
		}
	}
}

func TestTokensOfPicturesAreCountedApart(t *testing.T) {
	reply, err := chat.Pictures.Codec.Body(nil, []byte(`{"choices":[{"message":{"images":[
		{"image_url":{"url":"https://x/y"}}]}}],
		"usage":{"prompt_tokens":300,"completion_tokens":1300,"total_tokens":1600,
		"prompt_tokens_details":{"image_tokens":258,"cached_tokens":12},
		"completion_tokens_details":{"image_tokens":1290}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := pictures.Usage{CachedInput: 12, InputText: 42, InputImage: 258, OutputText: 10, OutputImage: 1290}
	if *reply.Usage != want {
		t.Errorf("%+v, want %+v", *reply.Usage, want)
	}
}
