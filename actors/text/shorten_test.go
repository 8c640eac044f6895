package text_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// A longHistory has three exchanges, each with a call and its result, and a developer message between them.
func longHistory(truncation string) string {
	var items []string
	for i := 1; i <= 3; i++ {
		items = append(items,
			fmt.Sprintf(`{"role":"user","content":"question %d %s"}`, i, strings.Repeat("long ", 200)),
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"f","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"result %d"}`, i, i),
			fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, i))
		if i == 1 {
			items = append(items, `{"role":"developer","content":"a rule"}`)
		}
	}
	items = append(items, `{"role":"user","content":"the last question"}`)
	return `{"model":"m","store":false,"truncation":"` + truncation + `","instructions":"be kind","input":[` +
		strings.Join(items, ",") + `],"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`
}

// tooLong are refusals of a prompt of 900 tokens that must have 600, and good replies, by shape.
var tooLong = map[dialogue.Shape][2]string{
	dialoguetest.Chat: {says(
		openaiSays,
		"invalid_request_error",
		"context_length_exceeded",
		"This model's maximum context length is 600 tokens. However, your messages resulted in 900 tokens.",
	), chatWhole},
	dialoguetest.Messages: {
		says(anthropicSays, "invalid_request_error", "", "prompt is too long: 900 tokens > 600 maximum"),
		messagesReply("Hello"),
	},
	dialoguetest.Gemini: {says(googleSays, "INVALID_ARGUMENT", "400",
		"The input token count (900) exceeds the maximum number of tokens allowed (600)."),
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP"}]}`},
	dialoguetest.Responses: {says(openaiSays, "invalid_request_error", "context_length_exceeded", "too long"),
		responsesWhole("Hello")},
}

func TestTruncationLeavesOutTheOldestTurnsWithTheirResults(t *testing.T) {
	for shape, said := range tooLong {
		t.Run(string(shape), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", shape, document(400, said[0]), document(200, said[1]))
				got := s.ask(s.request(dialoguetest.Responses, longHistory("auto")))
				if got.Err != nil || !strings.Contains(got.text, "Hello") ||
					!strings.Contains(got.text, `"truncation":"auto"`) ||
					!strings.Contains(got.meta.Losses, "input:truncated") {
					t.Fatalf("got %v, losses %s: %s", got.Err, got.meta.Losses, got.text)
				}
				sent := s.fakes["a"].calls[1].body
				for _, gone := range []string{"question 1", "result 1", "answer 1"} {
					if strings.Contains(sent, gone) {
						t.Errorf("%s is still sent: %s", gone, sent)
					}
				}
				for _, kept := range []string{"be kind", "a rule", "question 3", "result 3", "the last question"} {
					if !strings.Contains(sent, kept) {
						t.Errorf("%s is not sent: %s", kept, sent)
					}
				}
			})
		})
	}
}

func TestALoopOfToolsIsTruncatedBehindItsQuestion(t *testing.T) {
	var items []string
	for i := range 6 {
		items = append(
			items,
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"f","arguments":"{\"n\":%d}"}`, i, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"result %d %s"}`, i, i,
				strings.Repeat("long ", 100)),
		)
	}
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(400, tooLong[dialoguetest.Chat][0]), document(200, chatWhole))
		got := s.ask(s.request(dialoguetest.Responses, `{"model":"m","store":false,"truncation":"auto","input":[
			{"role":"user","content":"the question"},`+strings.Join(items, ",")+`]}`))
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		sent := s.fakes["a"].calls[1].body
		if !strings.Contains(sent, "the question") || strings.Contains(sent, "result 0") ||
			!strings.Contains(sent, "result 5") ||
			strings.Count(sent, `"tool_calls"`) != strings.Count(sent, `"tool_call_id"`) {
			t.Errorf("sent %s", sent)
		}
	})
}

// Some upstreams count the calls of each answer, so that every turn has the same ids.
func TestTruncationKeepsResultsWhoseIDsAreUsedAgain(t *testing.T) {
	history := longHistory("auto")
	for i := range 3 {
		history = strings.ReplaceAll(history, fmt.Sprintf(`"call_%d"`, i+1), `"call_0"`)
	}
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(400, tooLong[dialoguetest.Chat][0]), document(200, chatWhole))
		if got := s.ask(s.request(dialoguetest.Responses, history)); got.Err != nil {
			t.Fatal(got.Err)
		}
		sent := s.fakes["a"].calls[1].body
		if strings.Contains(sent, "result 1") || !strings.Contains(sent, "result 3") ||
			strings.Contains(sent, "(no result)") {
			t.Errorf("sent %s", sent)
		}
	})
}

func TestAPromptThatCannotBeShortenedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		ask   string
		calls int
	}{
		"truncation is disabled":      {longHistory("disabled"), 1},
		"there is nothing to leave":   {`{"model":"m","store":false,"truncation":"auto","input":"hi"}`, 1},
		"no conversation fits at all": {longHistory("auto"), 4},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Responses, document(400, tooLong[dialoguetest.Responses][0]))
			got := s.ask(s.request(dialoguetest.Responses, test.ask))
			if got.err == nil || got.err.Code != "context_length_exceeded" || s.fakes["a"].count() > test.calls {
				t.Errorf("%s: got %v after %d calls", name, got.err, s.fakes["a"].count())
			}
		})
	}
}
