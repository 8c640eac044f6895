package text_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// A vendorError is a refusal as a vendor writes it, and what a client of any shape must read in it.
type vendorError struct {
	vendor  string
	shape   dialogue.Shape
	status  int
	headers map[string]string
	body    string

	want    int // status
	code    string
	wait    time.Duration
	noRetry bool
	calls   int    // that are made before the client gets the error; 0: 1
	sizes   string // of the prompt and the limit, as they appear in every message
}

const (
	anthropicSays = `{"type":"error","error":{"type":"%TYPE","message":"%TEXT"}}`
	openaiSays    = `{"error":{"message":"%TEXT","type":"%TYPE","param":null,"code":"%CODE"}}`
	googleSays    = `{"error":{"code":%CODE,"message":"%TEXT","status":"%TYPE"}}`
)

func says(form, kind, code, text string) string {
	return strings.NewReplacer("%TYPE", kind, "%CODE", code, "%TEXT", text).Replace(form)
}

// vendorErrors has the refusals of wire/errors.md and of the vendors whose servers speak chat.
var vendorErrors = []vendorError{
	// The prompt does not fit: agents compact their conversation, and nothing is retried.
	{
		vendor: "openai",
		shape:  dialoguetest.Chat,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "130000 128000",
		body: says(openaiSays, "invalid_request_error", "context_length_exceeded",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."),
	},
	{vendor: "openai responses", shape: dialoguetest.Responses, status: 400, want: 400, code: "context_length_exceeded",
		body: says(openaiSays, "invalid_request_error", "context_length_exceeded",
			"Your input exceeds the context window of this model. Please adjust your input and try again.")},
	{
		vendor: "anthropic",
		shape:  dialoguetest.Messages,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "210000 200000",
		body:   says(anthropicSays, "invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum"),
	},
	{
		vendor: "google",
		shape:  dialoguetest.Gemini,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "1200000 1048576",
		body: says(googleSays, "INVALID_ARGUMENT", "400",
			"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
	},
	{
		vendor: "vllm",
		shape:  dialoguetest.Chat,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "9000 8192",
		body: says(openaiSays, "BadRequestError", "400", "This model's maximum context length is 8192 tokens. "+
			"However, you requested 10000 tokens (9000 in the messages, 1000 in the completion)."),
	},
	{vendor: "llama.cpp", shape: dialoguetest.Chat, status: 400, want: 400, code: "context_length_exceeded",
		body: says(openaiSays, "exceed_context_size_error", "400", "the request exceeds the available context size")},
	{
		vendor: "xai",
		shape:  dialoguetest.Chat,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "537812 131072",
		body: `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 ` +
			`but the request contains 537812 tokens."}`,
	},
	{
		vendor: "mistral",
		shape:  dialoguetest.Chat,
		status: 400,
		want:   400,
		code:   "context_length_exceeded",
		sizes:  "40000 32768",
		body: `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for ` +
			`model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`,
	},
	// The body is too large.
	{vendor: "anthropic size", shape: dialoguetest.Messages, status: 413, want: 413, code: "request_too_large",
		body: says(anthropicSays, "request_too_large", "", "Request exceeds the maximum size")},
	{vendor: "google size", shape: dialoguetest.Gemini, status: 400, want: 413, code: "request_too_large",
		body: says(googleSays, "INVALID_ARGUMENT", "400", "Request payload size exceeds the limit: 20971520 bytes.")},
	{vendor: "a proxy", shape: dialoguetest.Chat, status: 413, want: 413, code: "request_too_large",
		body: `<html><title>413 Request Entity Too Large</title></html>`},
	// The gateway's account has no credit: the operator's to mend, and of no use to repeat.
	{
		vendor:  "anthropic credit",
		shape:   dialoguetest.Messages,
		status:  400,
		want:    502,
		code:    "upstream_auth_error",
		noRetry: true,
		body: says(anthropicSays, "invalid_request_error", "",
			"Your credit balance is too low to access the Anthropic API."),
	},
	{
		vendor:  "openai credit",
		shape:   dialoguetest.Chat,
		status:  429,
		want:    502,
		code:    "upstream_auth_error",
		noRetry: true,
		body: says(openaiSays, "insufficient_quota", "insufficient_quota",
			"You exceeded your current quota, please check your plan."),
	},
	{
		vendor:  "deepseek credit",
		shape:   dialoguetest.Chat,
		status:  402,
		want:    502,
		code:    "upstream_auth_error",
		noRetry: true,
		body:    says(openaiSays, "unknown_error", "invalid_request_error", "Insufficient Balance"),
	},
	{vendor: "anthropic billing", shape: dialoguetest.Messages, status: 402, want: 502, code: "upstream_auth_error",
		noRetry: true, body: says(anthropicSays, "billing_error", "", "Check your billing details.")},
	// The gateway's own key is refused, which is not the client's mistake.
	{vendor: "openai key", shape: dialoguetest.Chat, status: 401, want: 502, code: "upstream_auth_error", noRetry: true,
		body: says(openaiSays, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")},
	{vendor: "anthropic key", shape: dialoguetest.Messages, status: 401, want: 502, code: "upstream_auth_error",
		noRetry: true, body: says(anthropicSays, "authentication_error", "", "invalid x-api-key")},
	{vendor: "google key", shape: dialoguetest.Gemini, status: 400, want: 502, code: "upstream_auth_error",
		noRetry: true,
		body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",` +
			`"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",` +
			`"reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`},
	// The model is not there for this account: the client says so once and does not ask again.
	{vendor: "openai model", shape: dialoguetest.Chat, status: 404, want: 404, code: "model_not_found",
		body: says(openaiSays, "invalid_request_error", "model_not_found", "The model `m` does not exist.")},
	{vendor: "anthropic model", shape: dialoguetest.Messages, status: 404, want: 404, code: "model_not_found",
		body: says(anthropicSays, "not_found_error", "", "model: m")},
	{vendor: "google model", shape: dialoguetest.Gemini, status: 404, want: 404, code: "model_not_found",
		body: says(googleSays, "NOT_FOUND", "404", "models/m is not found for API version v1beta")},
	{vendor: "vllm model", shape: dialoguetest.Chat, status: 404, want: 404, code: "model_not_found",
		body: says(openaiSays, "NotFoundError", "404", "The model `m` does not exist.")},
	{vendor: "ollama model", shape: dialoguetest.Chat, status: 404, want: 404, code: "model_not_found",
		body: says(openaiSays, "api_error", "", `model 'm' not found, try pulling it first`)},
	{vendor: "fireworks model", shape: dialoguetest.Chat, status: 404, want: 404, code: "model_not_found",
		body: says(openaiSays, "error", "NOT_FOUND", "Model not found, inaccessible, and/or not deployed")},
	// Another thing is not there, though the text has the word.
	{vendor: "openai item", shape: dialoguetest.Responses, status: 404, want: 404, code: "item_not_found",
		body: says(openaiSays, "invalid_request_error", "item_not_found", "Model 'm' not found for item 'rs_1'.")},
	{vendor: "anthropic file", shape: dialoguetest.Messages, status: 404, want: 404,
		body: says(anthropicSays, "not_found_error", "", "File not found: file_model_card")},
	{vendor: "a proxy's item", shape: dialoguetest.Responses, status: 404, want: 404,
		body: says(openaiSays, "invalid_request_error", "", "Item 'rs_1' not found. Received Model Group=m")},
	// Errors in the forms of other servers, and of none.
	{vendor: "google list", shape: dialoguetest.Gemini, status: 400, want: 400, code: "context_length_exceeded",
		body: "[" + says(googleSays, "INVALID_ARGUMENT", "400", "The input token count (9) exceeds the maximum number of "+
			"tokens allowed (8).") + "]"},
	{vendor: "a text", shape: dialoguetest.Chat, status: 400, want: 400, code: "context_length_exceeded",
		body: `{"error":"the request exceeds the available context size"}`},
	{vendor: "a detail", shape: dialoguetest.Chat, status: 400, want: 400, code: "context_length_exceeded",
		body: `{"detail":"This model's maximum context length is 8 tokens."}`},
	{vendor: "openai fault", shape: dialoguetest.Responses, status: 500, want: 500, code: "server_error", calls: 3,
		body: says(openaiSays, "server_error", "server_error", "The server had an error.")},
	// A rate limit passes: the client waits as long as the vendor says, at most a minute.
	{
		vendor: "openai rate",
		shape:  dialoguetest.Chat,
		status: 429,
		want:   429,
		code:   "rate_limit_exceeded",
		wait:   20 * time.Second,
		body: says(openaiSays, "tokens", "rate_limit_exceeded",
			"Rate limit reached on tokens per min. Please try again in 20s."),
	},
	{
		vendor:  "anthropic rate",
		shape:   dialoguetest.Messages,
		status:  429,
		want:    429,
		code:    "rate_limit_exceeded",
		wait:    time.Minute,
		headers: map[string]string{"Retry-After": "300"},
		body:    says(anthropicSays, "rate_limit_error", "", "This request would exceed your account's rate limit."),
	},
	{
		vendor: "google rate",
		shape:  dialoguetest.Gemini,
		status: 429,
		want:   429,
		code:   "rate_limit_exceeded",
		wait:   37 * time.Second,
		body: `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}`,
	},
	{
		vendor:  "openai never fits",
		shape:   dialoguetest.Chat,
		status:  429,
		want:    429,
		code:    "rate_limit_exceeded",
		noRetry: true,
		body: says(openaiSays, "tokens", "rate_limit_exceeded",
			"Request too large for gpt-4 on tokens per min: Limit 30000, Requested 41000."),
	},
	// Overload passes, too.
	{
		vendor: "anthropic overload",
		shape:  dialoguetest.Messages,
		status: 529,
		want:   503,
		code:   "server_is_overloaded",
		calls:  3,
		body:   says(anthropicSays, "overloaded_error", "", "Overloaded"),
	},
	{
		vendor:  "openai overload",
		shape:   dialoguetest.Responses,
		status:  503,
		want:    503,
		code:    "slow_down",
		wait:    30 * time.Second,
		headers: map[string]string{"Retry-After": "30"},
		body:    says(openaiSays, "service_unavailable_error", "slow_down", "Slow down"),
	},
	{
		vendor: "google overload",
		shape:  dialoguetest.Gemini,
		status: 503,
		want:   503,
		code:   "server_is_overloaded",
		calls:  3,
		body:   says(googleSays, "UNAVAILABLE", "503", "The model is overloaded. Please try again later."),
	},
	{
		vendor: "moonshot overload",
		shape:  dialoguetest.Chat,
		status: 429,
		want:   503,
		code:   "server_is_overloaded",
		calls:  3,
		body: says(openaiSays, "engine_overloaded_error", "",
			"The engine is currently overloaded, please try again later"),
	},
	// Moderation.
	{vendor: "azure content", shape: dialoguetest.Chat, status: 400, want: 400, code: "content_filter",
		body: says(openaiSays, "", "content_filter",
			"The response was filtered due to the prompt triggering the policy.")},
	{
		vendor: "anthropic content",
		shape:  dialoguetest.Messages,
		status: 400,
		want:   400,
		code:   "content_policy_violation",
		body:   says(anthropicSays, "invalid_request_error", "", "Output blocked by content filtering policy"),
	},
	{vendor: "openai content", shape: dialoguetest.Responses, status: 400, want: 400, code: "invalid_prompt",
		body: says(openaiSays, "invalid_request_error", "invalid_prompt", "Your prompt was flagged.")},
	{vendor: "openrouter content", shape: dialoguetest.Chat, status: 403, want: 400, code: "content_policy_violation",
		body: says(openaiSays, "", "403", "Your chosen model requires moderation and your input was flagged")},
}

// longPromptWords holds the words by which the client libraries of each vendor recognise a prompt that is too long.
var longPromptWords = map[dialogue.Shape]string{
	dialoguetest.Chat: "maximum context length", dialoguetest.Completions: "maximum context length",
	dialoguetest.Responses: "context window", dialoguetest.Messages: "prompt is too long",
	dialoguetest.Gemini: "input token count",
}

// longPromptFields holds the field that a client of each shape has the prompt in.
var longPromptFields = map[dialogue.Shape]string{
	dialoguetest.Chat: "messages", dialoguetest.Completions: "prompt", dialoguetest.Responses: "input",
	dialoguetest.Messages: "messages", dialoguetest.Gemini: "contents",
}

func TestEachVendorsErrorsAreThoseThatTheClientsSDKKnows(t *testing.T) {
	for i, e := range vendorErrors {
		asks := clients(e.shape)
		asks[dialoguetest.Completions] = completionsAskStream
		for n, shape := range slices.Sorted(maps.Keys(asks)) {
			if testing.Short() && (i+n)%4 != 0 {
				continue // every fourth client of each error, and all of them in full
			}
			ask := asks[shape]
			t.Run(e.vendor+" to "+string(shape), func(t *testing.T) {
				play(t, func(t *testing.T, s *stage) { checkVendorError(t, s, &e, shape, ask) })
			})
		}
	}
}

func checkVendorError(t *testing.T, s *stage, e *vendorError, shape dialogue.Shape, ask string) {
	script := document(e.status, e.body)
	for name, value := range e.headers {
		script = withHeader(script, name, value)
	}
	s.upstream("a", e.shape, script)
	got := s.ask(s.request(shape, ask))
	if got.err == nil {
		t.Fatalf("no error: %s", got.text)
	}
	want := e.want
	if e.status == 529 && shape == dialoguetest.Messages {
		want = 529
	}
	code, _ := got.err.Code.(string)
	if got.err.Status != want || code != e.code || got.err.NoRetry != e.noRetry || got.err.RetryAfter != e.wait {
		t.Errorf("got %d %s, wait %s, no retry %v: %s", got.err.Status, code, got.err.RetryAfter, got.err.NoRetry,
			got.err.Message)
	}
	if n := s.fakes["a"].count(); n != max(e.calls, 1) {
		t.Errorf("%d calls", n)
	}
	if e.code != "context_length_exceeded" {
		return
	}
	if got.err.Param != longPromptFields[shape] {
		t.Errorf("the error is about %q, want %q", got.err.Param, longPromptFields[shape])
	}
	message := got.err.Message
	if !strings.Contains(message, longPromptWords[shape]) &&
		!(e.vendor == "vllm" && strings.Contains(message, "exceed context limit: 9000 + 1000")) {
		t.Errorf("%q has none of the words that its clients look for", message)
	}
	for size := range strings.FieldsSeq(e.sizes) {
		if !strings.Contains(message, size) {
			t.Errorf("%q does not say %s", message, size)
		}
	}
}

func TestAnErrorInAStreamHasTheCodeThatAgentsActUpon(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"a long prompt": {says(openaiSays, "invalid_request_error", "context_length_exceeded", "too long"),
			[]string{`"code":"context_length_exceeded"`}},
		"overload": {says(openaiSays, "overloaded_error", "", "busy"), []string{`"code":"server_is_overloaded"`}},
		"a rate limit": {says(openaiSays, "rate_limit_error", "rate_limit_exceeded", "Retry after 7 seconds."),
			[]string{`"code":"rate_limit_exceeded"`, "try again in 7s"}},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("Hel")+"data: "+test.body+"\n\n"))
			got := s.ask(s.request(dialoguetest.Responses, responsesAskStream))
			for _, want := range test.want {
				if !strings.Contains(got.text, want) || !strings.Contains(got.text, "response.failed") {
					t.Errorf("%s: no %s in %s", name, want, got.text)
				}
			}
		})
	}
}

func TestACreditThatIsUsedUpIsTheNextKeysTurn(t *testing.T) {
	for vendor, refusal := range map[string]script{
		"anthropic": document(400, says(anthropicSays, "invalid_request_error", "", "Your credit balance is too low.")),
		"openai":    document(429, says(openaiSays, "insufficient_quota", "insufficient_quota", "Quota exceeded.")),
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Messages, refusal)
			s.upstream("b", dialoguetest.Chat, goodChat())
			got := s.ask(s.request(dialoguetest.Messages, messagesAskStream))
			if got.Err != nil || !strings.Contains(got.text, "Hello") || s.fakes["a"].count() != 1 {
				t.Errorf("%s: got %v after %d calls: %s", vendor, got.Err, s.fakes["a"].count(), got.text)
			}
		})
	}
}

// structuredAsk is a request for an answer in a schema.
const structuredAsk = `{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema",
	"json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"string"}}}}}}`

func TestARefusedSchemaIsLeftOutWhateverTheWords(t *testing.T) {
	for name, refusal := range map[string]script{
		"a 400 in other words": document(400, `{"error":{"message":"unhandled keyword","type":"x"}}`),
		"a 422":                document(422, `{"detail":[{"loc":["body"],"msg":"extra fields"}]}`),
		"a 500 of the grammar": document(500, `{"error":{"message":"failed to parse grammar","type":"server_error"}}`),
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, refusal, document(200, chatWhole))
			got := s.ask(s.request(dialoguetest.Chat, structuredAsk))
			calls := s.fakes["a"].calls
			if got.Err != nil || len(calls) != 2 || strings.Contains(calls[1].body, "json_schema") ||
				got.meta.Degraded == "" {
				t.Errorf("%s: got %v after %d calls, degraded %q", name, got.Err, len(calls), got.meta.Degraded)
			}
		})
	}
}

func TestARefusalThatIsNotAboutTheSchemaIsNotRepeated(t *testing.T) {
	for name, test := range map[string]struct{ ask, refusal string }{
		"no schema":     {chatAsk, `{"error":{"message":"unhandled keyword"}}`},
		"a long prompt": {structuredAsk, `{"error":{"message":"too long","code":"context_length_exceeded"}}`},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Chat, document(400, test.refusal))
			if got := s.ask(s.request(dialoguetest.Chat, test.ask)); got.err == nil || s.fakes["a"].count() != 1 {
				t.Errorf("%s: %v after %d calls", name, got.err, s.fakes["a"].count())
			}
		})
	}
}

func TestARequestThatNeverFitsDelaysNoOther(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		tooLarge := says(openaiSays, "tokens", "rate_limit_exceeded", "Request too large.")
		s.upstream("a", dialoguetest.Chat, document(429, tooLarge), document(200, chatWhole))
		first := s.ask(s.request(dialoguetest.Chat, chatAsk))
		if first.err == nil || !first.err.NoRetry || s.fakes["a"].count() != 1 {
			t.Errorf("got %v after %d calls", first.err, s.fakes["a"].count())
		}
		if next := s.ask(s.request(dialoguetest.Chat, chatAsk)); next.Err != nil || next.took > 0 {
			t.Errorf("the next request: %v after %s", next.Err, next.took)
		}
	})
}
