package text_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

// fallback makes the target that was added last one for these conditions.
func (s *stage) fallback(conditions ...string) {
	s.targets[len(s.targets)-1].On = catalog.ParseConditions(conditions)
}

// room gives the target that was added last a context window.
func (s *stage) room(tokens int64) {
	s.targets[len(s.targets)-1].Capabilities = &catalog.CapabilityOverrides{ContextWindow: tokens}
}

const chatFiltered = `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}],` +
	`"usage":{"prompt_tokens":3,"completion_tokens":0,"total_tokens":3}}`

// filteredStream ends with the content filter, behind a piece of answer if there is one.
func filteredStream(answer string) script {
	pieces := chatRole
	if answer != "" {
		pieces += chatText(answer)
	}
	return stream(pieces + `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":` +
		`[{"index":0,"delta":{},"finish_reason":"content_filter"}]}` + "\n\n" + chatDone)
}

const messagesFiltered = `{"id":"m1","type":"message","role":"assistant","model":"m","content":[],` +
	`"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":0}}`

// A request that the content filter of a provider refused, or whose reply it withheld as a whole, goes on to the entry
// for that, whichever way the provider says so. The entry between them is for other failures.
func TestAFilteredRequestGoesToTheFallbackForIt(t *testing.T) {
	refused := document(400, says(openaiSays, "invalid_request_error", "content_policy_violation", "no"))
	for name, test := range map[string]struct {
		shape dialogue.Shape // of the provider
		says  script
		asks  string
	}{
		"refused":              {dialoguetest.Chat, refused, chatAsk},
		"refused, stream":      {dialoguetest.Chat, refused, chatAskStream},
		"withheld":             {dialoguetest.Chat, document(200, chatFiltered), chatAsk},
		"withheld, stream":     {dialoguetest.Chat, filteredStream(""), chatAskStream},
		"withheld, translated": {dialoguetest.Messages, document(200, messagesFiltered), chatAsk},
		"withheld, blocked by another": {dialoguetest.Gemini,
			document(200, `{"promptFeedback":{"blockReason":"SAFETY"}}`), chatAsk},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", test.shape, test.says)
				s.upstream("b", dialoguetest.Chat, goodChat())
				s.upstream("c", dialoguetest.Chat, goodChat())
				s.fallback("content_filter")
				if strings.Contains(test.asks, `"stream":true`) {
					s.fakes["c"].scripts = []script{goodChat()}
				} else {
					s.fakes["c"].scripts = []script{document(200, chatWhole)}
				}
				got := s.ask(s.request(dialoguetest.Chat, test.asks))
				if got.Err != nil || !strings.Contains(got.text, "Hello") || got.meta.Provider != "c" {
					t.Errorf("got %v from %s: %s", got.Err, got.meta.Provider, got.text)
				}
				if a, b := s.fakes["a"].count(), s.fakes["b"].count(); a != 1 || b != 0 {
					t.Errorf("%d calls to the first target, %d to the second", a, b)
				}
			})
		})
	}
}

// Without such an entry the client gets the reply as it is, and so it does once it has a piece of the answer.
func TestAFilteredReplyWithoutAFallbackIsDelivered(t *testing.T) {
	for name, test := range map[string]struct {
		says       script
		conditions []string
		want       string
	}{
		"no entry for it": {filteredStream(""), []string{"overloaded"}, "content_filter"},
		"an answer came":  {filteredStream("Hel"), []string{"content_filter"}, "Hel"},
		"no entry, whole": {document(200, chatFiltered), nil, "content_filter"},
		"answer came whole": {document(200, strings.Replace(chatFiltered, "null}", `"Hel"}`, 1)),
			[]string{"content_filter"}, "Hel"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, test.says)
				s.upstream("b", dialoguetest.Chat, goodChat())
				s.fallback(test.conditions...)
				asks := chatAskStream
				if strings.Contains(name, "whole") {
					asks = chatAsk
				}
				got := s.ask(s.request(dialoguetest.Chat, asks))
				if got.Err != nil || !strings.Contains(got.text, test.want) || s.fakes["b"].count() != 0 {
					t.Errorf("got %v, %d calls of the fallback: %s", got.Err, s.fakes["b"].count(), got.text)
				}
			})
		})
	}
}

// A failure that an entry names leads there, and any other one does not. An entry without conditions is tried as ever.
func TestAFallbackIsTriedForItsConditionsOnly(t *testing.T) {
	busy := document(503, chatRefuse)
	for name, test := range map[string]struct {
		conditions []string
		called     int
	}{
		"named":         {[]string{"timeout", "overloaded"}, 1},
		"not named":     {[]string{"rate_limited", "context_length_exceeded"}, 0},
		"no conditions": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, busy)
				s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
				s.fallback(test.conditions...)
				got := s.ask(s.request(dialoguetest.Chat, chatAsk))
				if s.fakes["b"].count() != test.called || (got.Err == nil) != (test.called == 1) {
					t.Errorf("%d calls of the fallback, want %d: %v", s.fakes["b"].count(), test.called, got.Err)
				}
			})
		})
	}
}

// A prompt that a provider refuses as too long goes to the entry for that with all its turns, before any is left out.
func TestALongPromptPrefersALargerWindowToBeingShortened(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(400, tooLong[dialoguetest.Chat][0]))
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		s.fallback("context_length_exceeded")
		got := s.ask(s.request(dialoguetest.Responses, longHistory("auto")))
		if got.Err != nil || got.meta.Provider != "b" || strings.Contains(got.meta.Losses, "truncated") {
			t.Fatalf("got %v from %s, losses %s", got.Err, got.meta.Provider, got.meta.Losses)
		}
		if !strings.Contains(s.fakes["b"].calls[0].body, "question 1") {
			t.Error("the first turn was left out")
		}
	})
}

func TestATargetWhoseWindowIsTooSmallIsNotCalled(t *testing.T) {
	long := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 3000))
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(200, chatWhole))
		s.room(1000)
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		s.room(8000)
		got := s.ask(s.request(dialoguetest.Chat, long))
		if got.Err != nil || got.meta.Provider != "b" || got.meta.Attempts != 1 || s.fakes["a"].count() != 0 {
			t.Errorf("got %v from %s after %d attempts, %d calls of the small one", got.Err, got.meta.Provider,
				got.meta.Attempts, s.fakes["a"].count())
		}
	})
}

// Every shape's clients read the error by which they know that a conversation must be shortened, with the largest
// window. No provider is asked.
func TestAPromptThatFitsNoTargetIsRefusedWithTheLargestWindow(t *testing.T) {
	words := strings.Repeat("word ", 3000)
	for shape, test := range map[dialogue.Shape]struct{ body, want string }{
		dialoguetest.Chat: {fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, words),
			"maximum context length is 2000"},
		dialoguetest.Messages: {fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q}]}`,
			words), "prompt is too long"},
		dialoguetest.Responses: {fmt.Sprintf(`{"model":"m","store":false,"input":%q}`, words), "2000"},
		dialoguetest.Gemini:    {fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%q}]}]}`, words), "2000"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, document(200, chatWhole))
				s.room(1000)
				s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
				s.room(2000)
				got := s.ask(s.request(shape, test.body))
				if got.err == nil || got.err.Status != 400 || got.err.Code != "context_length_exceeded" ||
					!strings.Contains(got.err.Message, test.want) || !strings.Contains(got.err.Message, "2000") {
					t.Errorf("got %v", got.err)
				}
				if n := s.fakes["a"].count() + s.fakes["b"].count(); n != 0 {
					t.Errorf("%d calls were made", n)
				}
			})
		})
	}
}

func TestTargetsThatAreLeftOutAreOnTheSpan(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(200, chatWhole))
		s.room(2)
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		spans := tracetest.NewSpanRecorder()
		tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
		ctx, span := tracer.Start(t.Context(), "request")
		s.read(s.service.Begin(ctx, s.request(dialoguetest.Chat, chatAsk)))
		span.End()
		ended := spans.Ended() // the request's span is the last one
		events := ended[len(ended)-1].Events()
		if len(events) != 1 || events[0].Name != "stagedoor.target_skipped" {
			t.Fatalf("got %v", events)
		}
		for _, want := range []string{"a", "m", "context_length_exceeded"} {
			if !slices.ContainsFunc(events[0].Attributes, func(kv attribute.KeyValue) bool {
				return kv.Value.AsString() == want
			}) {
				t.Errorf("no %s in %v", want, events[0].Attributes)
			}
		}
	})
}

// What a vendor made of a conversation can be read by that vendor only, so it goes there first.
func TestACompactedConversationGoesBackToItsMaker(t *testing.T) {
	const reply = `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message",` +
		`"role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`
	const body = `{"model":"m","input":[{"type":"compaction","encrypted_content":%q},{"role":"user","content":"on"}]}`
	play(t, func(t *testing.T, s *stage) {
		s.env.Signatures = dialoguetest.SignatureMap{}
		s.upstream("a", dialoguetest.Responses, document(200, reply))
		s.upstream("b", dialoguetest.Responses, document(200, reply))
		s.targets[1].On = catalog.ParseConditions([]string{"overloaded"})
		s.env.RememberProof("opaque", "b", s.targets[1].Model)
		for content, want := range map[string]string{"opaque": "b", "of another": "a"} {
			got := s.ask(s.request(dialoguetest.Responses, fmt.Sprintf(body, content)))
			if got.Err != nil || got.meta.Provider != want {
				t.Errorf("%s: got %v from %s, want %s", content, got.Err, got.meta.Provider, want)
			}
		}
	})
}

// makers is a dialogue.Makers without a store.
type makers map[string]string

func (m makers) Remember(_ context.Context, owner, made, maker string) { m[owner+made] = maker }
func (m makers) MakerOf(owner, made string) string                     { return m[owner+made] }

// The signatures are forgotten when the gateway restarts. The makers of compacted conversations are not.
func TestMakersOfCompactedConversationsAreStored(t *testing.T) {
	const item = `{"id":"cmp_1","type":"compaction","encrypted_content":"opaque"}`
	const whole = `{"id":"r","object":"response","status":"completed","model":"m","output":[` + item + `]}`
	event := func(kind, rest string) string { return `data: {"type":"response.` + kind + `",` + rest + "}\n\n" }
	for name, test := range map[string]struct {
		reply script
		ask   string
		do    func(*text.Request)
	}{
		"whole": {document(200, whole), `,{"type":"compaction_trigger"}`, func(*text.Request) {}},
		"stream": {stream(event("created", `"response":{"id":"r","status":"in_progress"}`) +
			event("output_item.done", `"item":`+item) + event("completed", `"response":{"id":"r","status":"completed",`+
			`"output":[]}`)), `,{"type":"compaction_trigger"}`, func(q *text.Request) {
			q.Mode, q.Head.Stream = shapes.Stream, true
		}},
		"translated": {document(200, whole), "", func(q *text.Request) { q.Translate = true }},
	} {
		play(t, func(t *testing.T, s *stage) {
			kept := makers{}
			s.env.Makers, s.env.Signatures = kept, dialoguetest.NoSignatures{}
			s.upstream("a", dialoguetest.Responses, test.reply)
			q := s.request(dialoguetest.Responses, `{"model":"m","input":[{"role":"user","content":"x"}`+test.ask+`]}`)
			test.do(q)
			if got := s.ask(q); got.Err != nil || kept["key:keyopaque"] != "a/m" {
				t.Errorf("%s: got %v, kept %v", name, got.Err, kept)
			}
			s.upstream("b", dialoguetest.Responses, test.reply)
			kept["key:keyopaque"] = "b/m"
			got := s.ask(s.request(dialoguetest.Responses, `{"model":"m","input":[`+item+`]}`))
			if got.meta.Provider != "b" {
				t.Errorf("%s: it went to %s", name, got.meta.Provider)
			}
		})
	}
}

// Each maker that is stored costs a commit, and a request goes to the maker of its last item.
func TestOnlyTheLastCompactedConversationOfAReplyIsStored(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		kept := makers{}
		s.env.Makers, s.env.Signatures = kept, dialoguetest.NoSignatures{}
		items := strings.Repeat(`{"type":"compaction","encrypted_content":"old"},`, 3) +
			`{"type":"compaction","encrypted_content":"last"}`
		s.upstream("a", dialoguetest.Responses, document(200, `{"id":"r","object":"response","status":"completed",`+
			`"model":"m","output":[`+items+`]}`))
		got := s.ask(s.request(dialoguetest.Responses, `{"model":"m","input":[{"role":"user","content":"x"},`+
			`{"type":"compaction_trigger"}]}`))
		if got.Err != nil || len(kept) != 1 || kept["key:keylast"] != "a/m" {
			t.Errorf("got %v, kept %v", got.Err, kept)
		}
	})
}

func TestToolsGoToATargetThatCallsThem(t *testing.T) {
	const tools = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",` +
		`"function":{"name":"f"}}]%s}`
	yes := true
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(200, chatWhole))
		s.targets[0].Capabilities = &catalog.CapabilityOverrides{NoTools: &yes}
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		for body, want := range map[string]string{fmt.Sprintf(tools, ""): "b", chatAsk: "a",
			fmt.Sprintf(tools, `,"tool_choice":"none"`): "a"} {
			if got := s.ask(s.request(dialoguetest.Chat, body)); got.Err != nil || got.meta.Provider != want {
				t.Errorf("%s: got %v from %s, want %s", body, got.Err, got.meta.Provider, want)
			}
		}
	})
}

func TestPicturesGoToATargetThatReadsThem(t *testing.T) {
	const picture = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"https://x.test/p.png"}}]}]}`
	no := false
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(200, chatWhole))
		s.targets[0].Capabilities = &catalog.CapabilityOverrides{ImagesIn: &no}
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		for body, want := range map[string]string{picture: "b", chatAsk: "a"} {
			if got := s.ask(s.request(dialoguetest.Chat, body)); got.Err != nil || got.meta.Provider != want {
				t.Errorf("got %v from %s, want %s", got.Err, got.meta.Provider, want)
			}
		}
	})
}
