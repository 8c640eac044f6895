package text_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Pieces of the responses shape.
func responsesText(pieces ...string) string {
	const place = `"item_id":"msg_1","output_index":0,"content_index":0`
	var out strings.Builder
	out.WriteString(`data: {"type":"response.created","response":{"id":"resp_1","object":"response",` +
		`"status":"in_progress",` +
		`"model":"m","output":[]}}` + "\n\n" +
		`data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message",` +
		`"role":"assistant","content":[]}}` + "\n\n" +
		`data: {"type":"response.content_part.added",` + place + `,"part":{"type":"output_text","text":""}}` + "\n\n")
	for _, p := range pieces {
		out.WriteString(fmt.Sprintf(`data: {"type":"response.output_text.delta",`+place+`,"delta":%q}`, p) + "\n\n")
	}
	return out.String()
}

func responsesWhole(text string) string {
	return fmt.Sprintf(
		`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"id":"msg_1","type":"message",
		"role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}],
		"usage":{"input_tokens":3,"output_tokens":9,"total_tokens":12}}`,
		text,
	)
}

// stopAsks are requests with a stop sequence in each shape that has them, and the reason that its clients read.
var stopAsks = []struct {
	shape        dialogue.Shape
	body, reason string
}{
	{
		dialoguetest.Chat,
		`{"model":"m","stop":["never","END"],"messages":[{"role":"user","content":"hi"}]}`,
		`"finish_reason":"stop"`,
	},
	{dialoguetest.Completions, `{"model":"m","stop":"END","prompt":"hi"}`, `"finish_reason":"stop"`},
	{
		dialoguetest.Messages,
		`{"model":"m","stop_sequences":["END"],"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`,
		`"stop_reason":"stop_sequence","stop_sequence":"END"`,
	},
	{
		dialoguetest.Gemini,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"stopSequences":["END"]}}`,
		`"finishReason":"STOP"`,
	},
}

func TestAStopSequenceEndsTheReplyWhereTheUpstreamHasNone(t *testing.T) {
	for _, ask := range stopAsks {
		t.Run(string(ask.shape), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				// The sequence arrives in pieces, and the call is stopped: the stream would go on for ever.
				s.upstream("a", dialoguetest.Responses,
					stream(responsesText("a text E", "N", "D and", " the rest"), stall))
				body := ask.body
				if ask.shape != dialoguetest.Gemini {
					body = strings.Replace(body, `"model":"m",`, `"model":"m","stream":true,`, 1)
				}
				got := s.ask(s.request(ask.shape, body))
				if got.Err != nil || got.took > 0 || !strings.Contains(got.text, ask.reason) {
					t.Errorf("got %v after %s: %s", got.Err, got.took, got.text)
				}
				if strings.Contains(got.text, "the rest") || strings.Contains(got.text, "text E") ||
					!strings.Contains(got.text, "a text ") {
					t.Errorf("the text does not end before the sequence: %s", got.text)
				}
				if got.Reason != dialogue.ReasonStopSequence || got.Usage.OutputTotal <= 0 || !got.Usage.Estimated ||
					got.meta.Losses != "" {
					t.Errorf("got %+v", got.Outcome)
				}
			})
		})
	}
}

func TestAWholeReplyEndsAtAStopSequenceWithItsUsage(t *testing.T) {
	for _, ask := range stopAsks {
		t.Run(string(ask.shape), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Responses, document(200, responsesWhole("a text END and the rest")))
				r := s.request(ask.shape, ask.body)
				if ask.shape == dialoguetest.Gemini {
					r.In.Stream, r.Head.Stream, r.Mode = false, false, 0
				}
				got := s.ask(r)
				if got.Err != nil || strings.Contains(got.text, "the rest") || !strings.Contains(got.text, "a text ") ||
					!strings.Contains(strings.ReplaceAll(got.text, `": `, `":`), ask.reason) {
					t.Errorf("got %v: %s", got.Err, got.text)
				}
				if got.Usage.OutputTotal != 9 || got.Usage.Estimated {
					t.Errorf("got %+v", got.Usage)
				}
			})
		})
	}
}

func TestTextThatOnlyLooksLikeAStopSequenceArrivesWhole(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		done := `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],` +
			`"usage":{"input_tokens":3,"output_tokens":9}}}` + "\n\n"
		s.upstream("a", dialoguetest.Responses, stream(responsesText("ENEN", "E", "N"), done))
		got := s.ask(
			s.request(dialoguetest.Chat,
				strings.Replace(stopAsks[0].body, `"model":"m",`, `"model":"m","stream":true,`, 1)),
		)
		if text := contents(got.text); text != "ENENEN" || got.Reason != dialogue.ReasonStop || got.Err != nil {
			t.Errorf("got %q %v: %s", text, got.Err, got.text)
		}
	})
}

// inParts is a stream of the responses shape whose message has these texts as content parts, or whose output has them
// as messages.
func inParts(messages bool, texts ...string) string {
	out := `data: {"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress",` +
		`"model":"m","output":[]}}` + "\n\n"
	for i, text := range texts {
		item, content := 0, i
		if messages {
			item, content = i, 0
		}
		place := fmt.Sprintf(`"item_id":"msg_%d","output_index":%d,"content_index":%d`, item, item, content)
		if content == 0 {
			out += fmt.Sprintf(`data: {"type":"response.output_item.added","output_index":%d,"item":{"id":"msg_%d",`+
				`"type":"message","role":"assistant","content":[]}}`, item, item) + "\n\n"
		}
		out += `data: {"type":"response.content_part.added",` + place + `,"part":{"type":"output_text","text":""}}` +
			"\n\n" + fmt.Sprintf(`data: {"type":"response.output_text.delta",`+place+`,"delta":%q}`, text) + "\n\n" +
			fmt.Sprintf(`data: {"type":"response.content_part.done",`+place+`,"part":{"type":"output_text","text":%q}}`,
				text) + "\n\n"
	}
	return out
}

func TestAStopSequenceAcrossPartsEndsTheReply(t *testing.T) {
	for _, ask := range stopAsks {
		for _, messages := range []bool{false, true} {
			t.Run(fmt.Sprint(ask.shape, messages), func(t *testing.T) {
				play(t, func(t *testing.T, s *stage) {
					reply := inParts(messages, "a text E", "N", "D the rest")
					s.upstream("a", dialoguetest.Responses, stream(reply, stall))
					body := ask.body
					if ask.shape != dialoguetest.Gemini {
						body = strings.Replace(body, `"model":"m",`, `"model":"m","stream":true,`, 1)
					}
					got := s.ask(s.request(ask.shape, body))
					if got.Err != nil || !strings.Contains(got.text, ask.reason) ||
						!strings.Contains(got.text, "a text ") || strings.Contains(got.text, "text E") ||
						strings.Contains(got.text, `"N"`) ||
						strings.Contains(got.text, "the rest") {
						t.Errorf("got %v: %s", got.Err, got.text)
					}
				})
			})
		}
	}
}

// The text of a part that only ends like the beginning of a stop sequence arrives in that part, and text on both sides
// of a call is not one text.
func TestPartsThatOnlyLookLikeAStopSequenceArriveWhole(t *testing.T) {
	done := `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],` +
		`"usage":{"input_tokens":3,"output_tokens":9}}}` + "\n\n"
	call := `data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1",` +
		`"call_id":"call_1","name":"f","arguments":"{}"}}` + "\n\n"
	after := `data: {"type":"response.output_text.delta","item_id":"msg_2","output_index":2,"content_index":0,` +
		`"delta":"D"}` + "\n\n"
	for name, reply := range map[string]string{
		`EN|E|N|`:        inParts(false, "EN", "E", "N"),
		`E|x|`:           inParts(true, "E", "x"),
		`EN|tool_use|D|`: inParts(false, "EN") + call + after,
		`EN|`:            inParts(false, "EN"),
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", dialoguetest.Responses, stream(reply, done))
			got := s.ask(s.request(dialoguetest.Messages, stopAsks[2].body))
			var blocks strings.Builder
			gjson.Get(got.text, "content").ForEach(func(_, block gjson.Result) bool {
				blocks.WriteString(cmp.Or(block.Get("text").Str, block.Get("type").Str) + "|")
				return true
			})
			if got.Err != nil || blocks.String() != name {
				t.Errorf("got %v: %s, want %s", got.Err, blocks.String(), name)
			}
		})
	}
}

// Some servers do not say that a content part is done, so that the parser closes it with its message.
func TestTextOfPartsThatOverlapKeepsItsOrder(t *testing.T) {
	done := regexp.MustCompile(`data: [^\n]*content_part.done[^\n]*\n\n`)
	open := done.ReplaceAllString(inParts(false, "aE", "xE", "ND"), "")
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Responses, stream(open, stall))
		got := s.ask(s.request(dialoguetest.Chat,
			strings.Replace(stopAsks[0].body, `"model":"m",`, `"model":"m","stream":true,`, 1)))
		if text := contents(got.text); text != "aEx" || got.Err != nil {
			t.Errorf("got %q %v: %s", text, got.Err, got.text)
		}
	})
}

// contents joins the text of a chat stream.
func contents(stream string) string {
	var b strings.Builder
	for _, piece := range strings.Split(stream, `"content":"`)[1:] {
		b.WriteString(piece[:strings.IndexByte(piece, '"')])
	}
	return b.String()
}

func TestEachChoiceEndsAtItsOwnStopSequence(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Responses, document(200, responsesWhole("first END second")))
		got := s.ask(
			s.request(dialoguetest.Chat, strings.Replace(stopAsks[0].body, `"model":"m",`, `"model":"m","n":3,`, 1)),
		)
		if strings.Count(got.text, "first ") != 3 || strings.Contains(got.text, "second") ||
			got.Usage.OutputTotal != 27 {
			t.Errorf("got %v: %s", got.Err, got.text)
		}
	})
}

func TestStopSequencesBeyondTheUpstreamsLimitAreEnforced(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, stream(chatRole+chatText("one five two"), stall))
		got := s.ask(
			s.request(
				dialoguetest.Messages,
				`{"model":"m","stream":true,"max_tokens":9,"stop_sequences":["1","2","3","4","five"],
			"messages":[{"role":"user","content":"hi"}]}`,
			),
		)
		if got.Err != nil || strings.Contains(got.text, "five two") ||
			!strings.Contains(got.text, `"stop_sequence":"five"`) {
			t.Errorf("got %v: %s", got.Err, got.text)
		}
		if sent := s.fakes["a"].calls[0].body; !strings.Contains(sent, `"stop":["1","2","3","4"]`) {
			t.Errorf("sent %s", sent)
		}
	})
}

func TestALimitOfNoTokensDeliversNothingAndReportsUsage(t *testing.T) {
	asks := map[dialogue.Shape]string{
		dialoguetest.Messages:    `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"hi"}]}`,
		dialoguetest.Completions: `{"model":"m","max_tokens":0,"prompt":"hi"}`,
	}
	for shape, body := range asks {
		for up, whole := range map[dialogue.Shape]string{
			dialoguetest.Chat:      strings.Replace(chatWhole, "Hello", "SECRET", 1),
			dialoguetest.Responses: responsesWhole("SECRET"),
			dialoguetest.Messages:  messagesReply("SECRET"),
			dialoguetest.Gemini: `{"candidates":[{"content":{"role":"model","parts":[{"text":"SECRET"}]},
				"finishReason":"MAX_TOKENS"}],
				"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4}}`,
		} {
			if up == shape {
				continue // the request passes through, and the upstream knows what 0 means
			}
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", up, document(200, whole))
				got := s.ask(s.request(shape, body))
				if got.Err != nil || strings.Contains(got.text, "SECRET") || got.Usage.InputTotal != 3 ||
					got.Reason != dialogue.ReasonLength {
					t.Errorf("%s from %s: got %v %+v: %s", shape, up, got.Err, got.Usage, got.text)
				}
			})
		}
	}
}
