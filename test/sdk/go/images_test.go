package sdk

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
)

const fox = "A red fox in the snow [sandbox: pace=max]"

// wide is the width of a PNG.
func wide(t *testing.T, data []byte) int {
	t.Helper()
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("no picture: %v", err)
	}
	return c.Width
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestImagesAreMade(t *testing.T) {
	client := openAI(t)
	got, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-1", Prompt: fox, N: openai.Int(2), Size: "1536x1024"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || wide(t, decoded(t, got.Data[0].B64JSON)) != 1536 || got.Usage.TotalTokens == 0 {
		t.Errorf("got %d pictures, usage %+v", len(got.Data), got.Usage)
	}
}

func TestImageAddressesAreTheGateways(t *testing.T) {
	client := openAI(t)
	got, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "dall-e-2", Prompt: fox, Size: "256x256"})
	if err != nil {
		t.Fatal(err)
	}
	url, _ := gateway(t)
	if !strings.HasPrefix(got.Data[0].URL, url+"/") {
		t.Fatalf("got %s", got.Data[0].URL)
	}
	res, err := http.Get(got.Data[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, err := io.ReadAll(res.Body); err != nil || wide(t, data) != 256 {
		t.Errorf("%v", err)
	}
}

func TestImagesStream(t *testing.T) {
	client := openAI(t)
	stream := client.Images.GenerateStreaming(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-1", Prompt: fox, PartialImages: openai.Int(1)})
	defer stream.Close()
	var types []string
	for stream.Next() {
		types = append(types, stream.Current().Type)
		wide(t, decoded(t, stream.Current().B64JSON))
	}
	if stream.Err() != nil || strings.Join(types, " ") != "image_generation.partial_image image_generation.completed" {
		t.Errorf("%v, %v", types, stream.Err())
	}
}

func TestImagesAreEdited(t *testing.T) {
	client := openAI(t)
	made, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-1", Prompt: fox})
	if err != nil {
		t.Fatal(err)
	}
	file := openai.File(bytes.NewReader(decoded(t, made.Data[0].B64JSON)), "fox.png", "image/png")
	got, err := client.Images.Edit(t.Context(), openai.ImageEditParams{Model: "gpt-image-1", Prompt: fox, Image: openai.ImageEditParamsImageUnion{OfFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	wide(t, decoded(t, got.Data[0].B64JSON))
}

func TestImageRulesAreErrors(t *testing.T) {
	client := openAI(t)
	_, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "dall-e-3", Prompt: fox, N: openai.Int(2)})
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Param != "n" {
		t.Errorf("got %v", err)
	}
}

func TestImageEditsStream(t *testing.T) {
	client := openAI(t)
	made, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-1", Prompt: fox})
	if err != nil {
		t.Fatal(err)
	}
	file := openai.File(bytes.NewReader(decoded(t, made.Data[0].B64JSON)), "fox.png", "image/png")
	stream := client.Images.EditStreaming(t.Context(), openai.ImageEditParams{Model: "gpt-image-1", Prompt: fox, PartialImages: openai.Int(1),
		Image: openai.ImageEditParamsImageUnion{OfFile: file}})
	defer stream.Close()
	var types []string
	for stream.Next() {
		types = append(types, stream.Current().Type)
		wide(t, decoded(t, stream.Current().B64JSON))
	}
	if stream.Err() != nil || strings.Join(types, " ") != "image_edit.partial_image image_edit.completed" {
		t.Errorf("%v, %v", types, stream.Err())
	}
}
