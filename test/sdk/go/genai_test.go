package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/genai"
)

func genaiClient(t *testing.T, key string) *genai.Client {
	t.Helper()
	url, own := gateway(t)
	if key == "" {
		key = own
	}
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// An answer is what a whole reply and a stream have in common.
type answer struct {
	text   string
	calls  []*genai.FunctionCall
	finish genai.FinishReason
	tokens int32
	parts  []*genai.Part
}

func (a *answer) add(r *genai.GenerateContentResponse) {
	if r.UsageMetadata != nil {
		a.tokens = r.UsageMetadata.TotalTokenCount
	}
	for _, c := range r.Candidates {
		if c.FinishReason != "" {
			a.finish = c.FinishReason
		}
		if c.Content != nil {
			a.parts = append(a.parts, c.Content.Parts...)
		}
	}
	a.text += r.Text()
	a.calls = append(a.calls, r.FunctionCalls()...)
}

type generate func(context.Context, *genai.Client, string, []*genai.Content, *genai.GenerateContentConfig) (*answer, error)

var ways = map[string]generate{
	"whole": func(ctx context.Context, client *genai.Client, model string, contents []*genai.Content, config *genai.GenerateContentConfig) (*answer, error) {
		r, err := client.Models.GenerateContent(ctx, model, contents, config)
		if err != nil {
			return nil, err
		}
		var a answer
		a.add(r)
		return &a, nil
	},
	"streamed": func(ctx context.Context, client *genai.Client, model string, contents []*genai.Content, config *genai.GenerateContentConfig) (*answer, error) {
		var a answer
		for r, err := range client.Models.GenerateContentStream(ctx, model, contents, config) {
			if err != nil {
				return nil, err
			}
			a.add(r)
		}
		return &a, nil
	},
}

func TestGenerateAnswersWholeAndStreams(t *testing.T) {
	client := genaiClient(t, "")
	for name, ask := range ways {
		got, err := ask(t.Context(), client, model, genai.Text(plain), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.text == "" || got.finish != genai.FinishReasonStop || got.tokens == 0 {
			t.Errorf("%s: got %+v, want text, STOP and usage", name, got)
		}
	}
}

func TestGenerateToolRoundTrip(t *testing.T) {
	client := genaiClient(t, "")
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
		Name: "get_weather", Description: "Weather of a city", ParametersJsonSchema: citySchema,
	}}}}}
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			contents := genai.Text(useTool)
			first, err := ask(t.Context(), client, model, contents, config)
			if err != nil {
				t.Fatal(err)
			}
			if len(first.calls) == 0 {
				t.Fatalf("got %+v, want a function call", first)
			}
			var results []*genai.Part
			for _, call := range first.calls {
				args, err := json.Marshal(call.Args)
				if err != nil {
					t.Fatal(err)
				}
				wantCity(t, args)
				result := genai.NewPartFromFunctionResponse(call.Name, map[string]any{"output": "rain"})
				result.FunctionResponse.ID = call.ID
				results = append(results, result)
			}
			contents = append(contents, genai.NewContentFromParts(first.parts, genai.RoleModel), genai.NewContentFromParts(results, genai.RoleUser))
			second, err := ask(t.Context(), client, model, contents, config)
			if err != nil {
				t.Fatal(err)
			}
			if second.text == "" || second.finish != genai.FinishReasonStop {
				t.Errorf("got %+v, want text and STOP", second)
			}
		})
	}
}

func TestGenerateKeepsASchema(t *testing.T) {
	client := genaiClient(t, "")
	config := &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: personSchema}
	got, err := ways["whole"](t.Context(), client, model, genai.Text(describe), config)
	if err != nil {
		t.Fatal(err)
	}
	wantPerson(t, got.text)
}

func TestGenerateTokensAreCounted(t *testing.T) {
	client := genaiClient(t, "")
	got, err := client.Models.CountTokens(t.Context(), model, genai.Text(plain), nil)
	if err != nil || got.TotalTokens == 0 {
		t.Errorf("got %v, %v, want a count", got, err)
	}
}

// This client reads the status from the body alone, so the envelope must have it.
func wantGenaiError(t *testing.T, err error, status int, word string) {
	t.Helper()
	var e genai.APIError
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an API error of status %d", err, status)
		return
	}
	if e.Code != status || e.Status != word || e.Message == "" {
		t.Errorf("got %d %s %q, want %d %s", e.Code, e.Status, e.Message, status, word)
	}
}

func TestGenerateErrorsAreReadable(t *testing.T) {
	client, stranger := genaiClient(t, ""), genaiClient(t, wrongKey)
	for name, ask := range ways {
		_, err := ask(t.Context(), stranger, model, genai.Text(plain), nil)
		wantGenaiError(t, err, 401, "UNAUTHENTICATED")
		_, err = ask(t.Context(), client, model, genai.Text(plain), &genai.GenerateContentConfig{Temperature: genai.Ptr[float32](9)})
		wantGenaiError(t, err, 400, "INVALID_ARGUMENT")
		_, err = ask(t.Context(), client, limited+"generate-"+name, genai.Text(rateLimit), nil)
		wantGenaiError(t, err, 429, "RESOURCE_EXHAUSTED")
		if t.Failed() {
			t.Fatalf("%s: see above", name)
		}
	}
	_, err := client.Models.GenerateContent(t.Context(), unknownModel, genai.Text(plain), nil)
	wantGenaiError(t, err, 404, "NOT_FOUND")
	if _, err = ways["streamed"](t.Context(), client, model, genai.Text(midStream), nil); err == nil {
		t.Error("a stream that failed in the middle ended well")
	}
}

func TestGenerateStreamCanBeAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for r, err := range genaiClient(t, "").Models.GenerateContentStream(ctx, model, genai.Text(long), nil) {
		last = err
		if err == nil && r.Text() != "" {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v, want it cancelled", last)
	}
}
