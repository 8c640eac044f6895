package text_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// The calls of a fan-out are refused at the same time. Whichever failure is the first, the request is sent again.
func TestAFanOutWhoseReasoningIsRefusedIsSentAgainWithoutIt(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		refusal := document(400, says(anthropicSays, "invalid_request_error", "",
			"messages.1.content.0: Invalid `signature` in `thinking` block"))
		fourOf(s, 0, func(c *call) (*http.Response, error) {
			if strings.Contains(c.body, `"signature"`) {
				return refusal(c)
			}
			return document(200, messagesReply("x"))(c)
		})
		seal := s.env.Sealer.Seal(&dialogue.Thinking{Text: "why", Signature: "other", Origin: dialoguetest.Messages})
		got := s.ask(s.request(dialoguetest.Chat, fmt.Sprintf(`{"model":"m","n":4,"messages":[
			{"role":"user","content":"hi"},
			{"role":"assistant","content":null,
				"reasoning_details":[{"type":"reasoning.encrypted","data":%q,"format":"stagedoor-sd1"}],
				"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c","content":"r"}]}`, seal)))
		if !strings.Contains(s.fakes["a"].calls[0].body, `"signature":"other"`) {
			t.Fatalf("the signature was not sent: %s", s.fakes["a"].calls[0].body)
		}
		if got.Err != nil || gjson.Get(got.text, "choices.#").Int() != 4 {
			t.Errorf("got %v: %s", got.Err, got.text)
		}
	})
}

// A chat server may refuse the reasoning_details that another one gave out. Then it gets the request without them.
func TestReasoningDetailsThatAnUpstreamRefusesAreLeftOut(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, document(422, `{"detail":[{"type":"extra_forbidden",
			"loc":["body","messages",1,"assistant","reasoning_details"],"msg":"Extra inputs are not permitted"}]}`),
			document(200, chatWhole))
		got := s.ask(s.request(dialoguetest.Chat, `{"model":"m","messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted","data":"D"}]},
			{"role":"user","content":"on"}]}`))
		calls := s.fakes["a"].calls
		if got.Err != nil || len(calls) != 2 || !strings.Contains(calls[0].body, `"data":"D"`) ||
			strings.Contains(calls[1].body, "reasoning_details") {
			t.Errorf("got %v after %d calls: %+v", got.Err, len(calls), calls)
		}
	})
}

func TestTopKThatAnUpstreamDoesNotKnowIsLeftOut(t *testing.T) {
	const unknown = "Unknown parameter: 'top_k'."
	bodies := map[dialogue.Shape]string{
		dialoguetest.Chat:      `{"model":"m","messages":[{"role":"user","content":"hi"}],"top_k":3}`,
		dialoguetest.Responses: `{"model":"m","input":"hi","top_k":3,"store":false}`,
	}
	replies := map[dialogue.Shape]string{dialoguetest.Chat: chatWhole, dialoguetest.Responses: responsesWhole("hi")}
	for shape, body := range bodies {
		for message, left := range map[string]bool{unknown: true, "top_k: must be at most 2": false} {
			t.Run(string(shape)+" "+message, func(t *testing.T) {
				play(t, func(t *testing.T, s *stage) {
					s.upstream("a", shape, document(400, says(openaiSays, "invalid_request_error", "", message)),
						document(200, replies[shape]))
					got := s.ask(s.request(shape, body))
					calls := s.fakes["a"].calls
					if calls[0].body != body || (len(calls) == 2) != left || (got.Err == nil) != left {
						t.Fatalf("%d calls, the first with %s: %v", len(calls), calls[0].body, got.Err)
					}
					if left && (strings.Contains(calls[1].body, "top_k") || got.meta.Losses != "top_k") {
						t.Errorf("sent %s with the losses %q", calls[1].body, got.meta.Losses)
					}
				})
			})
		}
	}
}

// tooLongID is OpenAI's refusal of an id that another server gave to a call.
const tooLongID = `{"error":{"message":"Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string ` +
	`with maximum length 40, but got a string with length 53 instead.","type":"invalid_request_error",` +
	`"param":"messages[1].tool_calls[0].id","code":"string_above_max_length"}}`

func TestCallIDsThatAnUpstreamRefusesAreReplacedAndOthersAreUntouched(t *testing.T) {
	id := "call_" + strings.Repeat("x", 48)
	body := strings.ReplaceAll(`{"model":"m","messages":[{"role":"user","content":"hi"},
		{"role":"assistant","content":null,
		"tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"ID","content":"r"}]}`, "ID", id)
	for name, test := range map[string]struct {
		scripts []script
		calls   int
	}{
		"taken":         {[]script{document(200, chatWhole)}, 1},
		"refused":       {[]script{document(400, tooLongID), document(200, chatWhole)}, 2},
		"refused twice": {[]script{document(400, tooLongID)}, 2},
		"another fault": {[]script{document(400, `{"error":{"message":"tool_calls: too long"}}`)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, test.scripts...)
				got := s.ask(s.request(dialoguetest.Chat, body))
				calls := s.fakes["a"].calls
				if len(calls) != test.calls || calls[0].body != body {
					t.Fatalf("%d calls, the first with %s", len(calls), calls[0].body)
				}
				if test.calls == 1 {
					return
				}
				sent := gjson.Parse(calls[1].body)
				made := sent.Get("messages.1.tool_calls.0.id").Str
				if made == "" || len(made) > dialogue.MaxCallID || sent.Get("messages.2.tool_call_id").Str != made {
					t.Errorf("sent %s", sent.Raw)
				}
				if (got.Err == nil) != (name == "refused") {
					t.Errorf("got %v", got.Err)
				}
			})
		})
	}
}
