package sdk

import (
	"context"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

func anthropicClient(t *testing.T, more ...option.RequestOption) anthropic.Client {
	t.Helper()
	url, key := gateway(t)
	options := []option.RequestOption{option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0)}
	return anthropic.NewClient(append(options, more...)...)
}

func messageBody(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: model, MaxTokens: 4096,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))}}
}

// messageStream reads a stream into the message it adds up to.
func messageStream(ctx context.Context, client anthropic.Client, body anthropic.MessageNewParams) (*anthropic.Message, error) {
	stream := client.Messages.NewStreaming(ctx, body)
	defer stream.Close()
	var sum anthropic.Message
	for stream.Next() {
		if err := sum.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	return &sum, stream.Err()
}

func messageText(m *anthropic.Message) string {
	text := ""
	for _, b := range m.Content {
		text += b.Text
	}
	return text
}

func TestMessagesAnswerWholeAndStream(t *testing.T) {
	client := anthropicClient(t)
	whole, err := client.Messages.New(t.Context(), messageBody(plain))
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := messageStream(t.Context(), client, messageBody(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*anthropic.Message{whole, streamed} {
		if messageText(got) == "" || got.StopReason != "end_turn" || got.Usage.OutputTokens == 0 {
			t.Errorf("got %s, want text, end_turn and usage", got.RawJSON())
		}
	}
}

func TestMessagesToolRoundTrip(t *testing.T) {
	client := anthropicClient(t)
	for name, ask := range map[string]func(anthropic.MessageNewParams) (*anthropic.Message, error){
		"whole": func(body anthropic.MessageNewParams) (*anthropic.Message, error) {
			return client.Messages.New(t.Context(), body)
		},
		"streamed": func(body anthropic.MessageNewParams) (*anthropic.Message, error) {
			return messageStream(t.Context(), client, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := messageBody(useTool)
			body.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
				Name: "get_weather", Description: param.NewOpt("Weather of a city"),
				InputSchema: anthropic.ToolInputSchemaParam{Properties: citySchema["properties"], Required: []string{"city"}},
			}}}
			first, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			var results []anthropic.ContentBlockParamUnion
			for _, b := range first.Content {
				if b.Type == "tool_use" {
					wantCity(t, b.Input)
					results = append(results, anthropic.NewToolResultBlock(b.ID, "rain", false))
				}
			}
			if first.StopReason != "tool_use" || len(results) == 0 {
				t.Fatalf("got %s, want a tool call", first.RawJSON())
			}
			body.Messages = append(body.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
			second, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			if messageText(second) == "" || second.StopReason != "end_turn" {
				t.Errorf("got %s, want text and end_turn", second.RawJSON())
			}
		})
	}
}

func TestMessagesKeepASchema(t *testing.T) {
	client := anthropicClient(t)
	body := messageBody(describe)
	body.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: personSchema}
	got, err := client.Messages.New(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	wantPerson(t, messageText(got))
}

func TestMessagesTokensAreCounted(t *testing.T) {
	client := anthropicClient(t)
	got, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: model, Messages: messageBody(plain).Messages})
	if err != nil || got.InputTokens == 0 {
		t.Errorf("got %v, %v, want a count", got, err)
	}
}

func wantAnthropicError(t *testing.T, err error, status int) {
	t.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an API error of status %d", err, status)
		return
	}
	if e.StatusCode != status || e.RequestID == "" {
		t.Errorf("got status %d, request id %q, want %d and an id", e.StatusCode, e.RequestID, status)
	}
}

func TestMessagesErrorsAreReadable(t *testing.T) {
	client, stranger := anthropicClient(t), anthropicClient(t, option.WithAPIKey(wrongKey))
	_, err := stranger.Messages.New(t.Context(), messageBody(plain))
	wantAnthropicError(t, err, 401)
	negative := messageBody(plain)
	negative.MaxTokens = -1
	_, err = client.Messages.New(t.Context(), negative)
	wantAnthropicError(t, err, 400)
	unknown := messageBody(plain)
	unknown.Model = unknownModel
	_, err = client.Messages.New(t.Context(), unknown)
	wantAnthropicError(t, err, 404)
	busy := messageBody(rateLimit)
	busy.Model = limited + "messages-whole"
	_, err = client.Messages.New(t.Context(), busy)
	wantAnthropicError(t, err, 429)
	busy.Model = limited + "messages-streamed"
	_, err = messageStream(t.Context(), client, busy)
	wantAnthropicError(t, err, 429)
	if _, err = messageStream(t.Context(), client, messageBody(midStream)); err == nil {
		t.Error("a stream that failed in the middle ended well")
	}
}

func TestMessagesStreamCanBeAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := anthropicClient(t)
	stream := client.Messages.NewStreaming(ctx, messageBody(long))
	defer stream.Close()
	for stream.Next() {
		if stream.Current().Type == "content_block_delta" {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("got %v, want it cancelled", stream.Err())
	}
}
