package text_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Pieces of replies with a text and a picture.
const (
	geminiPicture = `{"candidates":[{"content":{"role":"model","parts":[{"text":"here"},` +
		`{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]},"finishReason":"STOP"}]}`
	chatImages = `"images":[{"index":0,"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]`
	chatSays   = `{"role":"assistant","content":"here",` + chatImages + `}`
	// The picture of a responses upstream is the item of its image tool.
	responsesOutput = `[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[` +
		`{"type":"output_text","text":"here","annotations":[]}]},` + responsesImage + `]`
	responsesImage = `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGVsbG8="}`
	chatHead       = `{"id":"c1","created":1,"model":"m","object":"chat.completion`
)

// pictureReplies are whole replies with a text and a picture, and the same as events, by shape.
var pictureReplies = map[dialogue.Shape][2]string{
	dialoguetest.Gemini: {geminiPicture, "data: " + geminiPicture + "\n\n"},
	dialoguetest.Chat: {
		chatHead + `","choices":[{"index":0,"message":` + chatSays + `,"finish_reason":"stop"}]}`,
		"data: " + chatHead + `.chunk","choices":[{"index":0,"delta":` + chatSays + `,"finish_reason":null}]}` +
			"\n\n" + chatStop + chatDone,
	},
	dialoguetest.Responses: {
		`{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":` +
			responsesOutput + `,"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
		`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response",` +
			`"created_at":1,"status":"in_progress","model":"m","output":[]}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","sequence_number":1,"output_index":0,"content_index":0,` +
			`"item_id":"msg_1","delta":"here"}` + "\n\n" +
			`data: {"type":"response.output_item.done","sequence_number":2,"output_index":1,"item":` +
			responsesImage + "}\n\n" +
			`data: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response",` +
			`"created_at":1,"status":"completed","model":"m","output":` + responsesOutput +
			`,"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}` + "\n\n",
	},
}

// pictureMembers holds, for each shape, the JSON that a client finds a picture in.
var pictureMembers = map[dialogue.Shape]string{
	dialoguetest.Chat:      chatImages,
	dialoguetest.Responses: `"type":"image_generation_call"`,
	dialoguetest.Gemini:    `"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}`,
	dialoguetest.Messages:  "",
}

func TestAPictureBesideTheTextReachesTheClientOrIsALoss(t *testing.T) {
	for upstream, replies := range pictureReplies {
		for client, ask := range clients(upstream) {
			for _, streamed := range []bool{true, false} {
				if client == upstream || client == dialoguetest.Gemini && !streamed {
					continue
				}
				play(t, func(t *testing.T, s *stage) {
					reply := stream(replies[1])
					if !streamed {
						ask, reply = strings.Replace(ask, `"stream":true,`, "", 1), document(200, replies[0])
					}
					s.upstream("a", upstream, reply)
					got := s.ask(s.request(client, ask))
					text := strings.ReplaceAll(got.text, `": `, `":`)
					if got.Err != nil || !strings.Contains(text, "here") ||
						!strings.Contains(text, pictureMembers[client]) {
						t.Errorf("%s from %s, streamed %v: %v %s", client, upstream, streamed, got.Err, got.text)
					}
					if lost := strings.Contains(got.Losses, "reply:image"); lost != (client == dialoguetest.Messages) {
						t.Errorf("%s from %s, streamed %v: losses %q", client, upstream, streamed, got.Losses)
					}
				})
			}
		}
	}
}

func TestWhatAProvidersOwnToolDidIsALossForOtherShapes(t *testing.T) {
	replies := map[dialogue.Shape]string{
		dialoguetest.Gemini: `{"candidates":[{"content":{"role":"model","parts":[` +
			`{"executableCode":{"language":"PYTHON","code":"print(1)"}},{"text":"here"}]},"finishReason":"STOP"}]}`,
		dialoguetest.Messages: `{"id":"m","type":"message","role":"assistant","model":"m","content":[` +
			`{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":"here"}],` +
			`"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
	}
	for upstream, reply := range replies {
		for client, body := range map[dialogue.Shape]string{
			dialoguetest.Chat:     `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
			dialoguetest.Messages: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		} {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", upstream, document(200, reply))
				got := s.ask(s.request(client, body))
				lost := strings.Contains(got.Losses, "reply:server_tool")
				if got.Err != nil || lost != (client != upstream) || !strings.Contains(got.text, "here") {
					t.Errorf("%s from %s: losses %q, %v: %s", client, upstream, got.Losses, got.Err, got.text)
				}
			})
		}
	}
}

func TestAPictureOfAnEarlierReplyGoesBackToModelsThatTakeIt(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"draw"},` + chatSays +
		`,{"role":"user","content":"again"}]}`
	for upstream, want := range map[dialogue.Shape]bool{
		dialoguetest.Gemini: true, dialoguetest.Messages: false, dialoguetest.Responses: false,
	} {
		sent, got := sentTo(t, upstream, dialoguetest.Chat, body)
		has, lost := strings.Contains(sent.Raw, "aGVsbG8="), strings.Contains(got.Losses, "media:assistant")
		if has != want || lost == want {
			t.Errorf("%s: losses %q, sent %s", upstream, got.Losses, sent.Raw)
		}
	}
}
