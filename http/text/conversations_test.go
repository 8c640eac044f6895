package text_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/work"
)

// ok sends a request of the key all, which must succeed.
func (g *gateway) ok(method, path, body string) reply {
	g.t.Helper()
	r := g.do(method, path, body)
	if r.status != 200 {
		g.t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
	return r
}

// conversation creates a conversation and returns its id and the path of its items.
func (g *gateway) conversation(body string) (id, items string) {
	g.t.Helper()
	id = g.ok("POST", "/v1/conversations", body).get("id").Str
	return id, "/v1/conversations/" + id + "/items"
}

// texts are the first texts of the items of a conversation, the oldest first.
func (g *gateway) texts(items string) (all []string) {
	g.t.Helper()
	for _, it := range g.ok("GET", items+"?order=asc&limit=100", "").get("data").Array() {
		all = append(all, it.Get("role").Str+":"+it.Get("content.0.text").Str)
	}
	return all
}

// refused wants a 400 that names a field.
func refused(t *testing.T, r reply, param string) {
	t.Helper()
	if r.status != 400 || r.get("error.param").Str != param {
		t.Errorf("%d %s, want a 400 about %s", r.status, r.body, param)
	}
}

// messages are n messages.
func messages(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"role":"user","id":"msg_%02d","content":"%d"}`, i, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestConversationsAreCreatedChangedAndDeleted(t *testing.T) {
	g := open(t)
	for _, body := range []string{"", "{}", `{"metadata":null,"items":null}`, `{"items":[]}`} {
		r := g.do("POST", "/v1/conversations", body)
		if r.status != 200 || !strings.HasPrefix(r.get("id").Str, "conv_") || r.get("object").Str != "conversation" ||
			r.get("created_at").Int() == 0 || r.get("metadata").Raw != "{}" {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
	}
	id, items := g.conversation(`{"metadata":{"topic":"a","x":"y"},"items":` + messages(20) + `}`)
	path := "/v1/conversations/" + id
	if r := g.ok("GET", path, ""); r.get("metadata").Raw != `{"topic":"a","x":"y"}` {
		t.Errorf("%s", r.body)
	}
	r := g.ok("POST", path, `{"metadata":{"topic":"b"}}`)
	if r.get("metadata").Raw != `{"topic":"b"}` || r.get("id").Str != id {
		t.Errorf("%s", r.body)
	}
	if r := g.ok("GET", path, ""); r.get("metadata").Raw != `{"topic":"b"}` {
		t.Errorf("metadata was not replaced: %s", r.body)
	}
	if n := len(g.texts(items)); n != 20 {
		t.Errorf("%d items", n)
	}
	refused(t, g.do("POST", path, `{}`), "metadata")
	refused(t, g.do("POST", "/v1/conversations", `{"items":`+messages(21)+`}`), "items")
	refused(t, g.do("POST", "/v1/conversations", `{"items":{}}`), "items")
	refused(t, g.do("POST", "/v1/conversations", `{"items":[{"role":"user"}]}`), "items[0].content")
	const message = `{"role":"user","id":"%s","content":"x"}`
	twice := fmt.Sprintf(`{"items":[`+message+","+message+`]}`, "a", "a")
	refused(t, g.do("POST", "/v1/conversations", twice), "items")
	long := fmt.Sprintf(`{"items":[`+message+`]}`, strings.Repeat("a", 129))
	refused(t, g.do("POST", "/v1/conversations", long), "items")
	var pairs []string
	for i := range 17 {
		pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
	}
	refused(t, g.do("POST", "/v1/conversations", `{"metadata":{`+strings.Join(pairs, ",")+`}}`), "metadata")
	refused(t, g.do("POST", path, `{"metadata":{"a":1}}`), "metadata")
	r = g.ok("DELETE", path, "")
	if string(r.body) != `{"id":"`+id+`","object":"conversation.deleted","deleted":true}` {
		t.Errorf("%s", r.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		want(t, g.do(method, path, ""), 404, "conversation_not_found")
	}
	want(t, g.do("GET", items, ""), 404, "conversation_not_found")
	want(t, g.do("POST", "/v1/responses", `{"model":"alpha","input":"x","conversation":"`+id+`"}`),
		404, "conversation_not_found")
	if r := g.do("GET", "/v1/conversations", ""); r.status != 405 || r.header.Get("Allow") != "POST" {
		t.Errorf("the list, which the API does not have: %d %v", r.status, r.header)
	}
}

func TestConversationsOfOthersDoNotExist(t *testing.T) {
	g := open(t)
	g.key("stranger", nil)
	id, items := g.conversation(`{"items":` + messages(1) + `}`)
	path := "/v1/conversations/" + id
	for _, c := range [][3]string{
		{"GET", path, ""}, {"POST", path, `{"metadata":{}}`}, {"DELETE", path, ""}, {"GET", items, ""},
		{"POST", items, `{"items":[]}`}, {"GET", items + "/msg_00", ""}, {"DELETE", items + "/msg_00", ""},
		{"POST", "/v1/responses", `{"model":"alpha","input":"x","conversation":{"id":"` + id + `"}}`},
		{"POST", "/v1/responses/input_tokens", `{"model":"alpha","input":"x","conversation":"` + id + `"}`},
	} {
		foreign := g.do(c[0], c[1], c[2], g.as("stranger")...)
		want(t, foreign, 404, "conversation_not_found")
		other := strings.NewReplacer(id, "conv_none")
		unknown := g.do(c[0], other.Replace(c[1]), other.Replace(c[2]), g.as("stranger")...)
		if string(foreign.body) != string(unknown.body) {
			t.Errorf("%s: foreign and unknown differ: %s %s", c, foreign.body, unknown.body)
		}
	}
	stolen := g.do("POST", "/v1/responses", `{"model":"alpha","input":[{"type":"item_reference","id":"msg_00"}]}`,
		g.as("stranger")...)
	want(t, stolen, 404, "item_not_found")
}

func TestItemsOfAConversationArePaged(t *testing.T) {
	g := open(t)
	_, items := g.conversation("")
	added := g.ok("POST", items, `{"items":`+messages(25)+`}`) // more than the vendor documents, as an SDK sends
	if len(added.get("data").Array()) != 25 || added.get("first_id").Str != "msg_00" || added.get("has_more").Bool() {
		t.Errorf("%s", added.body)
	}
	for _, c := range []struct {
		query, first, last string
		n                  int
		more               bool
	}{
		{"", "msg_24", "msg_05", 20, true},
		{"?order=asc", "msg_00", "msg_19", 20, true},
		{"?order=asc&limit=3&after=msg_19", "msg_20", "msg_22", 3, true},
		{"?order=asc&limit=5&after=msg_19", "msg_20", "msg_24", 5, false},
		{"?order=desc&limit=2&after=msg_05", "msg_04", "msg_03", 2, true},
		{"?limit=100", "msg_24", "msg_00", 25, false},
		{"?after=msg_00", "", "", 0, false},
		{"?order=asc&after=msg_24", "", "", 0, false},
		{"?limit=1&order=desc", "msg_24", "msg_24", 1, true},
	} {
		r := g.ok("GET", items+c.query, "")
		if r.get("object").Str != "list" || len(r.get("data").Array()) != c.n || r.get("first_id").Str != c.first ||
			r.get("last_id").Str != c.last || r.get("has_more").Bool() != c.more {
			t.Errorf("%q: %s", c.query, r.body)
		}
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit",
		"order=up": "order", "after=msg_none": "after", "order=asc&after=msg_none": "after"} {
		refused(t, g.do("GET", items+"?"+query, ""), param)
	}
	deleted := g.ok("DELETE", items+"/msg_24", "")
	if deleted.get("object").Str != "conversation" {
		t.Errorf("%s", deleted.body)
	}
	want(t, g.do("GET", items+"/msg_24", ""), 404, "item_not_found")
	want(t, g.do("DELETE", items+"/msg_24", ""), 404, "item_not_found")
	if r := g.ok("GET", items+"?limit=1", ""); r.get("first_id").Str != "msg_23" {
		t.Errorf("%s", r.body)
	}
	refused(t, g.do("POST", items, `{"items":`+messages(1)+`}`), "items")
	r := g.do("POST", items, `{"items":`+messages(1)+`}`)
	if !strings.HasPrefix(r.get("error.message").Str, "Duplicate item found with id msg_00") {
		t.Errorf("%s", r.body)
	}
	refused(t, g.do("POST", items, `{}`), "items")
	refused(t, g.do("POST", items, `{"items":`+messages(1001)+`}`), "items")
}

// Items come back in the form that the API gives them, with an id and a status, and large members only on request.
func TestItemsAreShownInTheirOutputForm(t *testing.T) {
	g := open(t)
	_, items := g.conversation(`{"items":[
		{"role":"user","content":"hi"},
		{"role":"assistant","content":[{"type":"output_text","text":"a","logprobs":[1]}]},
		{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
		{"type":"reasoning","summary":[],"encrypted_content":"E"},
		{"type":"web_search_call","action":{"type":"search","sources":[1]}},
		{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}},
		{"type":"file_search_call","results":[1],"queries":[]},
		{"type":"compaction","encrypted_content":"C"}]}`)
	hidden := map[string]string{
		"message.output_text.logprobs":          "1.content.0.logprobs",
		"message.input_image.image_url":         "2.content.0.image_url",
		"reasoning.encrypted_content":           "3.encrypted_content",
		"web_search_call.action.sources":        "4.action.sources",
		"computer_call_output.output.image_url": "5.output.image_url",
		"file_search_call.results":              "6.results",
	}
	plain := g.ok("GET", items+"?order=asc", "").get("data")
	for name, path := range hidden {
		if plain.Get(path).Exists() {
			t.Errorf("%s is shown: %s", name, plain.Raw)
		}
		for _, query := range []string{"include=" + name, "include[]=x&include[]=" + name, "include=x," + name} {
			if got := g.ok("GET", items+"?order=asc&"+query, "").get("data"); !got.Get(path).Exists() {
				t.Errorf("%s does not show it: %s", query, got.Raw)
			}
		}
	}
	if got := plain.Get("0.content").Raw; got != `[{"type":"input_text","text":"hi"}]` {
		t.Errorf("content %s", got)
	}
	if got := plain.Get("1.content.0.annotations").Raw; got != "[]" {
		t.Errorf("annotations %s", got)
	}
	for i, prefix := range []string{"msg_", "msg_", "msg_", "rs_", "ws_", "item_", "fs_", "cmp_"} {
		it := plain.Get(fmt.Sprint(i))
		if !strings.HasPrefix(it.Get("id").Str, prefix) || it.Get("status").Str != "completed" && prefix != "cmp_" {
			t.Errorf("item %d: %s", i, it.Raw)
		}
		one := g.ok("GET", items+"/"+it.Get("id").Str, "")
		if string(one.body) != it.Raw {
			t.Errorf("alone it is %s, in the list %s", one.body, it.Raw)
		}
	}
}

// The items of a conversation come before the input, for every upstream, and the input and output are added to them.
func TestAResponseContinuesItsConversation(t *testing.T) {
	chat := chatUpstream(t)
	native := newUpstream(t, answerJSON(200, `{"id":"resp_up","object":"response","created_at":1,"status":"completed",`+
		`"model":"n","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"},`+
		`{"type":"message","id":"msg_up","role":"assistant","status":"completed","content":[{"type":"output_text",`+
		`"text":"pong","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "chat", Shape: dialoguetest.Chat, BaseURL: chat.URL},
			catalog.Model{Pattern: "m"})
		g.provider(catalog.Provider{Name: "native", Shape: dialoguetest.Responses, BaseURL: native.URL},
			catalog.Model{Pattern: "gpt-6-sol"})
	})
	id, items := g.conversation(`{"items":[{"role":"user","content":"zero"}]}`)
	for i, body := range []string{
		`{"model":"m","input":"one","conversation":"%s"}`,
		`{"model":"m","input":"two","conversation":{"id":"%s"},"store":false}`,
		`{"model":"m","input":"three","conversation":"%s","stream":true}`,
		`{"model":"m","input":"four","conversation":"%s","stream":true,"store":false}`,
		`{"model":"gpt-6-sol","input":"five","conversation":"%s"}`,
		`{"model":"gpt-6-sol","input":"six","conversation":"%s"}`,
	} {
		r := g.create(fmt.Sprintf(body, id))
		response := gjson.ParseBytes(r.body)
		if events := r.events(); len(events) > 0 {
			response = events[len(events)-1].Get("response")
		}
		if response.Get("conversation").Raw != `{"id":"`+id+`"}` || response.Get("status").Str != "completed" {
			t.Errorf("response %d: %s", i, response.Raw)
		}
		if got := g.texts(items); slices.Index(got, "assistant:pong") < 0 || len(got) < 3+2*i {
			t.Errorf("after response %d: %v", i, got)
		}
	}
	const pong = " assistant:pong "
	const all = "user:zero user:one" + pong + "user:two" + pong + "user:three" + pong + "user:four assistant:pong"
	if got := strings.Join(g.texts(items)[:9], " "); got != all {
		t.Errorf("items %s", got)
	}
	calls := native.all()
	last := calls[len(calls)-1].body
	if gjson.GetBytes(last, "conversation").Exists() || gjson.GetBytes(last, "input.0.content.0.text").Str != "zero" {
		t.Errorf("the upstream was asked %s", last)
	}
	if got := gjson.GetBytes(last, `input.#(type=="reasoning").encrypted_content`).Str; got != "E" {
		t.Errorf("the reasoning did not come back: %s", last)
	}
	ids := make(map[string]bool)
	for _, it := range g.ok("GET", items+"?limit=100", "").get("data").Array() {
		if id := it.Get("id").Str; ids[id] {
			t.Errorf("two items have the id %s, which the provider gave twice", id)
		} else {
			ids[id] = true
		}
	}
	asked := gjson.GetBytes(chat.all()[3].body, "messages").Array()
	if len(asked) != 8 || words(asked[0].Get("content")) != "zero" || words(asked[7].Get("content")) != "four" {
		t.Errorf("the upstream was asked %s", chat.all()[3].body)
	}
}

// A stored response of a conversation can be continued by its id, with all that came before it.
func TestAResponseOfAConversationIsContinuedWithItsHistory(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "chat", Shape: dialoguetest.Chat, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	id, _ := g.conversation(`{"items":[{"role":"user","content":"zero"}]}`)
	first := g.create(`{"model":"m","input":"one","conversation":"` + id + `"}`).get("id").Str
	g.create(`{"model":"m","input":"later","conversation":"` + id + `"}`)
	g.create(`{"model":"m","input":"two","previous_response_id":"` + first + `"}`)
	var got []string
	for _, m := range gjson.GetBytes(up.all()[2].body, "messages").Array() {
		got = append(got, words(m.Get("content")))
	}
	if s := strings.Join(got, " "); s != "zero one pong two" {
		t.Errorf("the upstream was asked %s", s)
	}
	both := `{"model":"m","input":"x","conversation":"` + id + `","previous_response_id":"` + first + `"}`
	refused(t, g.do("POST", "/v1/responses", both), "previous_response_id")
	g.ok("DELETE", "/v1/conversations/"+id, "")
	gone := g.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"`+first+`"}`)
	want(t, gone, 404, "previous_response_not_found")
}

func TestAFailedResponseAddsNothingToItsConversation(t *testing.T) {
	g := open(t)
	id, items := g.conversation(`{"items":[{"role":"user","content":"zero"}]}`)
	for _, body := range []string{
		`{"model":"alpha","input":"[sandbox: status=400]","conversation":"%s"}`,
		`{"model":"alpha","input":"[sandbox: status=400]","conversation":"%s","store":false}`,
		`{"model":"alpha","input":"[sandbox: tokens=20 cut=5]","conversation":"%s","stream":true}`,
		`{"model":"alpha","input":"[sandbox: tokens=20 cut=5]","conversation":"%s","stream":true,"store":false}`,
	} {
		g.do("POST", "/v1/responses", fmt.Sprintf(body, id))
		if got := g.texts(items); len(got) != 1 {
			t.Errorf("%s: %v", body, got)
		}
	}
	cut := g.create(`{"model":"alpha","input":"[sandbox: tokens=50]","max_output_tokens":16,` +
		`"conversation":"` + id + `"}`)
	if cut.get("status").Str != "incomplete" || len(g.texts(items)) != 3 {
		t.Errorf("%s, items %v", cut.body, g.texts(items))
	}
}

// One response uses a conversation at a time. Its end frees it, also if the client left.
func TestAConversationIsLockedWhileAResponseUsesIt(t *testing.T) {
	g := open(t)
	web := g.listen(t)
	id, items := g.conversation(`{"items":` + messages(1) + `}`)
	stall := `{"model":"alpha","input":"[sandbox: tokens=5 stall]","conversation":"` + id + `"`
	for _, store := range []bool{true, false} {
		s := web.stream(t, "POST", "/v1/responses", fmt.Sprintf(`%s,"stream":true,"store":%v}`, stall, store))
		s.event(t)
		for _, c := range [][3]string{
			{"POST", "/v1/responses", `{"model":"alpha","input":"x","conversation":"` + id + `"}`},
			{"POST", items, `{"items":[{"role":"user","content":"x"}]}`},
			{"DELETE", items + "/msg_00", ""}, {"DELETE", "/v1/conversations/" + id, ""},
		} {
			r := g.do(c[0], c[1], c[2])
			want(t, r, 400, "conversation_locked")
			if r.header.Get("Retry-After") == "" || r.header.Get("X-Should-Retry") != "true" ||
				r.get("error.param").Str != "conversation" {
				t.Errorf("store %v: %v %s", store, r.header, r.body)
			}
		}
		if n := len(g.texts(items)); n != 1 {
			t.Errorf("store %v: %d items can be read meanwhile", store, n)
		}
		s.Close()
		g.unlocked(items)
	}
	id2, _ := g.conversation("")
	job := g.create(`{"model":"alpha","input":"[sandbox: stall]","background":true,"conversation":"` + id2 + `"}`)
	want(t, g.do("POST", "/v1/responses", `{"model":"alpha","input":"x","conversation":"`+id2+`"}`),
		400, "conversation_locked")
	g.ok("POST", "/v1/responses/"+job.get("id").Str+"/cancel", "")
	g.create(`{"model":"alpha","input":"x","conversation":"` + id2 + `"}`)
}

// An SDK that tries again with the same idempotency key gets an answer once the conversation is free.
func TestALockedConversationIsNotRepeatedForAnIdempotencyKey(t *testing.T) {
	g := open(t)
	id, _ := g.conversation("")
	job := g.create(`{"model":"alpha","input":"[sandbox: stall]","background":true,"conversation":"` + id + `"}`)
	next := func() reply {
		body := `{"model":"alpha","input":"x","conversation":"` + id + `"}`
		return g.do("POST", "/v1/responses", body, "Idempotency-Key", "once")
	}
	want(t, next(), 400, "conversation_locked")
	g.ok("POST", "/v1/responses/"+job.get("id").Str+"/cancel", "")
	answered := next()
	if answered.status != 200 {
		t.Fatalf("%d %s", answered.status, answered.body)
	}
	if again := next(); again.get("id").Str != answered.get("id").Str {
		t.Errorf("the repeat is another response: %s", again.body)
	}
}

// unlocked waits until the items of a conversation can be changed.
func (g *gateway) unlocked(items string) {
	g.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		r := g.do("POST", items, `{"items":[]}`)
		if r.status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("it stays locked: %s", r.body)
		}
	}
}

// The next turn can begin as soon as the client has read the end of the one before.
func TestAConversationIsFreeOnceTheEndOfItsResponseIsRead(t *testing.T) {
	g := open(t)
	web := g.listen(t)
	id, items := g.conversation("")
	for i := range 10 {
		body := fmt.Sprintf(`{"model":"alpha","input":"[sandbox: tokens=2 pace=max]","stream":true,`+
			`"store":%v,"conversation":%q}`, i%2 == 0, id)
		s := web.stream(t, "POST", "/v1/responses", body)
		for ev := s.event(t); ev.Get("type").Str != "response.completed"; ev = s.event(t) {
			if !ev.Exists() || s.status != 200 {
				t.Fatalf("turn %d: %d %s", i, s.status, ev.Raw)
			}
		}
		defer s.Close() // the stream is still open when the next turn begins
	}
	if n := len(g.texts(items)); n != 20 {
		t.Errorf("%d items after 10 turns", n)
	}
}

func TestABackgroundResponseAddsToItsConversation(t *testing.T) {
	g := open(t)
	id, items := g.conversation(`{"items":[{"role":"user","content":"zero"}]}`)
	job := g.create(`{"model":"alpha","input":"one","background":true,"conversation":"` + id + `"}`)
	if got := job.get("conversation.id").Str; got != id {
		t.Errorf("%s", job.body)
	}
	done := g.await(job.get("id").Str)
	if done.get("status").Str != "completed" || done.get("conversation.id").Str != id {
		t.Errorf("%s", done.body)
	}
	if got := g.texts(items); len(got) != 3 || got[1] != "user:one" {
		t.Errorf("items %v", got)
	}
	g.create(`{"model":"alpha","input":"two","conversation":"` + id + `"}`)
}

// What no upstream could answer is refused before anything is sent, with the vendor's words.
func TestInputThatDoesNotFitItsConversationIsRefused(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "chat", Shape: dialoguetest.Chat, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	id, items := g.conversation(`{"items":[{"role":"user","id":"msg_1","content":"weather?"},` +
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}]}`)
	ask := func(input string) reply {
		return g.do("POST", "/v1/responses", `{"model":"m","conversation":"`+id+`","input":`+input+`}`)
	}
	const twice = "Duplicate item found with id %s. Remove duplicate items from your input and try again."
	for input, message := range map[string]string{
		`"hi"`: "No tool output found for function call call_1.",
		`[{"role":"user","id":"msg_1","content":"again"}]`: fmt.Sprintf(twice,
			"msg_1"),
		`[{"role":"user","id":"m2","content":"a"},{"role":"user","id":"m2","content":"b"}]`: fmt.Sprintf(twice, "m2"),
	} {
		r := ask(input)
		refused(t, r, "input")
		if r.get("error.message").Str != message || r.get("error.code").Type != gjson.Null {
			t.Errorf("%s: %s", input, r.body)
		}
	}
	if n := len(up.all()); n != 0 {
		t.Errorf("%d calls went upstream", n)
	}
	if r := ask(`[{"type":"function_call_output","call_id":"call_1","output":"rain"}]`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	g.ok("DELETE", items+"/fc_1", "")
	r := ask(`"hi"`)
	refused(t, r, "input")
	const orphan = "No tool call found for function call output with call_id call_1."
	if r.get("error.message").Str != orphan {
		t.Errorf("%s", r.body)
	}
	empty, _ := g.conversation("")
	r = g.do("POST", "/v1/responses", `{"model":"m","conversation":"`+empty+`"}`)
	refused(t, r, "input")
}

// A dry run shows the conversation in the request to the provider. It uses nothing and adds nothing.
func TestADryRunShowsItsConversation(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "chat", Shape: dialoguetest.Chat, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	id, items := g.conversation(`{"items":[{"role":"user","content":"zero"}]}`)
	r := g.do("POST", "/v1/responses", `{"model":"m","input":"one","conversation":"`+id+`"}`, "X-Dry-Run", "1")
	if r.status != 200 || !strings.Contains(string(r.body), "zero") || len(up.all()) != 0 || len(g.texts(items)) != 1 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestCountingAConversationAddsNothing(t *testing.T) {
	g := open(t)
	id, items := g.conversation(`{"items":[{"role":"user","content":"` + strings.Repeat("word ", 100) + `"}]}`)
	count := func(more string) int64 {
		body := `{"model":"alpha","input":"hi"` + more + `}`
		return g.ok("POST", "/v1/responses/input_tokens", body).get("input_tokens").Int()
	}
	alone, with := count(""), count(`,"conversation":"`+id+`"`)
	if with < alone+100 {
		t.Errorf("%d tokens with the conversation, %d without", with, alone)
	}
	if got := g.texts(items); len(got) != 1 {
		t.Errorf("items %v", got)
	}
}

func TestReferencesToItemsOfConversationsAreResolved(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: up.URL}, catalog.Model{Pattern: "m"})
	})
	from, _ := g.conversation(`{"items":[{"role":"user","id":"msg_from","content":"zero"}]}`)
	id, items := g.conversation(`{"items":[{"type":"item_reference","id":"msg_from"}]}`)
	if got := g.texts(items); len(got) != 1 || got[0] != "user:zero" {
		t.Errorf("items %v", got)
	}
	g.create(`{"model":"m","input":[{"type":"item_reference","id":"msg_from"}],"store":false}`)
	asked := gjson.GetBytes(up.all()[0].body, "messages").Array()
	if len(asked) != 1 || words(asked[0].Get("content")) != "zero" {
		t.Errorf("the upstream was asked %s", up.all()[0].body)
	}
	said := g.create(`{"model":"m","input":"one","store":false,"conversation":"` + id + `"}`).get("output.0.id").Str
	g.ok("DELETE", "/v1/conversations/"+from, "")
	g.create(`{"model":"m","input":[{"type":"item_reference","id":"` + said + `"},{"role":"user","content":"x"}]}`)
	unknown := g.do("POST", items, `{"items":[{"type":"item_reference","id":"msg_none"}]}`)
	want(t, unknown, 404, "item_not_found")
	if unknown.get("error.param").Str != "items" {
		t.Errorf("%s", unknown.body)
	}
}

// An item that the gateway does not know is the provider's own if the provider is configured so.
func TestReferencesToItemsOfTheProviderAreForwarded(t *testing.T) {
	answer := answerJSON(200, `{"id":"resp_up","object":"response","created_at":1,"status":"completed","model":"m",`+
		`"output":[],"usage":null}`)
	trusted, other := newUpstream(t, answer), newUpstream(t, answer)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "trusted", Shape: dialoguetest.Responses, BaseURL: trusted.URL,
			PassUnknownResponses: true}, catalog.Model{Pattern: "t"})
		g.provider(catalog.Provider{Name: "other", Shape: dialoguetest.Responses, BaseURL: other.URL},
			catalog.Model{Pattern: "o"})
	})
	const body = `{"model":"%s","store":false,"input":[{"type":"item_reference","id":"rs_vendor"},` +
		`{"role":"user","content":"x"}]}`
	g.create(fmt.Sprintf(body, "t"))
	asked := trusted.all()[0].body
	if gjson.GetBytes(asked, "input.0").Raw != `{"type":"item_reference","id":"rs_vendor"}` {
		t.Errorf("the provider was asked %s", asked)
	}
	want(t, g.do("POST", "/v1/responses", fmt.Sprintf(body, "o")), 404, "item_not_found")
}

func TestConversationsKeepTheQuotaOfTheirOwner(t *testing.T) {
	g := open(t)
	work.SetResponseQuota(g.state, work.Quota{Conversations: 1, Bytes: 2100})
	id, items := g.conversation("")
	r := g.do("POST", "/v1/conversations", "{}")
	want(t, r, 403, "storage_quota_exceeded")
	if r.header.Get("X-Should-Retry") != "false" || !strings.Contains(r.get("error.message").Str, "1 conversations") {
		t.Errorf("%v %s", r.header, r.body)
	}
	long := `[{"role":"user","content":"` + strings.Repeat("x", 1900) + `"}]`
	g.ok("POST", items, `{"items":`+long+`}`)
	want(t, g.do("POST", items, `{"items":`+long+`}`), 403, "storage_quota_exceeded")
	// A turn that has begun is kept, and the next one does not begin.
	g.create(`{"model":"alpha","input":"` + strings.Repeat("y ", 50) + `","store":false,"conversation":"` + id + `"}`)
	if n := len(g.texts(items)); n != 3 {
		t.Errorf("%d items", n)
	}
	next := g.do("POST", "/v1/responses", `{"model":"alpha","input":"x","store":false,"conversation":"`+id+`"}`)
	want(t, next, 403, "storage_quota_exceeded")
}
