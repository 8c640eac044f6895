package sdk

import (
	"context"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openAI(t *testing.T, more ...option.RequestOption) openai.Client {
	t.Helper()
	url, key := gateway(t)
	options := []option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0)}
	return openai.NewClient(append(options, more...)...)
}

func chatBody(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
}

func TestChatAnswersWhole(t *testing.T) {
	client := openAI(t)
	got, err := client.Chat.Completions.New(t.Context(), chatBody(plain))
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Choices[0]; c.Message.Content == "" || c.FinishReason != "stop" {
		t.Errorf("got %+v, want text and stop", c)
	}
	if u := got.Usage; u.TotalTokens != u.PromptTokens+u.CompletionTokens || u.TotalTokens == 0 {
		t.Errorf("got usage %+v", u)
	}
}

// chatStream reads a stream into the completion it adds up to.
func chatStream(ctx context.Context, client openai.Client, body openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	stream := client.Chat.Completions.NewStreaming(ctx, body)
	defer stream.Close()
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		if !sum.AddChunk(stream.Current()) {
			return nil, errors.New("a chunk does not belong to the completion")
		}
	}
	return &sum.ChatCompletion, stream.Err()
}

func TestChatStreams(t *testing.T) {
	body := chatBody(plain)
	body.StreamOptions.IncludeUsage = openai.Bool(true)
	got, err := chatStream(t.Context(), openAI(t), body)
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Choices[0]; c.Message.Content == "" || c.FinishReason != "stop" {
		t.Errorf("got %+v, want text and stop", c)
	}
	if got.Usage.TotalTokens == 0 {
		t.Error("no usage although it was asked for")
	}
}

func TestChatToolRoundTrip(t *testing.T) {
	client := openAI(t)
	for name, ask := range map[string]func(openai.ChatCompletionNewParams) (*openai.ChatCompletion, error){
		"whole": func(body openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
			return client.Chat.Completions.New(t.Context(), body)
		},
		"streamed": func(body openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
			return chatStream(t.Context(), client, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := chatBody(useTool)
			body.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
				Name: "get_weather", Description: openai.String("Weather of a city"), Parameters: citySchema,
			})}
			first, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			choice := first.Choices[0]
			if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) == 0 {
				t.Fatalf("got %+v, want a tool call", choice)
			}
			body.Messages = append(body.Messages, choice.Message.ToParam())
			for _, call := range choice.Message.ToolCalls {
				wantCity(t, []byte(call.Function.Arguments))
				body.Messages = append(body.Messages, openai.ToolMessage(`{"weather":"rain"}`, call.ID))
			}
			second, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			if c := second.Choices[0]; c.Message.Content == "" || c.FinishReason != "stop" {
				t.Errorf("got %+v, want text and stop", c)
			}
		})
	}
}

func TestChatKeepsASchema(t *testing.T) {
	client := openAI(t)
	body := chatBody(describe)
	body.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Strict: openai.Bool(true), Schema: personSchema},
	}
	got, err := client.Chat.Completions.New(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	wantPerson(t, got.Choices[0].Message.Content)
}

func wantOpenAIError(t *testing.T, err error, status int, param string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an API error of status %d", err, status)
		return
	}
	if e.StatusCode != status || e.Message == "" || param != "" && e.Param != param {
		t.Errorf("got status %d, param %q, message %q, want %d, %q", e.StatusCode, e.Param, e.Message, status, param)
	}
}

func TestChatErrorsAreReadable(t *testing.T) {
	client, stranger := openAI(t), openAI(t, option.WithAPIKey(wrongKey))
	_, err := stranger.Chat.Completions.New(t.Context(), chatBody(plain))
	wantOpenAIError(t, err, 401, "")
	hot := chatBody(plain)
	hot.Temperature = openai.Float(9)
	_, err = client.Chat.Completions.New(t.Context(), hot)
	wantOpenAIError(t, err, 400, "temperature")
	unknown := chatBody(plain)
	unknown.Model = unknownModel
	_, err = client.Chat.Completions.New(t.Context(), unknown)
	wantOpenAIError(t, err, 404, "")
	busy := chatBody(rateLimit)
	busy.Model = limited + "chat-whole"
	_, err = client.Chat.Completions.New(t.Context(), busy)
	wantOpenAIError(t, err, 429, "")
	busy.Model = limited + "chat-streamed"
	_, err = chatStream(t.Context(), client, busy)
	wantOpenAIError(t, err, 429, "")
	if _, err = chatStream(t.Context(), client, chatBody(midStream)); err == nil {
		t.Error("a stream that failed in the middle ended well")
	}
}

func TestChatStreamCanBeAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := openAI(t)
	stream := client.Chat.Completions.NewStreaming(ctx, chatBody(long))
	defer stream.Close()
	for stream.Next() {
		cancel()
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("got %v, want it cancelled", stream.Err())
	}
}

func TestCompletionsAnswerWholeAndStream(t *testing.T) {
	client := openAI(t)
	body := openai.CompletionNewParams{Model: model, Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(plain)}}
	got, err := client.Completions.New(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Text == "" {
		t.Errorf("got %+v, want text", got)
	}
	stream := client.Completions.NewStreaming(t.Context(), body)
	defer stream.Close()
	text := ""
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			text += c.Text
		}
	}
	if err := stream.Err(); err != nil || text == "" {
		t.Errorf("got %q, %v, want text", text, err)
	}
}

func responseBody(prompt string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}}
}

// responseStream reads a stream to its last event and answers the response in it.
func responseStream(ctx context.Context, client openai.Client, body responses.ResponseNewParams) (*responses.Response, error) {
	stream := client.Responses.NewStreaming(ctx, body)
	defer stream.Close()
	text := ""
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
		if last.Type == "response.output_text.delta" {
			text += last.Delta
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if last.Type == "response.failed" {
		return nil, errors.New("response failed: " + last.Response.Error.Message)
	}
	if last.Type != "response.completed" {
		return nil, errors.New("the last event is " + last.Type)
	}
	if said := last.Response.OutputText(); said != text {
		return nil, errors.New("streamed " + text + " but completed with " + said)
	}
	return &last.Response, nil
}

func TestResponsesToolRoundTrip(t *testing.T) {
	client := openAI(t)
	for name, ask := range map[string]func(responses.ResponseNewParams) (*responses.Response, error){
		"whole": func(body responses.ResponseNewParams) (*responses.Response, error) {
			return client.Responses.New(t.Context(), body)
		},
		"streamed": func(body responses.ResponseNewParams) (*responses.Response, error) {
			return responseStream(t.Context(), client, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := responseBody(useTool)
			body.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
				Name: "get_weather", Parameters: citySchema, Strict: openai.Bool(true),
			}}}
			first, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			var results responses.ResponseInputParam
			for _, item := range first.Output {
				if item.Type == "function_call" {
					wantCity(t, []byte(item.AsFunctionCall().Arguments))
					result := responses.ResponseInputItemParamOfFunctionCallOutput(`{"weather":"rain"}`)
					result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
					results = append(results, result)
				}
			}
			if len(results) == 0 {
				t.Fatalf("got %s, want a function call", first.RawJSON())
			}
			body.PreviousResponseID = openai.String(first.ID)
			body.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
			second, err := ask(body)
			if err != nil {
				t.Fatal(err)
			}
			if second.OutputText() == "" {
				t.Errorf("got %s, want text", second.RawJSON())
			}
		})
	}
}

// A conversation is created, continued by two responses, paged and deleted.
func TestResponsesContinueAConversation(t *testing.T) {
	client := openAI(t)
	message := responses.ResponseInputItemParamOfMessage("My name is Ada.", responses.EasyInputMessageRoleUser)
	c, err := client.Conversations.New(t.Context(), conversations.ConversationNewParams{
		Items: []responses.ResponseInputItemUnionParam{message}, Metadata: shared.Metadata{"topic": "demo"},
	})
	if err != nil || c.ID == "" || c.CreatedAt == 0 {
		t.Fatalf("got %+v, %v", c, err)
	}
	for _, ask := range []func(body responses.ResponseNewParams) (*responses.Response, error){
		func(body responses.ResponseNewParams) (*responses.Response, error) {
			return client.Responses.New(t.Context(), body)
		},
		func(body responses.ResponseNewParams) (*responses.Response, error) {
			return responseStream(t.Context(), client, body)
		},
	} {
		body := responseBody(plain)
		body.Conversation.OfString = openai.String(c.ID)
		if got, err := ask(body); err != nil || got.Conversation.ID != c.ID || got.OutputText() == "" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	var ids []string
	pages := client.Conversations.Items.ListAutoPaging(t.Context(), c.ID, conversations.ItemListParams{
		Limit: openai.Int(2), Order: conversations.ItemListParamsOrderAsc,
		Include: []responses.ResponseIncludable{"message.input_image.image_url"},
	})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if pages.Err() != nil || len(ids) < 5 {
		t.Fatalf("items %v, %v", ids, pages.Err())
	}
	if left, err := client.Conversations.Items.Delete(t.Context(), c.ID, ids[0]); err != nil || left.ID != c.ID {
		t.Errorf("got %+v, %v", left, err)
	}
	if gone, err := client.Conversations.Delete(t.Context(), c.ID); err != nil || !gone.Deleted {
		t.Errorf("got %+v, %v", gone, err)
	}
	_, err = client.Conversations.Get(t.Context(), c.ID)
	wantOpenAIError(t, err, 404, "")
}

func TestResponsesAnswerWholeAndStream(t *testing.T) {
	client := openAI(t)
	got, err := client.Responses.New(t.Context(), responseBody(plain))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != "completed" || got.OutputText() == "" {
		t.Errorf("got %s, want text", got.RawJSON())
	}
	if got, err = responseStream(t.Context(), client, responseBody(plain)); err != nil || got.OutputText() == "" {
		t.Errorf("got %v, %v, want text", got, err)
	}
}

func TestResponsesKeepASchema(t *testing.T) {
	client := openAI(t)
	body := responseBody(describe)
	body.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("person", personSchema)
	got, err := client.Responses.New(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	wantPerson(t, got.OutputText())
}

func TestResponsesErrorsAreReadable(t *testing.T) {
	client, stranger := openAI(t), openAI(t, option.WithAPIKey(wrongKey))
	_, err := stranger.Responses.New(t.Context(), responseBody(plain))
	wantOpenAIError(t, err, 401, "")
	hot := responseBody(plain)
	hot.Temperature = openai.Float(9)
	_, err = client.Responses.New(t.Context(), hot)
	wantOpenAIError(t, err, 400, "temperature")
	_, err = client.Responses.Get(t.Context(), "resp_doesnotexist", responses.ResponseGetParams{})
	wantOpenAIError(t, err, 404, "")
	busy := responseBody(rateLimit)
	busy.Model = limited + "responses-streamed"
	_, err = responseStream(t.Context(), client, busy)
	wantOpenAIError(t, err, 429, "")
	if _, err = responseStream(t.Context(), client, responseBody(midStream)); err == nil {
		t.Error("a stream that failed in the middle ended well")
	}
}

func TestResponsesStreamCanBeAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := openAI(t)
	stream := client.Responses.NewStreaming(ctx, responseBody(long))
	defer stream.Close()
	for stream.Next() {
		if stream.Current().Type == "response.output_text.delta" {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("got %v, want it cancelled", stream.Err())
	}
}
