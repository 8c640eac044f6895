package text_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/kept"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// gated is an upstream whose streams go on when the test says so.
type gated struct {
	say       chan string   // a piece of text; closed: the end of the answer
	cancelled chan struct{} // a call was cancelled before its end
}

func newGated() *gated { return &gated{make(chan string), make(chan struct{}, 10)} }

func (u *gated) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			u.cancelled <- struct{}{}
			return
		case text, more := <-u.say:
			if !more {
				answerStream(lastChunk, fmt.Sprintf(usageChunk, 50), "[DONE]")(w, r)
				return
			}
			answerStream(chunk(text))(w, r)
			w.(http.Flusher).Flush()
		}
	}
}

// front is the gateway behind a real listener.
type front struct {
	*httptest.Server
	t *testing.T
	g *gateway
}

func newFront(t *testing.T, g *gateway) *front {
	f := &front{httptest.NewServer(g.server.Handler()), t, g}
	t.Cleanup(f.Close)
	return f
}

// client is one connection and what has arrived on it.
type client struct {
	*http.Response
	t     *testing.T
	leave context.CancelFunc
	got   bytes.Buffer
}

// send sends a request with the key of user 7 unless the headers say otherwise.
func (f *front) send(method, path, body string, headers ...string) *client {
	f.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, method, f.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+f.g.secrets["user7"])
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := f.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	c := &client{Response: res, t: f.t, leave: leave}
	f.t.Cleanup(func() { leave(); res.Body.Close() })
	return c
}

// until reads until a text has arrived with the rest of its event.
func (c *client) until(text string) *client {
	c.t.Helper()
	one := make([]byte, 1)
	for !bytes.Contains(c.got.Bytes(), []byte(text)) || !bytes.HasSuffix(c.got.Bytes(), []byte("\n\n")) {
		if _, err := io.ReadFull(c.Body, one); err != nil {
			c.t.Fatalf("%v after %s", err, &c.got)
		}
		c.got.Write(one)
	}
	return c
}

// whole reads to the end.
func (c *client) whole() string {
	c.t.Helper()
	if _, err := io.Copy(&c.got, c.Body); err != nil {
		c.t.Errorf("%v after %s", err, &c.got)
	}
	return c.got.String()
}

// want reads to the end and checks status and error code.
func (c *client) want(status int, code string) {
	c.t.Helper()
	if body := c.whole(); c.StatusCode != status || gjson.Get(body, "error.code").String() != code {
		c.t.Errorf("got %d %s, want %d %s", c.StatusCode, body, status, code)
	}
}

const streamed = `,"stream":true,"stream_options":{"include_usage":true}`

// TestTwoRequestsWithOneKeyShareOneReply: the second one arrives in the middle of the first, the third after its end.
// The upstream is called once and the user is charged once.
func TestTwoRequestsWithOneKeyShareOneReply(t *testing.T) {
	u := newGated()
	g, calls := priced(t, 100_000, u.serve)
	f := newFront(t, g)
	ask := func() *client {
		return f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k 1~")
	}
	go func() { u.say <- "one"; u.say <- "two" }()
	first := ask().until("two")
	second := ask().until("two")
	go func() { u.say <- "three"; close(u.say) }()
	want := first.whole()
	if got := second.whole(); got != want || !strings.Contains(got, "one") || !strings.Contains(got, "[DONE]") {
		t.Errorf("the second client got\n%s\nand not\n%s", got, want)
	}
	third := ask()
	if got := third.whole(); got != want {
		t.Errorf("the third client got\n%s\nand not\n%s", got, want)
	}
	id := first.Header.Get("X-Request-Id")
	for _, c := range []*client{second, third} {
		if c.Header.Get("Idempotent-Replayed") != "true" || c.Header.Get("X-Original-Request-Id") != id ||
			c.Header.Get("X-Request-Id") == id || c.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("headers %v", c.Header)
		}
	}
	charged := g.receipt(t, reply{header: first.Header}).Get("charged").Int()
	b, err := g.runtime.Ledger().Balance(t.Context(), "7")
	if n := len(calls.all()); n != 1 || err != nil || charged == 0 || 100_000-b.Available() != charged {
		t.Errorf("%d calls, charged %d, balance %+v, %v", n, charged, b, err)
	}
}

// TestAKeyIsForOneRequest: another body, another route and another query are refused with 409 while the request runs
// and after it. Owners do not share keys, and keys are bounded.
func TestAKeyIsForOneRequest(t *testing.T) {
	g, calls := priced(t, 100_000, answerJSON(200, wholeAnswer))
	f := newFront(t, g)
	body := askFor("dear", "")
	ask := func(path, body string, headers ...string) *client {
		return f.send("POST", path, body, append([]string{"Idempotency-Key", "k"}, headers...)...)
	}
	ask("/v1/chat/completions", body).want(200, "")
	ask("/v1/chat/completions", askFor("dear", `,"max_tokens":9`)).want(409, "idempotency_key_reused")
	ask("/v1/chat/completions?x=1", body).want(409, "idempotency_key_reused")
	ask("/v1/messages", `{"model":"dear","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`).
		want(409, "idempotency_key_reused")
	ask("/v1/chat/completions", body).want(200, "")
	if n := len(calls.all()); n != 1 {
		t.Errorf("%d calls", n)
	}
	ask("/v1/chat/completions", body, g.as("all")...).want(200, "")
	if n := len(calls.all()); n != 2 {
		t.Errorf("%d calls: owners share keys", n)
	}
	for _, bad := range []string{strings.Repeat("k", 256), "ä"} {
		f.send("POST", "/v1/chat/completions", body, "Idempotency-Key", bad).want(400, "invalid_value")
	}
	f.send("POST", "/v1/chat/completions", body, "Idempotency-Key", strings.Repeat("k", 255)).want(200, "")
}

// vendorAt adds a provider at an address, whose model dear is free.
func vendorAt(url string) func(*gateway) {
	return func(g *gateway) {
		g.provider(catalog.Provider{Name: "vendor", Shape: dialoguetest.Chat, BaseURL: url, APIKeys: []string{"s"}},
			catalog.Model{Pattern: "dear"})
	}
}

// TestFinishedReplySurvivesRestart: another process sends the same bytes for 24 hours.
func TestFinishedReplySurvivesRestart(t *testing.T) {
	calls := newUpstream(t, answerJSON(200, wholeAnswer))
	vendor := vendorAt(calls.URL)
	g := open(t, vendor)
	ask := func(g *gateway) reply {
		return g.do("POST", "/v1/chat/completions", askFor("dear", ""), "Idempotency-Key", "k")
	}
	first := ask(g)
	next := open(t, vendor, func(next *gateway) { next.store, next.secrets = g.store, g.secrets })
	again := ask(next)
	if again.status != 200 || !bytes.Equal(again.body, first.body) || again.header.Get("Idempotent-Replayed") == "" ||
		again.header.Get("Content-Length") != fmt.Sprint(len(first.body)) || len(calls.all()) != 1 {
		t.Errorf("got %d %v %s after %d calls", again.status, again.header, again.body, len(calls.all()))
	}
	next.later.Store(int64(work.ReplyTTL))
	if again = ask(next); again.status != 200 || len(calls.all()) != 2 {
		t.Errorf("after %s: got %d after %d calls", work.ReplyTTL, again.status, len(calls.all()))
	}
}

// TestAFailureIsNotRepeated: a request whose first try failed is made again under its key, whether it failed before its
// first byte or after it.
func TestAFailureIsNotRepeated(t *testing.T) {
	n := 0
	g, _ := priced(t, 100_000, func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 1:
			answerJSON(404, `{"error":{"message":"no such model"}}`)(w, r)
		case 2:
			answerStream(chunk("half"), `{"error":{"message":"overloaded","type":"server_error"}}`)(w, r)
		default:
			answerStream(chunk("good"), lastChunk, fmt.Sprintf(usageChunk, 5), "[DONE]")(w, r)
		}
	})
	f := newFront(t, g)
	for i, want := range []string{`"error"`, `"error"`, "good", "good"} {
		got := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k").whole()
		if !strings.Contains(got, want) {
			t.Errorf("request %d: got %s, want %s", i+1, got, want)
		}
	}
	if n != 3 {
		t.Errorf("%d calls", n)
	}
}

// TestAClientThatLeavesGetsItsReplyByAskingAgain: the request with a key runs on without its client. The repeat gets
// all of it and is charged once.
func TestAClientThatLeavesGetsItsReplyByAskingAgain(t *testing.T) {
	u := newGated()
	g, calls := priced(t, 100_000, u.serve)
	f := newFront(t, g)
	ask := func() *client {
		return f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", "k")
	}
	go func() { u.say <- "one" }()
	first := ask().until("one")
	first.leave()
	u.say <- "two"
	second := ask().until("two")
	close(u.say)
	if got := second.whole(); !strings.HasPrefix(got, first.got.String()) || !strings.Contains(got, "[DONE]") {
		t.Errorf("got\n%s\nafter\n%s", got, &first.got)
	}
	receipt := g.receipt(t, reply{header: first.Header})
	if len(calls.all()) != 1 || receipt.Get("end_reason").String() != "finished" ||
		receipt.Get("usage.output_tokens").Int() != 50 {
		t.Errorf("%d calls, receipt %s", len(calls.all()), receipt.Raw)
	}
}

// TestOwnersShareTheRoomOfKeptReplies: an owner that fills its share is refused, and others are not.
func TestOwnersShareTheRoomOfKeptReplies(t *testing.T) {
	end := make(chan struct{})
	g, _ := priced(t, 100_000, func(w http.ResponseWriter, r *http.Request) {
		answerStream(chunk("one"))(w, r)
		w.(http.Flusher).Flush()
		<-end
		answerStream(lastChunk, fmt.Sprintf(usageChunk, 5), "[DONE]")(w, r)
	}, func(g *gateway) { g.room = 16 << 10 })
	f := newFront(t, g)
	var open []*client
	for i := 0; ; i++ {
		c := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "Idempotency-Key", fmt.Sprint(i))
		if c.StatusCode != 200 {
			c.want(429, "kept_share_exceeded")
			break
		}
		open = append(open, c.until("one"))
	}
	if held := g.kept.Pool().Held("user:7"); held == 0 || held > 8<<10 {
		t.Errorf("the owner holds %d bytes", held)
	}
	other := f.send("POST", "/v1/chat/completions", askFor("dear", streamed),
		append(g.as("all"), "Idempotency-Key", "k")...)
	other.until("one")
	close(end)
	for _, c := range append(open, other) {
		if !strings.Contains(c.whole(), "[DONE]") {
			t.Errorf("got %s", &c.got)
		}
	}
}

// TestKeptRepliesAreForgotten: shortly after their end their memory is free.
func TestKeptRepliesAreForgotten(t *testing.T) {
	g, _ := priced(t, 100_000, answerJSON(200, wholeAnswer))
	f := newFront(t, g)
	f.send("POST", "/v1/chat/completions", askFor("dear", ""), "Idempotency-Key", "k").want(200, "")
	for deadline := time.Now().Add(5 * time.Second); g.kept.Pool().Used() > 0 && time.Now().Before(deadline); {
		g.later.Store(int64(kept.Keep)) // the record ends shortly after the reply has arrived
		g.kept.Sweep()
		g.later.Store(0)
	}
	if used := g.kept.Pool().Used(); used != 0 {
		t.Errorf("%d bytes are used", used)
	}
	if _, err := money.CheckLedger(t.Context(), g.state); err != nil {
		t.Error(err)
	}
}

// fiveShapes are requests for a stream in each shape, to the model dear of an upstream of the shape chat.
var fiveShapes = map[string]struct{ path, body string }{
	"chat":        {"/v1/chat/completions", askFor("dear", streamed)},
	"completions": {"/v1/completions", `{"model":"dear","prompt":"hello","stream":true,"max_tokens":100}`},
	"messages": {"/v1/messages", `{"model":"dear","max_tokens":100,"stream":true,` +
		`"messages":[{"role":"user","content":"hello"}]}`},
	"responses": {"/v1/responses", `{"model":"dear","input":"hello","stream":true,"max_output_tokens":100}`},
	"gemini": {"/v1beta/models/dear:streamGenerateContent?alt=sse",
		`{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`},
}

// lastID returns the last id in a stream.
func lastID(stream string) string {
	_, id, _ := strings.Cut(stream[strings.LastIndex(stream, "id: "):], " ")
	id, _, _ = strings.Cut(id, "\n")
	return id
}

// TestDetachedStreamIsResumedInEveryShape: a client is cut off in the middle of its stream and goes on behind the last
// event that it has. It gets byte for byte what it would have got, while the request runs and after its end.
func TestDetachedStreamIsResumedInEveryShape(t *testing.T) {
	for name, shape := range fiveShapes {
		t.Run(name, func(t *testing.T) {
			u := newGated()
			g, calls := priced(t, 100_000, u.serve)
			f := newFront(t, g)
			go func() { u.say <- "one"; u.say <- "two" }()
			first := f.send("POST", shape.path, shape.body, "X-On-Disconnect", "detach").until("two")
			first.leave()
			id := first.Header.Get("X-Request-Id")
			events := "/v1/requests/" + id + "/events"
			u.say <- "three"
			second := f.send("GET", events, "", "Last-Event-ID", lastID(first.got.String())).until("three")
			go func() { u.say <- "four"; close(u.say) }()
			rest := second.whole()
			whole := f.send("GET", events, "").whole()
			if got := first.got.String() + rest; got != whole || !strings.Contains(rest, "four") ||
				strings.Contains(rest, "id: "+lastID(first.got.String())+"\n") ||
				second.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("got\n%s\nand then\n%s\nof\n%s", &first.got, rest, whole)
			}
			if rest := f.send("GET", events, "", "Last-Event-ID", lastID(whole)).whole(); rest != "" {
				t.Errorf("after the last event: %q", rest)
			}
			if got := f.send("GET", events, "", "Last-Event-ID", lastID(first.got.String())).whole(); got != rest {
				t.Errorf("after the end: %q", got)
			}
			receipt := g.receipt(t, reply{header: first.Header})
			if len(calls.all()) != 1 || receipt.Get("end_reason").String() != "finished" {
				t.Errorf("%d calls, receipt %s", len(calls.all()), receipt.Raw)
			}
		})
	}
}

// TestResumeIsRefused: to other owners, for unknown requests and numbers, after ten minutes, and where the events that
// follow were dropped.
func TestResumeIsRefused(t *testing.T) {
	u := newGated()
	g, _ := priced(t, 1_000_000, u.serve, func(g *gateway) { g.room = 24 << 10 })
	f := newFront(t, g)
	go func() { u.say <- "one" }()
	reply := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "X-On-Disconnect", "detach").until("one")
	events := "/v1/requests/" + reply.Header.Get("X-Request-Id") + "/events"
	f.send("GET", events, "", g.as("all")...).want(404, "request_not_found")
	f.send("GET", "/v1/requests/req_1/events", "").want(404, "request_not_found")
	f.send("GET", events, "", "Last-Event-ID", "2").want(400, "invalid_value")
	f.send("GET", events, "", "Last-Event-ID", "-1").want(400, "invalid_value")
	f.send("GET", events, "", "Last-Event-ID", "x").want(400, "invalid_value")
	f.send("GET", events, "", "Authorization", "Bearer sd-unknown").want(401, "invalid_api_key")
	u.say <- strings.Repeat("x", 11<<10)
	reply.until("xxx")
	go func() { u.say <- "three"; close(u.say) }()
	if got := reply.whole(); !strings.Contains(got, "id: 6\n\n") || strings.Contains(got, "id: 7\n") {
		t.Errorf("ids of %s", got)
	}
	f.send("GET", events, "").want(410, "events_not_kept")
	f.send("GET", events, "", "Last-Event-ID", "1").want(410, "events_not_kept")
	if rest := f.send("GET", events, "", "Last-Event-ID", "2").whole(); !strings.Contains(rest, "three") {
		t.Errorf("after what was dropped: %s", rest)
	}
	g.later.Store(int64(kept.Keep))
	f.send("GET", events, "", "Last-Event-ID", "2").want(404, "request_not_found")
}

// TestPolicySaysWhatBecomesOfARequestWithoutItsClient: and what it costs. The header counts before the key, the key
// before the model, and that before the default, which is cancel, or finish for a request with an idempotency key.
func TestPolicySaysWhatBecomesOfARequestWithoutItsClient(t *testing.T) {
	for name, c := range map[string]struct {
		key, model string
		headers    []string
		end        string // as in the receipt
		resumable  bool
	}{
		"default": {"", "", nil, "client_left", false},
		"cancel":  {"", "finish", []string{"X-On-Disconnect", "cancel"}, "client_left", false},
		"cancel with a key": {"", "", []string{"X-On-Disconnect", "cancel", "Idempotency-Key", "k"}, "client_left",
			true},
		"finish":                     {"", "", []string{"X-On-Disconnect", "finish"}, "finished", true},
		"finish, as the model says":  {"", "finish", nil, "finished", true},
		"finish, as the key says":    {"finish", "cancel", nil, "finished", true},
		"cancel, as the key says":    {"cancel", "finish", nil, "client_left", false},
		"detach, as the key says":    {"detach", "", nil, "finished", true},
		"cancel, as the header says": {"finish", "", []string{"X-On-Disconnect", "cancel"}, "client_left", false},
		"finish, because of a key":   {"", "", []string{"Idempotency-Key", "k"}, "finished", true},
		"detach":                     {"", "cancel", []string{"X-On-Disconnect", "detach"}, "finished", true},
		"cancel a key as configured": {"", "cancel", []string{"Idempotency-Key", "k"}, "client_left", true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newGated()
			g, _ := priced(t, 100_000, u.serve)
			g.configure(func(m *catalog.Model) { m.OnDisconnect = c.model })
			if _, err := identity.ChangeKey(t.Context(), g.state, "key_user7", func(k *identity.Key) (err error) {
				k.OnDisconnect, err = identity.DisconnectPolicyOf(c.key)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			f := newFront(t, g)
			go func() { u.say <- "one"; u.say <- "two" }()
			first := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), c.headers...).until("two")
			if got := first.Header.Get("X-Survives-Restart"); got != "false" {
				t.Errorf("X-Survives-Restart: %q", got)
			}
			first.leave()
			if c.end == "finished" {
				close(u.say)
			} else {
				select {
				case <-u.cancelled:
				case <-time.After(time.Minute):
					t.Fatal("the request goes on")
				}
			}
			receipt := g.receipt(t, reply{header: first.Header})
			tokens, charged := receipt.Get("usage.output_tokens").Int(), receipt.Get("charged").Int()
			if receipt.Get("end_reason").String() != c.end || c.end == "finished" != (tokens == 50) ||
				c.end == "finished" && charged != 600 || charged == 0 {
				t.Errorf("receipt %s", receipt.Raw)
			}
			events := f.send("GET", "/v1/requests/"+first.Header.Get("X-Request-Id")+"/events", "")
			if events.StatusCode == 200 != c.resumable {
				t.Errorf("resuming: %d", events.StatusCode)
			}
			if ids := strings.Contains(first.got.String(), "id: 1\n"); ids != strings.HasPrefix(name, "detach") {
				t.Errorf("ids: %v in %s", ids, &first.got)
			}
		})
	}
	g := open(t)
	want(t, g.do("POST", "/v1/chat/completions", askFor("alpha", ""), "X-On-Disconnect", "stay"), 400, "invalid_value")
}

// TestARevokedKeyEndsADetachedRequest: also when no client is left, and those that read it.
func TestARevokedKeyEndsADetachedRequest(t *testing.T) {
	u := newGated()
	g, _ := priced(t, 100_000, u.serve)
	ctx, cancel := context.WithCancel(context.Background())
	var guard sync.WaitGroup
	guard.Go(func() { g.auth.EndRevoked(ctx, g.flow) })
	t.Cleanup(guard.Wait)
	t.Cleanup(cancel)
	f := newFront(t, g)
	go func() { u.say <- "one" }()
	first := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "X-On-Disconnect", "detach").until("one")
	id := first.Header.Get("X-Request-Id")
	reader := f.send("GET", "/v1/requests/"+id+"/events", "").until("one")
	first.leave()
	if _, err := identity.RevokeKey(t.Context(), g.state, "key_user7"); err != nil {
		t.Fatal(err)
	}
	<-u.cancelled
	_, _ = io.Copy(&reader.got, reader.Body) // it may be cut off
	if strings.Contains(reader.got.String(), "[DONE]") {
		t.Errorf("got %s", &reader.got)
	}
}

// TestADrainWaitsForADetachedRequest: and ends it when its time is over, as it does with others.
func TestADrainWaitsForADetachedRequest(t *testing.T) {
	u := newGated()
	g, _ := priced(t, 100_000, u.serve)
	f := newFront(t, g)
	go func() { u.say <- "one" }()
	first := f.send("POST", "/v1/chat/completions", askFor("dear", streamed), "X-On-Disconnect", "detach").until("one")
	reader := f.send("GET", "/v1/requests/"+first.Header.Get("X-Request-Id")+"/events", "").until("one")
	first.leave()
	over, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if n := g.runtime.Drain(over, 5*time.Second); n != 1 {
		t.Errorf("%d requests were cancelled", n)
	}
	if got := reader.whole(); !strings.Contains(got, "error") || strings.Contains(got, "[DONE]") {
		t.Errorf("got %s", got)
	}
}

// TestAReplySaysHowMuchOfItIsKept: before its client relies on a repeat. A repeat of a longer one is refused and makes
// no further call, and a reply that is not kept says nothing.
func TestAReplySaysHowMuchOfItIsKept(t *testing.T) {
	long := strings.Replace(wholeAnswer, `"content":"`, `"content":"`+strings.Repeat("x", kept.MaxReply), 1)
	u := newGated()
	calls := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Accept") {
		case "text/event-stream":
			u.serve(w, r)
		default:
			answerJSON(200, long)(w, r)
		}
	})
	f := newFront(t, open(t, vendorAt(calls.URL)))
	ask := func(more string, headers ...string) *client {
		return f.send("POST", "/v1/chat/completions", askFor("dear", more), append(headers, f.g.as("all")...)...)
	}
	says := func(c *client, keeps string) {
		t.Helper()
		if got := c.Header.Get("X-Stagedoor-Keeps"); c.StatusCode != 200 || got != keeps {
			t.Errorf("%d: keeps %q, want %q", c.StatusCode, got, keeps)
		}
	}
	whole := ask("", "Idempotency-Key", "whole")
	says(whole, "0")
	if got := len(whole.whole()); got < kept.MaxReply {
		t.Errorf("the client got %d bytes", got)
	}
	ask("", "Idempotency-Key", "whole").want(409, "idempotent_reply_not_kept")
	go func() {
		u.say <- strings.Repeat("y", kept.MaxReply/2)
		u.say <- strings.Repeat("y", kept.MaxReply/2)
		close(u.say)
	}()
	stream := ask(streamed, "Idempotency-Key", "stream")
	says(stream, "8388608")
	stream.whole()
	ask(streamed, "Idempotency-Key", "stream").want(409, "idempotent_reply_not_kept")
	says(ask(""), "")
	if n := len(calls.all()); n != 3 {
		t.Errorf("%d calls", n)
	}
}
