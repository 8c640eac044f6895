package sdk

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"
)

// vectors is a model that makes embeddings, with the sandbox behind it.
const vectors = "vectors"

// wantUnit checks that a vector has so many numbers and the length 1.
func wantUnit[T float32 | float64](t *testing.T, v []T, dimensions int) {
	t.Helper()
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if len(v) != dimensions || math.Abs(sum-1) > 1e-4 {
		t.Errorf("got %d numbers of length %g, want %d of length 1", len(v), math.Sqrt(sum), dimensions)
	}
}

func TestOpenAIEmbedsTexts(t *testing.T) {
	client := openAI(t)
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: vectors, Dimensions: openai.Int(64),
		Input: openai.EmbeddingNewParamsInputUnion{
			OfArrayOfStrings: []string{"hello world", "good bye", "hello world"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 3 || got.Usage.PromptTokens == 0 || got.Usage.TotalTokens != got.Usage.PromptTokens ||
		got.Model != vectors {
		t.Fatalf("got %d vectors, %s, %+v", len(got.Data), got.Model, got.Usage)
	}
	for i, d := range got.Data {
		wantUnit(t, d.Embedding, 64)
		if d.Index != int64(i) {
			t.Errorf("vector %d has the index %d", i, d.Index)
		}
	}
	if !slices.Equal(got.Data[0].Embedding, got.Data[2].Embedding) ||
		slices.Equal(got.Data[0].Embedding, got.Data[1].Embedding) {
		t.Error("vectors do not follow from their texts")
	}
}

func TestOpenAIEmbedsTokens(t *testing.T) {
	client := openAI(t)
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: vectors,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{15339, 1917}, {9906}}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Usage.PromptTokens != 3 {
		t.Errorf("got %d vectors, %+v", len(got.Data), got.Usage)
	}
}

func TestOpenAIGetsErrorsOfEmbeddings(t *testing.T) {
	client := openAI(t)
	_, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: vectors,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", ""}}})
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Param != "input.1" {
		t.Errorf("got %v, want 400 that names input.1", err)
	}
}

// TestGenaiEmbedsContents sends batchEmbedContents, as the client does for every number of contents.
func TestGenaiEmbedsContents(t *testing.T) {
	client := genaiClient(t, "")
	dimensions := int32(32)
	got, err := client.Models.EmbedContent(t.Context(), vectors,
		append(genai.Text("hello world"), genai.Text("good bye")...),
		&genai.EmbedContentConfig{TaskType: "RETRIEVAL_QUERY", OutputDimensionality: &dimensions})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Embeddings) != 2 {
		t.Fatalf("got %d vectors", len(got.Embeddings))
	}
	for _, e := range got.Embeddings {
		wantUnit(t, e.Values, 32)
	}
}

func TestGenaiGetsErrorsOfEmbeddings(t *testing.T) {
	client := genaiClient(t, "")
	_, err := client.Models.EmbedContent(t.Context(), unknownModel, genai.Text("hello"), nil)
	var refused genai.APIError
	if !errors.As(err, &refused) || refused.Code != 404 {
		t.Errorf("got %v, want 404", err)
	}
}
