package responsesocket_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
)

// create is a response.create message with more members, whose response is not stored.
func create(model, input string, more ...string) string {
	return createOf(model, strconv.Quote(input), append(more, `,"store":false`)...)
}

// createOf is a message with JSON as its input.
func createOf(model, input string, more ...string) string {
	return fmt.Sprintf(`{"type":"response.create","model":%q,"input":%s%s}`, model, input, strings.Join(more, ""))
}

// after and lane are members of a message.
func after(id string) string  { return `,"previous_response_id":"` + id + `"` }
func lane(name string) string { return `,"stream_id":"` + name + `"` }

const (
	notStored = `,"store":false`
	kind      = `,"instructions":"be kind"`
	warmUp    = `,"generate":false`
	effort    = `,"reasoning":{"effort":"low"}`
)

// forgotten sends a message whose previous response is not known.
func (c *client) forgotten(message, stream string) {
	c.t.Helper()
	c.refused(message, 400, "previous_response_not_found", "previous_response_id", stream)
}

func TestTheUpgradeTakesAnyBetaHeaderAndChecksTheKeyBefore(t *testing.T) {
	g := open(t)
	g.key("images", func(k *identity.Key) { k.Scopes = []string{"images"} })
	for _, beta := range []string{"", "responses_websockets=2026-02-06", "something=else"} {
		headers := []string{"Sec-Websocket-Protocol", "one, two", "Idempotency-Key", "once" + beta}
		if beta != "" {
			headers = append(headers, "OpenAI-Beta", beta, "X-Codex-Turn-Metadata", "{\"cwd\":\"/home/j\xc3\xbcrg\"}")
		}
		c, res, err := g.dial("all", headers...)
		if err != nil || res.Header.Get("X-Request-Id") == "" || c.Subprotocol() != "one" {
			t.Fatalf("with %q: %v, %v", beta, res, err)
		}
		for _, input := range []string{"hi", "another"} { // the header does not make the requests the same
			if r := c.turn(create("sandbox", input)); r.Get("status").Str != "completed" {
				t.Errorf("got %s", r.Raw)
			}
		}
	}
	for name, want := range map[string]struct {
		key     string
		headers []string
		status  int
	}{
		"no key":        {"", nil, 401},
		"unknown key":   {"", []string{"Authorization", "Bearer sd-wrong"}, 401},
		"foreign scope": {"images", nil, 403},
		"foreign page":  {"all", []string{"Origin", "https://evil.example"}, 403},
		"dry run":       {"all", []string{"X-Dry-Run", "1"}, 400}, // its requests would be done
	} {
		if _, res, err := g.dial(want.key, want.headers...); err == nil || res == nil || res.StatusCode != want.status {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if _, _, err := g.dial("all", "Origin", "https://gateway.example"); err != nil {
		t.Errorf("an own page: %v", err)
	}
}

func TestASwitchedOffSocketIs426AndAPlainGetIs405(t *testing.T) {
	g := open(t)
	for range 2 {
		res, body := g.do("GET", "/v1/responses", "", "all")
		if res.StatusCode != 405 || res.Header.Get("Allow") != "POST" ||
			gjson.Get(body, "error.code").Str != "method_not_allowed" {
			t.Errorf("a plain GET gets %d %v %s", res.StatusCode, res.Header, body)
		}
		g.off = true
	}
	_, res, err := g.dial("all")
	if err == nil || res.StatusCode != 426 || !res.Close || res.Header.Get("Upgrade") != "websocket" {
		t.Errorf("switched off: %v, %v", res, err)
	}
	if _, res, _ := g.dial(""); res.StatusCode != 426 {
		t.Errorf("switched off without a key: %v", res)
	}
}

// A conversation is continued over a connection as over HTTP. A warm-up uses nothing and adds nothing, and a response
// that is not stored can be continued by its id with all that came before it.
func TestAConversationIsContinuedOverAConnection(t *testing.T) {
	g := open(t)
	_, created := g.do("POST", "/v1/conversations", `{"items":[{"role":"user","content":"zero"}]}`, "all")
	id := gjson.Get(created, "id").Str
	conversation := `,"conversation":"` + id + `"`
	c := g.connect()
	c.turn(create("sandbox", "warm", warmUp, conversation))
	first := c.turn(create("sandbox", "one", conversation))
	second := c.turn(create("sandbox", "two", conversation))
	if first.Get("conversation.id").Str != id || second.Get("conversation.id").Str != id {
		t.Errorf("got %s, %s", first.Raw, second.Raw)
	}
	_, items := g.do("GET", "/v1/conversations/"+id+"/items?order=asc", "", "all")
	var said []string
	for _, it := range gjson.Get(items, "data").Array() {
		if it.Get("role").Str == "user" {
			said = append(said, it.Get("content.0.text").Str)
		}
	}
	if got := strings.Join(said, " "); got != "zero one two" {
		t.Errorf("the user said %q", got)
	}
	third := c.turn(create("sandbox", "three", after(second.Get("id").Str)))
	if used := third.Get("usage.input_tokens").Int(); used <= second.Get("usage.input_tokens").Int() {
		t.Errorf("%d tokens after %s", used, second.Get("usage").Raw)
	}
	c.refused(create("sandbox", "x", `,"conversation":"conv_none"`), 404, "conversation_not_found", "conversation", "")
}

// The messages of a response are the data of the events over HTTP.
func TestMessagesAreTheEventsOverHTTP(t *testing.T) {
	g := open(t)
	c := g.connect()
	c.say(create("sandbox", "Hello [sandbox: tokens=4]", `,"stream":false,"client_metadata":{"a":"b"},"unknown":1`))
	socket := c.until("response.completed")
	_, body := g.do("POST", "/v1/responses",
		`{"model":"sandbox","input":"Hello [sandbox: tokens=4]","store":false,"stream":true}`, "all")
	var stream []gjson.Result
	for _, line := range strings.Split(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			stream = append(stream, gjson.Parse(data))
		}
	}
	if len(socket) != len(stream) {
		t.Fatalf("%d messages, %d events", len(socket), len(stream))
	}
	for i, m := range socket {
		for _, path := range []string{"type", "sequence_number", "delta", "item.type", "response.status",
			"response.usage.total_tokens"} {
			if m.Get(path).Raw != stream[i].Get(path).Raw {
				t.Errorf("message %d: %s, over HTTP %s", i, m.Raw, stream[i].Raw)
			}
		}
		if m.Get("stream_id").Exists() || m.Get("sequence_number").Int() != int64(i) {
			t.Errorf("message %d: %s", i, m.Raw)
		}
	}
	// Each create is a request of its own in the log, below the connection's id.
	await(t, "the request is logged", func() bool {
		return strings.Contains(g.log.String(), `"request_id":"`+c.id+`-1"`)
	})
}

func TestEveryMistakeHasItsErrorAndTheConnectionStays(t *testing.T) {
	g := open(t)
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}`)
	}
	c := g.connect()
	deep := strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000)
	for _, m := range []struct {
		message     string
		status      int64
		code, param string
		stream      string
	}{
		{`{"type":`, 400, "invalid_json", "", ""},
		{``, 400, "invalid_json", "", ""},
		{`[]`, 400, "invalid_json", "", ""},
		{`{"type":"response.create","input":` + deep + `}`, 400, "invalid_json", "", ""},
		{`{"type":"response.create","type":"response.create"}`, 400, "duplicate_key", "type", ""},
		{`{}`, 400, "unsupported_event_type", "type", ""},
		{`{"type":"response.append","stream_id":"a"}`, 400, "unsupported_event_type", "type", "a"},
		{`{"type":"response.cancel"}`, 400, "unsupported_event_type", "type", ""},
		{`{"type":"response.inject"}`, 400, "unsupported_event_type", "type", ""},
		{create("sandbox", "hi", `,"stream_id":""`), 400, "invalid_stream_id", "stream_id", ""},
		{create("sandbox", "hi", `,"stream_id":"a b"`), 400, "invalid_stream_id", "stream_id", ""},
		{create("sandbox", "hi", `,"stream_id":7`), 400, "invalid_stream_id", "stream_id", ""},
		{create("sandbox", "hi", `,"stream_id":null`), 400, "invalid_stream_id", "stream_id", ""},
		{create("sandbox", "hi", lane(strings.Repeat("a", 257))), 400, "invalid_stream_id", "stream_id", ""},
		{create("sandbox", "hi", `,"background":true`, lane("a")), 400, "unsupported_parameter", "background", "a"},
		{create("sandbox", "hi", `,"generate":1`), 400, "invalid_value", "generate", ""},
		{create("sandbox", "hi", `,"temperature":7,"stream_id":"a"`), 400, "invalid_value", "temperature", "a"},
		{`{"type":"response.create","input":"hi"}`, 400, "missing_required_parameter", "model", ""},
		{create("nothing", "hi"), 404, "model_not_found", "model", ""},
		{create("sandbox", "hi", after("resp_x")), 400, "previous_response_not_found", "previous_response_id", ""},
		{create("script", "hi"), 429, "rate_limit_exceeded", "", ""},
	} {
		e := c.refused(m.message, m.status, m.code, m.param, m.stream)
		if m.status == 429 && (e.Get("headers.retry-after").Str == "" || e.Get("error.headers.retry-after").Str == "") {
			t.Errorf("no Retry-After: %s", e.Raw)
		}
	}
	if err := c.WriteMessage(websocket.BinaryMessage, []byte(create("sandbox", "hi"))); err != nil {
		t.Fatal(err)
	}
	c.isError(400, "invalid_json", "", "")
	c.say(`{"type":"response.processed","response_id":"resp_1"}`) // has no answer
	c.say(`{"type":"response.steer","stream_id":"a","previous_response_id":"resp_1","input":"stop"}`)
	if m := c.hear(); m.Get("type").Str != "response.steer.failed" || m.Get("stream_id").Str != "a" ||
		m.Get("error.code").Str != "steering_not_supported" || m.Get("steer.input").Str != "stop" ||
		m.Get("steer.previous_response_id").Str != "resp_1" {
		t.Errorf("got %s", m.Raw)
	}
	c.turn(create("sandbox", "still here", lane("a")))
}

func TestAKeysLimitsCountEachCreateAndNotTheConnection(t *testing.T) {
	g := open(t)
	g.key("slow", func(k *identity.Key) { k.Limits = identity.Limits{RPM: 2, Concurrency: 1} })
	c, _, err := g.dial("slow")
	if err != nil {
		t.Fatal(err)
	}
	c.turn(create("sandbox", "one"))
	c.turn(create("sandbox", "two", `,"generate":false`))
	e := c.refused(create("sandbox", "three"), 429, "rate_limit_exceeded", "", "")
	if e.Get("headers.x-ratelimit-limit-requests").Str != "2" || e.Get("headers.x-request-id").Str != c.id+"-3" {
		t.Errorf("got %s", e.Raw)
	}
}

func TestAWarmUpIsAnsweredHereAndFree(t *testing.T) {
	g := open(t)
	c := g.connect()
	for _, input := range []string{`[]`, `[{"type":"message","role":"user","content":"my first word"}]`} {
		c.say(createOf("chat", input, kind, warmUp, notStored))
		all := c.until("response.completed")
		warm := all[len(all)-1].Get("response")
		if len(all) != 2 || all[0].Get("type").Str != "response.created" || warm.Get("output").Raw != "[]" ||
			warm.Get("usage.total_tokens").Raw != "0" || g.count() != 0 {
			t.Fatalf("got %v after %d calls", all, g.count())
		}
		delta, want := `[]`, "my first word"
		if input == "[]" {
			delta, want = `[{"role":"user","content":"delta"}]`, "delta"
		}
		r := c.turn(createOf("chat", delta, kind, notStored, after(warm.Get("id").Str)))
		sent := g.last().body
		users := sent.Get(`messages.#(role=="user")#`).Array()
		if len(users) != 1 || !strings.Contains(users[0].Raw, want) ||
			sent.Get("generate").Exists() || r.Get("previous_response_id").Str != warm.Get("id").Str {
			t.Errorf("the upstream got %s, the client %s", sent.Raw, r.Raw)
		}
		g.mu.Lock()
		g.calls = nil
		g.mu.Unlock()
	}
	await(t, "the warm-up has no receipt of a charge", func() bool {
		res, _ := g.do("GET", "/v1/receipts/"+c.id+"-1", "", "all")
		return res.StatusCode == 404
	})
}

const weather = `,"tools":[{"type":"function","name":"get_weather","strict":true,"parameters":{"type":"object",
	"properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}]`

// A turn continues from one that is not stored, through a tool call and with reasoning, whatever the upstream speaks.
// Transport-only members reach no upstream.
func TestATurnContinuesFromTheConnectionOnEveryUpstream(t *testing.T) {
	g := open(t)
	const transport = `,"client_metadata":{"x":"y"},"access_programs":["a"],
		"stream_options":{"reasoning_summary_delivery":"fast"}`
	for _, model := range []string{"chat", "messages", "gemini", "responses", "sandbox"} {
		t.Run(model, func(t *testing.T) {
			c := g.connect()
			c.t = t
			first := c.turn(create(model, "Please use the get_weather tool for Oslo.", weather, transport, effort))
			made := first.Get(`output.#(type=="function_call")`)
			if made.Get("name").Str != "get_weather" {
				t.Fatalf("no call: %s", first.Raw)
			}
			output := fmt.Sprintf(`[{"type":"function_call_output","call_id":%q,"output":"rain in Oslo"}]`,
				made.Get("call_id").Str)
			second := c.turn(createOf(model, output, notStored, after(first.Get("id").Str), weather, transport, effort))
			if second.Get("previous_response_id").Str != first.Get("id").Str ||
				second.Get(`output.#(type=="message")`).Raw == "" {
				t.Fatalf("got %s", second.Raw)
			}
			third := c.turn(create(model, "and now?", after(second.Get("id").Str)))
			if third.Get("status").Str != "completed" {
				t.Errorf("got %s", third.Raw)
			}
			if model == "sandbox" {
				return
			}
			sent := g.last().body.Raw
			sent = strings.NewReplacer(`"args":`, `"arguments":`, `"input":{`, `"arguments":{`).Replace(sent)
			for _, piece := range []string{"Please use the get_weather", `rain in Oslo"`, "and now?", `"arguments":`} {
				if n := strings.Count(sent, piece); n != 1 {
					t.Errorf("%q is %d times in %s", piece, n, sent)
				}
			}
			for _, name := range []string{"previous_response_id", "stream_id", "generate", "client_metadata",
				"access_programs", "reasoning_summary_delivery"} {
				if strings.Contains(sent, `"`+name+`"`) {
					t.Errorf("%s is in %s", name, sent)
				}
			}
			// The id is good on this connection only.
			if res, _ := g.do("GET", "/v1/responses/"+third.Get("id").Str, "", "all"); res.StatusCode != 404 {
				t.Errorf("a response that is not stored can be read: %d", res.StatusCode)
			}
			again := g.connect()
			again.forgotten(create(model, "hi", after(third.Get("id").Str)), "")
			// A model of another shape continues from it, too.
			other := map[bool]string{true: "messages", false: "chat"}[model == "chat"]
			if r := c.turn(create(other, "on", after(third.Get("id").Str))); r.Get("status").Str != "completed" {
				t.Errorf("switched: %s", r.Raw)
			}
		})
	}
}

// Stored responses continue on every connection of their owner and on no other's, and chains may mix.
func TestStoredResponsesContinueOnAnyConnectionOfTheirOwner(t *testing.T) {
	g := open(t)
	stored := func(input, previous string) string {
		return createOf("responses", strconv.Quote(input), after(previous))
	}
	first := g.connect().turn(createOf("responses", `"one"`)).Get("id").Str
	if res, _ := g.do("GET", "/v1/responses/"+first, "", "all"); res.StatusCode != 200 {
		t.Fatalf("the response was not stored: %d", res.StatusCode)
	}
	stranger, _, err := g.dial("other")
	if err != nil {
		t.Fatal(err)
	}
	stranger.forgotten(stored("mine", first), "")
	c := g.connect()
	// not stored after stored: the connection has all of it
	second := c.turn(create("responses", "two", after(first))).Get("id").Str
	third := c.turn(create("chat", "three", after(second))).Get("id").Str
	// stored after not stored: the store has all of it
	fourth := c.turn(stored("four", third)).Get("id").Str
	last := g.connect().turn(stored("five", fourth))
	if last.Get("previous_response_id").Str != fourth {
		t.Errorf("got %s", last.Raw)
	}
	_, body := g.do("GET", "/v1/responses/"+fourth+"/input_items?order=asc", "", "all")
	for _, word := range []string{`"one"`, `"two"`, `"three"`, `"four"`} {
		if strings.Count(body, `"text":`+word) != 1 {
			t.Errorf("%s is not once in %s", word, body)
		}
	}
}

func TestAFailedTurnEvictsItsLanesResponseAndAForkKeepsIt(t *testing.T) {
	g := open(t)
	c := g.connect()
	first := c.turn(create("sandbox", "one", lane("a"))).Get("id").Str
	previous := after(first)
	c.refused(create("sandbox", "fork [sandbox: status=500]", previous, lane("b")), 500, "sandbox_500", "", "b")
	second := c.turn(create("sandbox", "two", previous, lane("a"))).Get("id").Str
	// the parent is not the newest any more
	c.forgotten(create("sandbox", "late fork", previous, lane("b")), "b")
	previous = after(second)
	fork := c.turn(create("sandbox", "fork", previous, lane("b")))
	if fork.Get("previous_response_id").Str != second {
		t.Errorf("got %s", fork.Raw)
	}
	c.refused(create("sandbox", "three [sandbox: status=400]", previous, lane("a")), 400, "sandbox_400", "", "a")
	c.forgotten(create("sandbox", "three", previous, lane("a")), "a")
	// a failure in the middle evicts as well, and ends the response with one failed event
	third := c.turn(create("sandbox", "again", lane("a"))).Get("id").Str
	c.say(create("sandbox", "x [sandbox: error=2]", after(third), lane("a")))
	for {
		m := c.hear()
		if m.Get("type").Str == "response.failed" {
			break
		}
		if m.Get("type").Str == "error" || m.Get("type").Str == "response.completed" {
			t.Fatalf("got %s", m.Raw)
		}
	}
	c.forgotten(create("sandbox", "x", after(third), lane("a")), "a")
}

// An upstream whose stream has an error event makes a failed response if the response had begun, else an error.
func TestAnErrorEventOfTheUpstreamEndsTheResponse(t *testing.T) {
	g := open(t)
	begun := true
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if begun {
			fmt.Fprint(w, scriptedStart)
		}
		fmt.Fprint(w, `data: {"type":"error","sequence_number":1,"code":"server_is_overloaded",`+
			`"message":"busy","param":null}`+"\n\n")
	}
	c := g.connect()
	c.say(create("script", "hi"))
	if m := c.until("response.failed"); m[len(m)-1].Get("response.status").Str != "failed" ||
		m[len(m)-1].Get("response.error.code").Str != "server_is_overloaded" {
		t.Errorf("got %v", m)
	}
	begun = false
	c.refused(create("script", "hi"), 503, "server_is_overloaded", "", "")
}

func TestLanesRunInParallelAndEachInOrder(t *testing.T) {
	g := open(t)
	three := make(chan struct{}) // closed when the client knows of three responses
	g.scripts = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, scriptedStart+scriptedItem)
		w.(http.Flusher).Flush()
		select {
		case <-three:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, scriptedEnd)
	}
	c := g.connect()
	c.say(create("script", "first of a", lane("a")))
	c.say(create("script", "second of a", lane("a")))
	c.say(create("script", "b", lane("b")))
	c.say(create("script", "no lane"))
	open, created, ended := map[string]bool{}, 0, 0
	for ended < 4 {
		m := c.hear()
		name := m.Get("stream_id").Str
		switch m.Get("type").Str {
		case "response.created":
			if open[name] {
				t.Errorf("two responses of %q at a time", name)
			}
			open[name] = true
			if created++; created == 3 {
				close(three) // until then none of them can end
			}
		case "response.completed":
			delete(open, name)
			ended++
		case "error":
			t.Fatal(m.Raw)
		}
	}
}

func TestThe17thResponseWaitsAndThe33rdNameIsRefused(t *testing.T) {
	g := open(t)
	c := g.connect()
	for i := range 32 {
		c.say(create("sandbox", "[sandbox: stall=1]", lane(fmt.Sprint("lane-", i))))
	}
	c.say(create("sandbox", "one too many", `,"stream_id":"lane-32"`))
	created := 0
	for seen := false; !seen || created < 16; {
		m := c.hear()
		switch m.Get("type").Str {
		case "response.created":
			created++
		case "error":
			seen = true
			if m.Get("error.code").Str != "websocket_stream_limit_reached" || m.Get("stream_id").Str != "lane-32" ||
				m.Get("error.param").Str != "stream_id" || m.Get("status").Int() != 400 {
				t.Fatal(m.Raw)
			}
		}
	}
	if n := g.runtime.Text().InFlight(); n != 16 {
		t.Errorf("%d requests run, want 16", n)
	}
	// The queue is bounded, too: 16 wait already.
	for range 48 {
		c.say(create("sandbox", "more"))
	}
	c.say(create("sandbox", "one too many"))
	for {
		if m := c.hear(); m.Get("type").Str == "error" {
			if m.Get("error.code").Str != "websocket_queue_full" || m.Get("status").Int() != 429 {
				t.Error(m.Raw)
			}
			break
		}
	}
	c.Close()
	await(t, "what ran has ended", func() bool { return g.runtime.Text().InFlight() == 0 })
}

func TestAClosedConnectionCancelsWhatRunsAndSettlesItOnce(t *testing.T) {
	g := open(t)
	g.key("payer", func(k *identity.Key) { k.User = "7" })
	if err := g.runtime.Ledger().Credit(t.Context(), "7", 100_000, "test"); err != nil {
		t.Fatal(err)
	}
	c, _, err := g.dial("payer")
	if err != nil {
		t.Fatal(err)
	}
	c.say(create("dear", "hello [sandbox: stall=3]", `,"max_output_tokens":60`))
	for deltas := 0; deltas < 3; {
		if c.hear().Get("type").Str == "response.output_text.delta" {
			deltas++
		}
	}
	c.Close()
	await(t, "the request has ended", func() bool { return g.runtime.Text().InFlight() == 0 })
	var receipt string
	await(t, "the receipt", func() bool {
		res, body := g.do("GET", "/v1/receipts/"+c.id+"-1", "", "payer")
		receipt = body
		return res.StatusCode == 200
	})
	charged := gjson.Get(receipt, "charged").Int()
	if gjson.Get(receipt, "end_reason").Str != "client_left" || charged < 30 {
		t.Errorf("got %s", receipt)
	}
	await(t, "nothing is held", func() bool {
		b, err := g.runtime.Ledger().Balance(t.Context(), "7")
		return err == nil && b.Held == 0 && b.Spent == charged
	})
	await(t, "the log has the status of a client that left", func() bool {
		for _, line := range strings.Split(g.log.String(), "\n") {
			if gjson.Get(line, "request_id").Str == c.id+"-1" && gjson.Get(line, "status").Int() == 499 {
				return true
			}
		}
		return false
	})
}

// An upstream may spread an event over lines of data, and may end after it has completed a response.
func TestAnEventOfSeveralLinesIsOneMessage(t *testing.T) {
	g := open(t)
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		spread := strings.ReplaceAll(strings.TrimSuffix(scriptedItem, "\n\n"), `,"item"`, ",\ndata: \"item\"")
		fmt.Fprint(w, ": comment\n\n"+scriptedStart+spread+"\r\n\r\n"+scriptedEnd+"data: [DONE]\n\n")
	}
	c := g.connect()
	c.say(create("script", "hi", lane("a")))
	var kinds []string
	for _, m := range c.until("response.completed") {
		kinds = append(kinds, m.Get("type").Str)
		if m.Get("stream_id").Str != "a" {
			t.Errorf("got %s", m.Raw)
		}
	}
	if got := strings.Join(kinds, " "); got != "response.created response.output_item.done response.completed" {
		t.Errorf("got %s", got)
	}
	// The output came with its own event, and not with the end.
	c.turn(create("script", "on", lane("a"), after("resp_1")))
	if n := len(g.last().body.Get("input").Array()); n != 3 || g.last().body.Get("input.1.id").Str != "msg_1" {
		t.Errorf("the upstream got %s", g.last().body.Raw)
	}
}

// A response that fails in the middle of a large request names itself and its error.
func TestALargeResponseThatFailsIsNamed(t *testing.T) {
	g := open(t)
	c := g.connect()
	c.say(create("sandbox", "x [sandbox: error=2]", `,"instructions":"`+strings.Repeat("word ", 20<<10)+`"`))
	all := c.until("response.failed")
	last := all[len(all)-1]
	if id := all[0].Get("response.id").Str; id == "" || last.Get("response.id").Str != id ||
		last.Get("response.error.code").Str == "" || last.Get("response.status").Str != "failed" {
		t.Errorf("got %.300s", last.Raw)
	}
}

// Each request is checked by itself: a balance that is spent is an error with its own type.
func TestARequestWithoutBalanceIsRefused(t *testing.T) {
	g := open(t)
	g.key("poor", func(k *identity.Key) { k.User = "8" })
	c, _, err := g.dial("poor")
	if err != nil {
		t.Fatal(err)
	}
	e := c.refused(create("dear", "hi"), 429, "insufficient_quota", "", "")
	if e.Get("error.type").Str != "insufficient_quota" || e.Get("headers.x-should-retry").Str != "false" {
		t.Errorf("got %s", e.Raw)
	}
	c.turn(create("dear", "hi", warmUp)) // costs nothing
	c.turn(create("sandbox", "hi"))
}

// An input that has a compacted conversation stands for all that came before.
func TestACompactedConversationIsNotRepeated(t *testing.T) {
	g := open(t)
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, scriptedStart+scriptedItem+scriptedEnd)
	}
	c := g.connect()
	c.turn(create("script", "long story"))
	c.turn(createOf("script", `[{"type":"compaction","encrypted_content":"abc"},{"role":"user","content":"on"}]`,
		notStored, after("resp_1")))
	if sent := g.last().body.Get("input"); len(sent.Array()) != 2 || strings.Contains(sent.Raw, "long story") {
		t.Errorf("the upstream got %s", sent.Raw)
	}
}

// Codex compacts over its connection, on every upstream.
func TestAConversationIsCompactedOverItsConnection(t *testing.T) {
	g := open(t)
	c := g.connect()
	const story = `{"role":"user","content":"wish"},{"role":"assistant","content":"long story"}`
	c.say(createOf("chat", "["+story+`,{"type":"compaction_trigger"}]`, notStored))
	all := c.until("response.completed")
	compacted := all[len(all)-1].Get("response")
	if all[len(all)-2].Get("type").Str != "response.output_item.done" || compacted.Get("output.#").Int() != 1 ||
		compacted.Get("output.0.type").Str != "compaction" {
		t.Errorf("got %v", all)
	}
	c.turn(createOf("chat", `[{"role":"user","content":"on"}]`, notStored, after(compacted.Get("id").Str)))
	sent := g.last().body.Get("messages").Raw
	if strings.Contains(sent, "long story") || !strings.Contains(sent, "replaced by this summary") ||
		!strings.Contains(sent, "wish") || strings.Contains(sent, "Call no tool") {
		t.Errorf("the upstream got %s", sent)
	}
}

// The connection puts the compacted conversation before the input, after the request was checked.
func TestACompactedConversationThatIsContinuedGoesBackToItsMaker(t *testing.T) {
	const item = `{"id":"cmp_1","type":"compaction","encrypted_content":"opaque"}`
	g := open(t, func(g *gateway) { g.signatures = dialoguetest.SignatureMap{} })
	g.scripts = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		done := scriptedItem
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "compaction_trigger") {
			done = `data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":` + item +
				"}\n\n"
		}
		fmt.Fprint(w, scriptedStart+done+scriptedEnd)
	}
	c := g.connect()
	c.turn(create("two", "plain"))
	if path := g.last().path; path != "/first/responses" {
		t.Fatalf("a plain request went to %s", path)
	}
	c.turn(createOf("script", `[{"role":"user","content":"wish"},{"type":"compaction_trigger"}]`, notStored))
	id := c.turn(createOf("two", `[`+item+`,{"role":"user","content":"on"}]`, notStored)).Get("id").Str
	for range 2 {
		id = c.turn(createOf("two", `[{"role":"user","content":"next"}]`, notStored, after(id))).Get("id").Str
		last := g.last()
		if last.path != "/v1/responses" || last.body.Get("input.0.encrypted_content").Str != "opaque" {
			t.Errorf("%s was sent %s", last.path, last.body.Raw)
		}
	}
}

// The numbers of a reply that passes through are those of its upstream, which may begin anywhere and leave some out.
func TestAClientAttachesByTheNumbersThatTheUpstreamGave(t *testing.T) {
	g := open(t)
	numbers := []int{3, 4, 7, 8, 9}
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, n := range numbers {
			event := `"response.output_text.delta","item_id":"msg_1","delta":"x"`
			switch i {
			case 0:
				event = `"response.created",` + scriptedResponse + `"status":"in_progress"}`
			case len(numbers) - 1:
				event = `"response.completed",` + scriptedResponse + `"status":"completed"}`
			}
			fmt.Fprintf(w, `data: {"type":%s,"sequence_number":%d}`+"\n\n", event, n)
		}
	}
	res, _ := g.do("POST", "/v1/responses", `{"model":"script","stream":true,"store":false,"input":"hi"}`, "all",
		"X-On-Disconnect", "detach")
	c := g.connect()
	for after, want := range map[int][]int64{0: {3, 4, 7, 8, 9}, 3: {4, 7, 8, 9}, 5: {7, 8, 9}, 8: {9}, 50: {9}} {
		c.say(fmt.Sprintf(`{"type":"stagedoor.attach","request_id":%q,"starting_after":%d}`,
			res.Header.Get("X-Request-Id"), after))
		var got []int64
		for _, m := range c.until("response.completed") {
			got = append(got, m.Get("sequence_number").Int())
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d: got %v, want %v", after, got, want)
		}
	}
}

// A client that has lost its connection goes on reading its response on another one, as over HTTP, and a repeated
// request is not made again.
func TestAClientAttachesToAResponseThatIsKept(t *testing.T) {
	g := open(t)
	detached, _, err := g.dial("all", "X-On-Disconnect", "detach")
	if err != nil {
		t.Fatal(err)
	}
	detached.say(createOf("chat", `"hello [sandbox: pace=40 tokens=12]"`, notStored))
	first := detached.until("response.output_text.delta")
	detached.Close()
	last, id := first[len(first)-1].Get("sequence_number").Int(), detached.id+"-1"
	c := g.connect()
	attach := func(id, after string) string {
		return `{"type":"stagedoor.attach","request_id":"` + id + `","stream_id":"a"` + after + `}`
	}
	c.say(attach(id, fmt.Sprintf(`,"starting_after":%d`, last)))
	rest := c.until("response.completed")
	for i, m := range rest {
		if m.Get("sequence_number").Int() != last+1+int64(i) || m.Get("stream_id").Str != "a" {
			t.Fatalf("event %d is %s", i, m.Raw)
		}
	}
	response := rest[len(rest)-1].Get("response")
	if response.Get("id").Str != first[0].Get("response.id").Str || response.Get("usage.output_tokens").Int() != 12 {
		t.Errorf("got %s", response.Raw)
	}
	c.say(attach(id, ""))
	if all := c.until("response.completed"); len(all) != len(first)+len(rest) {
		t.Errorf("from the beginning: %d events", len(all))
	}
	c.refused(attach("none", ""), 404, "request_not_found", "", "a")
	c.refused(attach(id, `,"starting_after":-1`), 400, "invalid_value", "starting_after", "a")
	c.refused(`{"type":"stagedoor.attach"}`, 400, "invalid_value", "request_id", "")
	for other, body := range map[string]string{
		"streamed-chat": `{"model":"sandbox","stream":true,"messages":[{"role":"user","content":"x"}]}`,
		"whole-chat":    `{"model":"sandbox","messages":[{"role":"user","content":"x"}]}`} {
		g.do("POST", "/v1/chat/completions", body, "all", "X-On-Disconnect", "finish", "X-Request-Id", other)
		c.refused(attach(other, ""), 400, "invalid_value", "request_id", "a")
	}
	calls := g.count()
	const key = `,"idempotency_key":"k"`
	made := c.turn(create("chat", "once", key)).Get("id").Str
	if again := g.connect().turn(create("chat", "once", key)).Get("id").Str; again != made {
		t.Errorf("%s was made again as %s", made, again)
	}
	if n := g.count() - calls; n != 1 {
		t.Errorf("%d calls", n)
	}
	c.refused(create("chat", "other", key), 409, "idempotency_key_reused", "Idempotency-Key", "")
}

// A client may ask for all requests of a connection that they finish without it, and may then read a reply by its id.
func TestRequestsOfAConnectionMayFinishWithoutIt(t *testing.T) {
	g := open(t)
	g.key("payer", func(k *identity.Key) { k.User = "7" })
	if err := g.runtime.Ledger().Credit(t.Context(), "7", 100_000, "test"); err != nil {
		t.Fatal(err)
	}
	c, _, err := g.dial("payer", "X-On-Disconnect", "detach")
	if err != nil {
		t.Fatal(err)
	}
	c.say(create("dear", "hello [sandbox: pace=60 tokens=12]", lane("a")))
	for _, m := range c.until("response.output_text.delta") {
		if m.Get("stream_id").Str != "a" {
			t.Errorf("got %s", m.Raw)
		}
	}
	c.Close()
	var receipt string
	await(t, "the receipt", func() bool {
		res, body := g.do("GET", "/v1/receipts/"+c.id+"-1", "", "payer")
		receipt = body
		return res.StatusCode == 200
	})
	if gjson.Get(receipt, "end_reason").Str != "finished" || gjson.Get(receipt, "usage.output_tokens").Int() != 12 {
		t.Errorf("got %s", receipt)
	}
	await(t, "the connection has ended", func() bool { return g.live.Watching() == 0 })
}
