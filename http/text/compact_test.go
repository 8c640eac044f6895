package text_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// says has a whole reply of each vendor, with a text in the place of %s.
var says = map[dialogue.Shape]string{
	dialoguetest.Chat: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":90,"completion_tokens":7,"total_tokens":97}}`,
	dialoguetest.Messages: `{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text",` +
		`"text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":90,"output_tokens":7}}`,
	dialoguetest.Gemini: `{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"finishReason":"STOP",` +
		`"index":0}],"usageMetadata":{"promptTokenCount":90,"candidatesTokenCount":7,"totalTokenCount":97}}`,
	dialoguetest.Responses: `{"id":"resp_up","object":"response","created_at":1,"status":"completed","model":"m",` +
		`"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[` +
		`{"type":"output_text","text":%q,"annotations":[]}]}],` +
		`"usage":{"input_tokens":90,"output_tokens":7,"total_tokens":97}}`,
}

// longStory is the input of a conversation with a call.
const longStory = `{"role":"user","content":"first wish"},{"role":"assistant","content":"long answer"},
	{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
	{"type":"function_call_output","call_id":"c1","output":"result"}`

// A vendor without compaction is asked for a summary, which the client sends back sealed.
func TestAConversationIsCompactedOnEveryUpstream(t *testing.T) {
	for shape, doc := range says {
		u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if shape == dialoguetest.Responses && strings.Contains(r.URL.Path, "compact") {
				answerJSON(404, `{"error":{"message":"no such route"}}`)(w, r) // a server that only speaks the shape
				return
			}
			answerJSON(200, fmt.Sprintf(doc, "THE SUMMARY"))(w, r)
		})
		g := open(t, func(g *gateway) {
			g.provider(catalog.Provider{Name: "up", Shape: shape, BaseURL: u.URL}, catalog.Model{Pattern: "m"})
		})
		const tools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
		native := shape == dialoguetest.Responses
		for name, compacted := range map[string]func() []gjson.Result{
			"route": func() []gjson.Result {
				r := g.do("POST", "/v1/responses/compact", `{"model":"m",`+tools+`,"input":[`+longStory+`]}`)
				if r.status != 200 || r.get("object").Str != "response.compaction" ||
					r.get("usage.input_tokens").Int() != 90 || r.get("output.0.content.0.text").Str != "first wish" {
					t.Errorf("%s: %d %s", shape, r.status, r.body)
				}
				return r.get("output").Array()
			},
			"whole": func() []gjson.Result {
				r := g.do("POST", "/v1/responses", `{"model":"m",`+tools+`,"input":[`+longStory+
					`,{"type":"compaction_trigger"}]}`)
				return r.get("output").Array()
			},
			"stream": func() (items []gjson.Result) {
				r := g.do("POST", "/v1/responses", `{"model":"m",`+tools+`,"stream":true,"store":false,"input":[`+
					longStory+`,{"type":"compaction_trigger"}]}`)
				var last gjson.Result
				for _, ev := range r.events() {
					if last = ev; ev.Get("type").Str == "response.output_item.done" {
						items = append(items, ev.Get("item"))
					}
				}
				if last.Get("type").Str != "response.completed" || last.Get("response.output.#").Int() != 1 ||
					last.Get("response.usage.output_tokens").Int() != 7 {
					t.Errorf("%s: ended with %s", shape, last.Raw)
				}
				return items
			},
		} {
			if native && name != "route" {
				continue // an upstream of the shape gets the trigger
			}
			items := compacted()
			last := items[len(items)-1]
			if want := map[string]int{"route": 2}[name]; len(items) != max(want, 1) ||
				last.Get("type").Str != "compaction" || !strings.HasPrefix(last.Get("id").Str, "cmp_") ||
				strings.Contains(last.Raw, "SUMMARY") {
				t.Errorf("%s by %s: got %v", shape, name, items)
			}
			asked := string(u.all()[len(u.all())-1].body)
			for _, text := range []string{"first wish", "long answer", "result", "about to be replaced by a summary"} {
				if !strings.Contains(asked, text) {
					t.Errorf("%s by %s: %q is missing in %s", shape, name, text, asked)
				}
			}
			if strings.Contains(asked, "compaction") {
				t.Errorf("%s by %s: the upstream was sent %s", shape, name, asked)
			}
			var input []string
			for _, it := range items {
				input = append(input, it.Raw)
			}
			g.ok("POST", "/v1/responses", `{"model":"m","input":[`+strings.Join(input, ",")+
				`,{"role":"user","content":"go on"}]}`)
			sent := string(u.all()[len(u.all())-1].body)
			if !strings.Contains(sent, "THE SUMMARY") || !strings.Contains(sent, "go on") ||
				strings.Contains(sent, "encrypted_content\":\"sd1") || strings.Contains(sent, "long answer") {
				t.Errorf("%s by %s: the next turn sent %s", shape, name, sent)
			}
		}
	}
}

// A vendor that compacts by itself does so, and gets its own item back.
func TestAVendorThatCompactsIsAskedTo(t *testing.T) {
	const compacted = `{"id":"resp_c","object":"response.compaction","created_at":1,"output":[{"type":"message",` +
		`"id":"msg_1","role":"user","status":"completed","content":[{"type":"input_text","text":"first wish"}]},` +
		`{"id":"cmp_1","type":"compaction","encrypted_content":"opaque"}],` +
		`"usage":{"input_tokens":90,"output_tokens":7,"total_tokens":97}}`
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/responses/compact") {
			answerJSON(200, compacted)(w, r)
			return
		}
		answerJSON(200, `{"id":"resp_d","object":"response","status":"completed","output":[`+
			gjson.Get(compacted, "output.1").Raw+`]}`)(w, r)
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: u.URL},
			catalog.Model{Pattern: "m"})
	})
	body := `{"model":"m","input":[` + longStory + `],"anything":1}`
	if r := g.ok("POST", "/v1/responses/compact", body); string(r.body) != compacted {
		t.Errorf("got %s", r.body)
	}
	again := `{"model":"m","input":[` + gjson.Get(compacted, "output.1").Raw + `,{"type":"compaction_trigger"}]}`
	g.ok("POST", "/v1/responses", again)
	// The history of a stored response is put before the input, and the vendor still compacts it.
	id := g.ok("POST", "/v1/responses", `{"model":"sandbox","input":"stored wish"}`).get("id").Str
	g.ok("POST", "/v1/responses/compact", `{"model":"m","previous_response_id":"`+id+`"}`)
	calls := u.all()
	if string(calls[0].body) != body || string(calls[1].body) != again || calls[1].path != "/responses" ||
		calls[2].path != "/responses/compact" || !strings.Contains(string(calls[2].body), "stored wish") {
		for _, c := range calls {
			t.Errorf("sent %s %s", c.path, c.body)
		}
	}
	if r := g.do("GET", "/v1/responses/resp_c", ""); r.status != 404 {
		t.Errorf("the object can be read as a response: %s", r.body)
	}
}

// Servers of the shape refuse the item, fail at it, or go on with the conversation, which ends the turn of a client.
func TestAVendorThatDoesNotCompactIsAskedForASummary(t *testing.T) {
	whole := fmt.Sprintf(says[dialoguetest.Responses], "I GO ON")
	event := func(kind, rest string) string { return `data: {"type":"response.` + kind + `",` + rest + "}\n\n" }
	// The beginning is larger than what is held back of other streams.
	begun := event("created", `"response":{"id":"r","object":"response","status":"in_progress","output":[],`+
		`"instructions":"`+strings.Repeat("x", 100<<10)+`"}`)
	reasoning := event("reasoning_summary_text.delta", `"item_id":"rs","delta":"hm"`)
	stream := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, begun+reasoning+strings.Join(events, ""))
		}
	}
	message := event("output_item.added", `"item":{"type":"message","id":"m","role":"assistant","content":[]}`)
	for name, test := range map[string]struct {
		stream bool
		answer http.HandlerFunc
	}{
		"refuses": {false, answerJSON(400,
			`{"error":{"message":"Invalid value: 'compaction_trigger'.","param":"input[4]"}}`)},
		"fails":                 {false, answerJSON(501, `{"error":{"message":"not implemented"}}`)},
		"goes on":               {false, answerJSON(200, whole)},
		"goes on, not a stream": {true, answerJSON(200, whole)},
		"goes on in a stream": {true, stream(message, event("output_text.delta", `"item_id":"m","delta":"I GO ON"`),
			event("completed", `"response":`+whole))},
		"goes on at the end": {true, stream(event("completed", `"response":`+whole))},
		"fails in a stream": {true, stream(event("failed", `"response":{"status":"failed","error":{`+
			`"code":"server_error","message":"unknown item"}}`))},
	} {
		u := newUpstream(t, nil)
		var calls int
		u.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "compaction_trigger") {
				test.answer(w, r)
				return
			}
			answerJSON(200, fmt.Sprintf(says[dialoguetest.Responses], "THE SUMMARY"))(w, r)
		})
		g := open(t, func(g *gateway) {
			g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: u.URL},
				catalog.Model{Pattern: "m"})
		})
		r := g.ok("POST", "/v1/responses", fmt.Sprintf(`{"model":"m","store":false,"stream":%t,"input":[%s,`+
			`{"type":"compaction_trigger"}]}`, test.stream, longStory))
		ended := gjson.ParseBytes(r.body)
		if test.stream {
			events := r.events()
			ended = events[len(events)-1].Get("response")
		}
		if ended.Get("output.#").Int() != 1 || ended.Get("output.0.type").Str != "compaction" || calls != 2 ||
			strings.Contains(string(r.body), "I GO ON") {
			t.Errorf("%s: %d calls, got %s", name, calls, r.body)
		}
	}
}

func TestAVendorsCompactionPassesThroughAsItCame(t *testing.T) {
	const reply = "event: response.created\n" +
		`data: {"type":"response.created","response":{"id":"r","status":"in_progress"}}` + "\n\n" +
		"event: response.output_item.done\n" +
		`data: {"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","summary":[]}}` + "\n\n" +
		"event: response.output_item.done\n" +
		`data: {"type":"response.output_item.done","item":{"type":"compaction","encrypted_content":"o"}}` + "\n\n" +
		"event: response.completed\n" +
		`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}` + "\n\n"
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, reply)
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: u.URL},
			catalog.Model{Pattern: "m"})
	})
	r := g.ok("POST", "/v1/responses", `{"model":"m","store":false,"stream":true,"input":[`+longStory+
		`,{"type":"compaction_trigger"}]}`)
	if string(r.body) != reply || len(u.all()) != 1 {
		t.Errorf("%d calls, got %s", len(u.all()), r.body)
	}
}

// Without its summary a conversation would go on from nothing.
func TestAForeignOrChangedSummaryIsRefusedAndAMissingOneFails(t *testing.T) {
	answer := fmt.Sprintf(says[dialoguetest.Chat], "THE SUMMARY")
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) { answerJSON(200, answer)(w, r) })
	g := open(t, func(g *gateway) {
		for _, shape := range []dialogue.Shape{dialoguetest.Chat, dialoguetest.Responses} {
			g.provider(catalog.Provider{Name: string(shape), Shape: shape, BaseURL: u.URL},
				catalog.Model{Pattern: string(shape)})
		}
	})
	g.key("stranger", nil)
	const compact = `{"model":"chat","input":[` + longStory + `,{"type":"compaction_trigger"}]}`
	item := g.ok("POST", "/v1/responses", compact).get("output.0")
	sealed := item.Get("encrypted_content").Str
	changed := strings.Replace(item.Raw, sealed, sealed[:len(sealed)-1]+"_", 1)
	for _, model := range []string{"chat", "responses"} {
		body := `{"model":"` + model + `","input":[{"role":"user","content":"x"},%s]}`
		refused(t, g.do("POST", "/v1/responses", fmt.Sprintf(body, changed)), "input[1].encrypted_content")
		refused(t, g.do("POST", "/v1/responses", fmt.Sprintf(body, item.Raw), g.as("stranger")...),
			"input[1].encrypted_content")
	}
	refused(t, g.do("POST", "/v1/responses", `{"model":"chat","input":[{"type":"compaction_trigger"},`+longStory+`]}`),
		"input[0]")
	refused(t, g.do("POST", "/v1/responses/compact", `{"model":"chat","input":"x","conversation":"c"}`), "conversation")
	answer = fmt.Sprintf(says[dialoguetest.Chat], " ")
	want(t, g.do("POST", "/v1/responses", compact), 502, "upstream_invalid_response")
	if r := g.do("POST", "/v1/responses", strings.Replace(compact, `{`, `{"stream":true,`, 1)); r.status != 502 {
		t.Errorf("a stream without a summary: %d %s", r.status, r.body)
	}
}

// Reasoning that an upstream refuses is left out. Without what a vendor made of a conversation, however, the model
// would answer without the conversation.
func TestACompactionThatAnUpstreamRefusesIsNeverLeftOut(t *testing.T) {
	const compaction = `{"id":"cmp_1","type":"compaction","encrypted_content":"opaque"}`
	const refusal = `{"error":{"message":"The encrypted content for item cmp_1 could not be verified.",` +
		`"type":"invalid_request_error","code":"invalid_encrypted_content"}}`
	u := newUpstream(t, answerJSON(400, refusal))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: u.URL},
			catalog.Model{Pattern: "m"})
	})
	for reasoning, calls := range map[string]int{"": 1,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"proof"},`: 2} {
		before := len(u.all())
		want(t, g.do("POST", "/v1/responses", `{"model":"m","store":false,"input":[`+compaction+`,`+reasoning+
			`{"role":"user","content":"on"}]}`), 400, "invalid_encrypted_content")
		sent := u.all()[before:]
		if len(sent) != calls {
			t.Errorf("%d calls, want %d", len(sent), calls)
		}
		last := string(sent[len(sent)-1].body)
		if !strings.Contains(last, "opaque") || strings.Contains(last, "proof") {
			t.Errorf("sent %s", last)
		}
	}
}

// The object has no status, so that its client could not know that the end of the summary is missing.
func TestASummaryThatIsCutOffIsNoCompactionObject(t *testing.T) {
	cut := strings.Replace(fmt.Sprintf(says[dialoguetest.Chat], "cut o"), `"stop"`, `"length"`, 1)
	u := newUpstream(t, answerJSON(200, cut))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: u.URL}, catalog.Model{Pattern: "m"})
	})
	const body = `{"model":"m","max_output_tokens":50,"input":[` + longStory
	want(t, g.do("POST", "/v1/responses/compact", body+`]}`), 502, "upstream_invalid_response")
	if sent := string(u.all()[0].body); strings.Contains(sent, "50") {
		t.Errorf("the client's limit was sent: %s", sent)
	}
	r := g.ok("POST", "/v1/responses", body+`,{"type":"compaction_trigger"}]}`)
	if r.get("status").Str != "incomplete" {
		t.Errorf("got %s", r.body)
	}
}

// A client may also go on from the response that has the summary. What was summarised is then not sent again.
func TestAResponseWithASummaryContinuesWithoutWhatItStandsFor(t *testing.T) {
	u := newUpstream(t, answerJSON(200, fmt.Sprintf(says[dialoguetest.Chat], "THE SUMMARY")))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: u.URL}, catalog.Model{Pattern: "m"})
	})
	id := g.ok("POST", "/v1/responses", `{"model":"m","input":[`+longStory+`,{"type":"compaction_trigger"}]}`).
		get("id").Str
	g.ok("POST", "/v1/responses", `{"model":"m","previous_response_id":"`+id+`","input":"go on"}`)
	var roles []string
	for _, m := range gjson.GetBytes(u.all()[1].body, "messages").Array() {
		roles = append(roles, m.Get("role").Str)
	}
	sent := string(u.all()[1].body)
	if !strings.Contains(sent, "THE SUMMARY") || !strings.Contains(sent, "first wish") ||
		strings.Contains(sent, "long answer") || strings.Contains(sent, "about to be replaced") {
		t.Errorf("sent %v: %s", roles, sent)
	}
}
