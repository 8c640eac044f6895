package text_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
	"stagedoor/state/work"
)

// create makes a response with the key all.
func (g *gateway) create(body string) reply {
	g.t.Helper()
	r := g.do("POST", "/v1/responses", body)
	if r.status != 200 {
		g.t.Fatalf("create: %d %s", r.status, r.body)
	}
	return r
}

func TestAResponseIsKeptUnlessItSaysOtherwise(t *testing.T) {
	g := open(t)
	r := g.create(`{"model":"alpha","input":"hi"}`)
	id := r.get("id").String()
	again := g.do("GET", "/v1/responses/"+id, "")
	if again.status != 200 || again.get("output").Raw != r.get("output").Raw ||
		again.get("status").String() != "completed" {
		t.Errorf("got %d %s, want %s", again.status, again.body, r.body)
	}
	streamed := g.create(`{"model":"alpha","input":"hi","stream":true}`)
	events := streamed.events()
	last := events[len(events)-1].Get("response")
	if kept := g.do("GET", "/v1/responses/"+last.Get("id").String(), ""); kept.status != 200 ||
		kept.get("output").Raw != last.Get("output").Raw {
		t.Errorf("streamed: got %d %s, want %s", kept.status, kept.body, last.Raw)
	}
	fleeting := g.create(`{"model":"alpha","input":"hi","store":false}`)
	want(t, g.do("GET", "/v1/responses/"+fleeting.get("id").String(), ""), 404, "response_not_found")
}

func TestResponsesOfOthersDoNotExist(t *testing.T) {
	g := open(t)
	g.key("stranger", nil)
	g.key("colleague", func(k *identity.Key) { k.User = "u1" })
	g.key("friend", func(k *identity.Key) { k.User = "u1" })
	id := g.create(`{"model":"alpha","input":"secret"}`).get("id").String()
	shared := g.do("POST", "/v1/responses", `{"model":"alpha","input":"hi"}`, g.as("colleague")...).get("id").String()
	if r := g.do("GET", "/v1/responses/"+shared, "", g.as("friend")...); r.status != 200 {
		t.Errorf("the keys of one user do not share: %d %s", r.status, r.body)
	}
	for _, c := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/cancel"}, {"GET", "/input_items"}, {"GET", "?stream=true"}} {
		foreign := g.do(c[0], "/v1/responses/"+id+c[1], "", g.as("stranger")...)
		want(t, foreign, 404, "response_not_found")
		unknown := g.do(c[0], "/v1/responses/resp_none"+c[1], "", g.as("stranger")...)
		if string(foreign.body) != string(unknown.body) {
			t.Errorf("%s: foreign and unknown differ: %s %s", c, foreign.body, unknown.body)
		}
	}
	continued := g.do(
		"POST",
		"/v1/responses",
		fmt.Sprintf(`{"model":"alpha","input":"more","previous_response_id":%q}`, id),
		g.as("stranger")...)
	want(t, continued, 404, "previous_response_not_found")
	if r := g.do("GET", "/v1/responses/"+id, ""); r.status != 200 {
		t.Errorf("its owner: %d", r.status)
	}
}

func TestADeletedResponseIsGone(t *testing.T) {
	g := open(t)
	id := g.create(`{"model":"alpha","input":"hi"}`).get("id").String()
	r := g.do("DELETE", "/v1/responses/"+id, "")
	if r.status != 200 || r.get("id").String() != id || !r.get("deleted").Bool() {
		t.Errorf("%d %s", r.status, r.body)
	}
	want(t, g.do("GET", "/v1/responses/"+id, ""), 404, "response_not_found")
	want(t, g.do("DELETE", "/v1/responses/"+id, ""), 404, "response_not_found")
}

func TestInputItemsArePaged(t *testing.T) {
	g := open(t)
	var items []string
	for i := range 25 {
		items = append(items, fmt.Sprintf(`{"type":"message","id":"msg_%02d","role":"user","content":"%d"}`, i, i))
	}
	id := g.create(`{"model":"alpha","input":[` + strings.Join(items, ",") + `]}`).get("id").String()
	for _, c := range []struct {
		query, first, last string
		n                  int
		more               bool
	}{
		{"", "msg_24", "msg_05", 20, true},
		{"?order=asc", "msg_00", "msg_19", 20, true},
		{"?order=asc&limit=3&after=msg_19", "msg_20", "msg_22", 3, true},
		{"?limit=100", "msg_24", "msg_00", 25, false},
		{"?after=msg_00", "", "", 0, false},
		{"?limit=1&order=desc", "msg_24", "msg_24", 1, true},
	} {
		r := g.do("GET", "/v1/responses/"+id+"/input_items"+c.query, "")
		if r.status != 200 || r.get("object").String() != "list" || len(r.get("data").Array()) != c.n ||
			r.get("first_id").String() != c.first ||
			r.get("last_id").String() != c.last ||
			r.get("has_more").Bool() != c.more {
			t.Errorf("%q: %d %s", c.query, r.status, r.body)
		}
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "order=up": "order", "after=msg_none": "after"} {
		r := g.do("GET", "/v1/responses/"+id+"/input_items?"+query, "")
		if r.status != 400 || r.get("error.param").String() != param {
			t.Errorf("%q: %d %s", query, r.status, r.body)
		}
	}
}

// chatUpstream answers chat requests, and shows what it was asked.
func chatUpstream(t *testing.T) *upstream {
	return newUpstream(
		t,
		answerJSON(
			200,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"pong"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		),
	)
}

func TestHistoryIsPutBeforeTheInputForAForeignUpstream(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: up.URL}, catalog.Model{Pattern: "m"})
	})
	first := g.create(`{"model":"m","instructions":"be terse","input":"one"}`).get("id").String()
	second := g.create(fmt.Sprintf(`{"model":"m","input":"two","previous_response_id":%q}`, first))
	if got := second.get("previous_response_id").String(); got != first {
		t.Errorf("previous_response_id %q, want %q", got, first)
	}
	g.create(fmt.Sprintf(`{"model":"m","input":"three","previous_response_id":%q}`, second.get("id").String()))
	calls := up.all()
	last := gjson.GetBytes(calls[len(calls)-1].body, "messages").Array()
	var got []string
	for _, m := range last {
		got = append(got, m.Get("role").String()+":"+words(m.Get("content")))
	}
	if s := strings.Join(got, " "); s != "user:one assistant:pong user:two assistant:pong user:three" {
		t.Errorf("the upstream was asked %s", s)
	}
	items := g.do("GET", "/v1/responses/"+second.get("id").String()+"/input_items", "")
	if n := len(items.get("data").Array()); n != 1 {
		t.Errorf("%d input items, the history is not among them: %s", n, items.body)
	}
	unknown := g.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_none"}`)
	want(t, unknown, 404, "previous_response_not_found")
	if unknown.get("error.param").String() != "previous_response_id" {
		t.Errorf("%s", unknown.body)
	}
}

// A chain that the gateway continues itself keeps the reasoning of a responses upstream: its
// encrypted content is asked for, stored with the response and sent with the next request.
func TestReasoningIsKeptWithAChainThatTheGatewayContinues(t *testing.T) {
	thinker := newUpstream(t, answerJSON(200, `{"id":"resp_up","object":"response","created_at":1,`+
		`"status":"completed","model":"m","output":[`+
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"},`+
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text",`+
		`"text":"pong","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`))
	chat := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "chat", Shape: dialoguetest.Chat, BaseURL: chat.URL},
			catalog.Model{Pattern: "c"})
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: thinker.URL},
			catalog.Model{Pattern: "gpt-6-sol"})
	})
	id := g.create(`{"model":"c","input":"one"}`).get("id").String()
	for _, input := range []string{"two", "three"} {
		next := fmt.Sprintf(`{"model":"gpt-6-sol","input":%q,"previous_response_id":%q}`, input, id)
		id = g.create(next).get("id").String()
	}
	calls := thinker.all()
	if len(calls) != 2 {
		t.Fatalf("%d calls went upstream", len(calls))
	}
	for _, call := range calls {
		if got := gjson.GetBytes(call.body, "include").Raw; got != `["reasoning.encrypted_content"]` {
			t.Errorf("include is %s", got)
		}
	}
	got := gjson.GetBytes(calls[1].body, `input.#(type=="reasoning")`)
	if got.Get("id").Str != "rs_1" || got.Get("encrypted_content").Str != "E" {
		t.Errorf("the upstream was asked %s", calls[1].body)
	}
}

// words is a content's text, whether it is a string or parts.
func words(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.String()
	}
	return content.Get("0.text").String()
}

func TestAProvidersOwnHistoryIsLeftToIt(t *testing.T) {
	n := 0
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		answerJSON(
			200,
			fmt.Sprintf(
				`{"id":"resp_native%d","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_n%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"pong","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
				n,
				n,
			),
		)(w, r)
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	g.key("stranger", nil)
	if id := g.create(`{"model":"m","input":"one"}`).get("id").String(); id != "resp_native1" {
		t.Fatalf("id %q", id)
	}
	g.create(`{"model":"m","input":"two","previous_response_id":"resp_native1"}`)
	last := up.all()[1].body
	if gjson.GetBytes(last, "previous_response_id").String() != "resp_native1" ||
		gjson.GetBytes(last, "input").String() != "two" {
		t.Errorf("the provider was asked %s", last)
	}
	// All keys are one to the provider: it would answer a stranger too.
	stolen := g.do(
		"POST",
		"/v1/responses",
		`{"model":"m","input":"x","previous_response_id":"resp_native1"}`,
		g.as("stranger")...)
	want(t, stolen, 404, "previous_response_not_found")
	stolen = g.do(
		"POST",
		"/v1/responses",
		`{"model":"m","input":[{"type":"item_reference","id":"msg_n1"}]}`,
		g.as("stranger")...)
	want(t, stolen, 404, "item_not_found")
	// For a model of another provider the history is spelt out.
	r := g.create(`{"model":"alpha","input":"three","previous_response_id":"resp_native1"}`)
	if r.get("previous_response_id").String() != "resp_native1" {
		t.Errorf("%s", r.body)
	}
	if calls := len(up.all()); calls != 2 {
		t.Errorf("%d calls went upstream", calls)
	}
}

func TestReferencesBecomeTheItemsTheyNameBeforeAnythingElse(t *testing.T) {
	up := chatUpstream(t)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: up.URL}, catalog.Model{Pattern: "m"})
	})
	r := g.create(`{"model":"m","input":[{"type":"message","id":"msg_mine","role":"user","content":"one"}]}`)
	body := fmt.Sprintf(
		`{"model":"m","input":[{"type":"item_reference","id":"msg_mine"},{"type":"item_reference","id":%q},{"role":"user","content":"two"}]}`,
		r.get("output.0.id").String(),
	)
	next := g.create(body)
	calls := up.all()
	messages := gjson.GetBytes(calls[1].body, "messages").Array()
	if len(messages) != 3 || words(messages[0].Get("content")) != "one" ||
		messages[1].Get("role").String() != "assistant" {
		t.Errorf("the upstream was asked %s", calls[1].body)
	}
	items := g.do("GET", "/v1/responses/"+next.get("id").String()+"/input_items", "")
	if strings.Contains(string(items.body), "item_reference") {
		t.Errorf("the input was stored with references: %s", items.body)
	}
	want(t, g.do("POST", "/v1/responses", `{"model":"m","input":[{"type":"item_reference","id":"msg_none"}]}`), 404,
		"item_not_found")
}

func TestABackgroundResponseAnswersAtOnceAndEnds(t *testing.T) {
	g := open(t)
	r := g.create(`{"model":"alpha","input":"hi","background":true}`)
	if s := r.get("status").String(); s != "queued" {
		t.Errorf("status %q", s)
	}
	id := r.get("id").String()
	done := g.await(id)
	if done.get("status").String() != "completed" || len(done.get("output").Array()) == 0 {
		t.Errorf("%s", done.body)
	}
	twice := g.do("POST", "/v1/responses/"+id+"/cancel", "")
	if twice.status != 200 || twice.get("status").String() != "completed" {
		t.Errorf("cancelling what has ended: %d %s", twice.status, twice.body)
	}
	replay := g.do("GET", "/v1/responses/"+id+"?stream=true", "")
	if replay.status != 400 || replay.get("error.param").String() != "stream" {
		t.Errorf("streaming what was not created as a stream: %d %s", replay.status, replay.body)
	}
}

// await polls a response until it ends.
func (g *gateway) await(id string) reply {
	g.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		r := g.do("GET", "/v1/responses/"+id, "")
		if s := r.get("status").String(); r.status != 200 || s != "queued" && s != "in_progress" {
			return r
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("it does not end: %s", r.body)
		}
	}
}

func TestACancelledResponseStaysCancelled(t *testing.T) {
	g := open(t)
	id := g.create(`{"model":"alpha","input":"[sandbox: stall]","background":true,"stream":false}`).get("id").String()
	early := g.do("POST", "/v1/responses",
		fmt.Sprintf(`{"model":"alpha","input":"more","previous_response_id":%q}`, id))
	if early.status != 400 || early.get("error.param").String() != "previous_response_id" {
		t.Errorf("continued before its end: %d %s", early.status, early.body)
	}
	for range 2 {
		r := g.do("POST", "/v1/responses/"+id+"/cancel", "")
		if r.status != 200 || r.get("status").String() != "cancelled" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if r := g.do("GET", "/v1/responses/"+id, ""); r.get("status").String() != "cancelled" {
		t.Errorf("%s", r.body)
	}
	plain := g.create(`{"model":"alpha","input":"hi"}`).get("id").String()
	refused := g.do("POST", "/v1/responses/"+plain+"/cancel", "")
	want(t, refused, 400, "invalid_value")
}

func TestAStreamCanBeResumedLiveAndAfterItsEnd(t *testing.T) {
	g := open(t)
	first := g.create(`{"model":"alpha","input":"[sandbox: tokens=20]","background":true,"stream":true}`)
	events := first.events()
	id := events[0].Get("response.id").String()
	if last := events[len(events)-1]; last.Get("type").String() != "response.completed" {
		t.Fatalf("the stream ends with %s", last.Raw)
	}
	for i, ev := range events {
		if n := ev.Get("sequence_number").Int(); n != int64(i) {
			t.Fatalf("event %d has number %d", i, n)
		}
	}
	all := g.do("GET", "/v1/responses/"+id+"?stream=true", "")
	if string(all.body) != string(first.body) || all.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the replay differs: %s", all.body)
	}
	for _, after := range []int{0, 5, len(events) - 2, len(events) - 1, len(events) + 10} {
		rest := g.do("GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, after), "").events()
		if wantN := max(len(events)-after-1, 0); len(rest) != wantN {
			t.Errorf("after %d: %d events, want %d", after, len(rest), wantN)
		} else if wantN > 0 && rest[0].Get("sequence_number").Int() != int64(after+1) {
			t.Errorf("after %d: begins with %s", after, rest[0].Raw)
		}
	}
	bad := g.do("GET", "/v1/responses/"+id+"?stream=true&starting_after=x", "")
	if bad.status != 400 || bad.get("error.param").String() != "starting_after" {
		t.Errorf("%d %s", bad.status, bad.body)
	}
}

// TestAResponseOutlivesTheClientThatBeganIt breaks the first connection and
// follows on a second one, while the response grows.
func TestAResponseOutlivesTheClientThatBeganIt(t *testing.T) {
	g := open(t)
	web := g.listen(t)
	body := `{"model":"alpha","input":"[sandbox: tokens=40 pace=200]","background":true,"stream":true}`
	began := web.stream(t, "POST", "/v1/responses", body)
	first := began.event(t)
	began.Close()
	id := first.Get("response.id").String()
	resumed := web.stream(t, "GET", "/v1/responses/"+id+"?stream=true&starting_after=0", "")
	defer resumed.Close()
	next := int64(1)
	for {
		ev := resumed.event(t)
		if !ev.Exists() {
			break
		}
		if n := ev.Get("sequence_number").Int(); n != next {
			t.Fatalf("event %d has number %d", next, n)
		}
		next++
		if ev.Get("type").String() == "response.completed" {
			break
		}
	}
	if rest, err := io.ReadAll(resumed.body); err != nil || len(rest) > 2 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if done := g.await(id); done.get("status").String() != "completed" {
		t.Errorf("%s", done.body)
	}
}

func TestABackgroundResponseIsCountedAgainstItsKey(t *testing.T) {
	g := open(t)
	g.key("limited", func(k *identity.Key) { k.Limits = identity.Limits{TPM: 1000} })
	body := `{"model":"alpha","input":"hi","background":true,"max_output_tokens":900}`
	if r := g.do("POST", "/v1/responses", body, g.as("limited")...); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	want(t, g.do("POST", "/v1/responses", body, g.as("limited")...), 429, "rate_limit_exceeded")
}

// An owner that keeps as many responses as it may is refused before the provider is
// asked, without a word to try again. Others, and requests that store nothing, are served.
func TestOwnerBeyondItsQuotaOfStoredResponsesIsRefused(t *testing.T) {
	u := newUpstream(t, answerJSON(200, wholeAnswer))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: u.URL + "/v1"},
			catalog.Model{Pattern: "dear"})
	})
	g.key("other", nil)
	work.SetResponseQuota(g.state, work.Quota{Responses: 2, Bytes: 10 << 20})
	g.create(`{"model":"dear","input":"hi"}`)
	kept := g.create(`{"model":"dear","input":"hi"}`).get("id").Str
	asked := len(u.all())
	for _, body := range []string{`{"model":"dear","input":"hi"}`, `{"model":"dear","input":"hi","stream":true}`, `{"model":"dear","input":"hi","background":true}`} {
		r := g.do("POST", "/v1/responses", body)
		want(t, r, 403, "storage_quota_exceeded")
		if r.header.Get("X-Should-Retry") != "false" ||
			!strings.Contains(r.get("error.message").Str, "2 responses and 10 MiB") {
			t.Errorf("%v %s", r.header, r.body)
		}
	}
	if n := len(u.all()); n != asked {
		t.Errorf("the provider was asked %d times more", n-asked)
	}
	g.create(`{"model":"dear","input":"hi","store":false}`)
	if r := g.do("POST", "/v1/responses", `{"model":"dear","input":"hi"}`, g.as("other")...); r.status != 200 {
		t.Errorf("another owner: %d %s", r.status, r.body)
	}
	g.do("DELETE", "/v1/responses/"+kept, "")
	g.create(`{"model":"dear","input":"hi"}`)
}

// providerOfResponses answers as a provider that keeps responses; deletions are
// answered with status.
func providerOfResponses(t *testing.T, deletions *[]string, status int) *upstream {
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			*deletions = append(*deletions, r.URL.Path)
			answerJSON(status, `{"id":"resp_kept","object":"response","deleted":true}`)(w, r)
			return
		}
		answerJSON(
			200,
			`{"id":"resp_kept","object":"response","created_at":1,"status":"completed","model":"m","output":[],"usage":null}`,
		)(w, r)
	})
}

// TestAResponseOfAProviderThatIsGoneCanBeDeleted removes a provider from the configuration first.
func TestAResponseOfAProviderThatIsGoneCanBeDeleted(t *testing.T) {
	var deletions []string
	up := providerOfResponses(t, &deletions, 200)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	g.create(`{"model":"m","input":"one"}`)
	if err := g.runtime.Configure(t.Context(), new(catalog.Catalog), nil); err != nil {
		t.Fatal(err)
	}
	want(t, g.do("DELETE", "/v1/responses/resp_kept", ""), 200, "")
	if len(deletions) != 0 || !work.KnowsResponse(g.state.View(), "resp_kept") {
		t.Errorf("the provider was asked to delete %q", deletions)
	}
}

func TestADeletedResponseIsDeletedAtItsProvider(t *testing.T) {
	var deletions []string
	up := providerOfResponses(t, &deletions, 200)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	g.create(`{"model":"m","input":"one"}`)
	want(t, g.do("DELETE", "/v1/responses/resp_kept", ""), 200, "")
	if len(deletions) != 1 || deletions[0] != "/responses/resp_kept" {
		t.Errorf("the provider was asked to delete %q", deletions)
	}
	before := len(up.all())
	want(t, g.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_kept"}`), 404,
		"previous_response_not_found")
	want(t, g.do("DELETE", "/v1/responses/resp_kept", ""), 404, "response_not_found")
	if len(up.all()) != before {
		t.Error("the id of a deleted response was passed on")
	}
}

func TestAResponseThatItsProviderKeepsIsKeptHere(t *testing.T) {
	var deletions []string
	up := providerOfResponses(t, &deletions, 500)
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	g.create(`{"model":"m","input":"one"}`)
	if r := g.do("DELETE", "/v1/responses/resp_kept", ""); r.status < 500 {
		t.Errorf("%d %s", r.status, r.body)
	}
	want(t, g.do("GET", "/v1/responses/resp_kept", ""), 200, "")
}

func TestUnknownResponsesArePassedOnlyWhereThatIsConfigured(t *testing.T) {
	for _, pass := range []bool{false, true} {
		var deletions []string
		up := providerOfResponses(t, &deletions, 200)
		g := open(t, func(g *gateway) {
			g.provider(
				catalog.Provider{
					Name:                 "up",
					Shape:                dialoguetest.Responses,
					BaseURL:              up.URL,
					PassUnknownResponses: pass,
				},
				catalog.Model{Pattern: "m"},
			)
		})
		r := g.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_elsewhere"}`)
		if pass {
			want(t, r, 200, "")
		} else {
			want(t, r, 404, "previous_response_not_found")
		}
	}
}

// The id of a response that was deleted, evicted or has expired, and of another owner's, is
// not passed on for 30 days after its removal, also where unknown ids are.
func TestADeletedResponseStaysUnknownWhereUnknownOnesArePassedOn(t *testing.T) {
	var made atomic.Int64
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			answerJSON(200, `{"object":"response","deleted":true}`)(w, r)
			return
		}
		answerJSON(200, fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1,"status":"completed",`+
			`"model":"m","output":[],"usage":null}`, made.Add(1)))(w, r)
	})
	setUp := func(g *gateway) {
		p := catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL, PassUnknownResponses: true}
		g.provider(p, catalog.Model{Pattern: "m"})
		g.options = []work.Option{work.MaxResponses(2)}
	}
	g := open(t, setUp)
	g.key("other", nil)
	const body, deleted, evicted, expired, others = `{"model":"m","input":"x"}`, "resp_1", "resp_2", "resp_3", "resp_4"
	sweep := func() {
		if _, err := g.state.Sweep(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(id string) reply {
		return g.do("POST", "/v1/responses", `{"model":"m","input":"x","store":false,"previous_response_id":"`+id+`"}`)
	}
	unknown := func(ids ...string) {
		t.Helper()
		before := len(up.all())
		for _, id := range ids {
			want(t, follow(id), 404, "previous_response_not_found")
			want(t, g.do("GET", "/v1/responses/"+id, ""), 404, "response_not_found")
			want(t, g.do("GET", "/v1/responses/"+id+"/input_items", ""), 404, "response_not_found")
			want(t, g.do("POST", "/v1/responses/"+id+"/cancel", ""), 404, "response_not_found")
			want(t, g.do("DELETE", "/v1/responses/"+id, ""), 404, "response_not_found")
		}
		if n := len(up.all()) - before; n != 0 {
			t.Errorf("the provider was asked %d times", n)
		}
	}
	g.create(body)
	want(t, g.do("DELETE", "/v1/responses/"+deleted, ""), 200, "")
	g.create(body)
	g.create(body)
	want(t, g.do("POST", "/v1/responses", body, g.as("other")...), 200, "")
	sweep()
	unknown(deleted, evicted, others)
	want(t, g.do("GET", "/v1/responses/"+expired, ""), 200, "")

	const day = 24 * time.Hour
	g.later.Store(int64(30*day - time.Hour))
	unknown(deleted, evicted, others)
	g.later.Store(int64(30*day + time.Hour))
	unknown(expired, others) // before they are swept
	sweep()
	unknown(expired, others)
	g.close()
	secrets := g.secrets
	g = open(t, setUp, func(next *gateway) {
		next.store, next.secrets = g.store, secrets
		next.later.Store(int64(59 * day))
	})
	unknown(expired, others)
	want(t, follow(deleted), 200, "")
	want(t, follow(evicted), 200, "")
	g.later.Store(int64(61 * day))
	want(t, follow(expired), 200, "")
	want(t, follow(others), 200, "")
}
