package flow

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
)

// terminals lists the error events that end streams of the shapes.
var terminals = map[string]string{
	"chat": `data: {"error":`, "completions": `data: {"error":`, "messages": "event: error\n",
	"responses": "event: response.failed\n", "gemini": `data: {"error":`,
}

func TestStreamIsSeenAndEndedByAnOperator(t *testing.T) {
	b := start(t)
	for _, q := range questions(true) {
		t.Run(q.shape, func(t *testing.T) {
			b := &bench{t, b.Gateway, b.data}
			res, err := b.ask(q, "pace=100, tokens=100000")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			id := res.Header.Get("X-Request-Id")
			seen := b.await("/flow", "a reply in pieces",
				func(r gjson.Result) bool { return r.Get(byID(id)+".output_tokens").Int() > 5 }).
				Get(byID(id))
			for field, want := range map[string]string{"phase": "replying", "model": "m1", "provider": "sandbox", "stream": "true", "attempts": "1", "result": ""} {
				if got := seen.Get(field).String(); got != want {
					t.Errorf("%s is %s, want %s", field, got, want)
				}
			}
			b.admin("DELETE", "/flow/requests/"+id, http.StatusAccepted)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatalf("the stream broke: %v", err)
			}
			tail := string(body[max(len(body)-2000, 0):])
			if strings.Count(string(body), terminals[q.shape]) != 1 || !strings.Contains(tail, "ended by an operator") {
				t.Errorf("the stream ends with\n%s", tail)
			}
			gone := b.await("/flow/requests?failed=true", "the end",
				func(r gjson.Result) bool { return r.Get(byID(id)).Exists() }).
				Get(byID(id))
			if gone.Get("result.status").Int() != 503 || gone.Get("result.code").String() != "cancelled_by_operator" {
				t.Errorf("it is remembered as %s", gone.Raw)
			}
			b.admin("DELETE", "/flow/requests/"+id, http.StatusConflict)
		})
	}
	if left := b.admin("GET", "/flow", 200).Get("load.in_flight").Int(); left != 0 {
		t.Errorf("%d are under way", left)
	}
}

func TestWholeReplyIsEndedByAnOperator(t *testing.T) {
	b := start(t)
	for _, q := range questions(false) {
		t.Run(q.shape, func(t *testing.T) {
			b := &bench{t, b.Gateway, b.data}
			var wg sync.WaitGroup
			wg.Go(func() {
				res, err := b.ask(q, "delay=60s")
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != http.StatusServiceUnavailable ||
					res.Header.Get("X-Should-Retry") != "false" ||
					!strings.Contains(string(body), "ended by an operator") {
					t.Errorf("%d, %v: %s", res.StatusCode, err, body)
				}
			})
			id := b.await("/flow?phase=waiting", "a request that waits",
				func(r gjson.Result) bool { return r.Get("matching").Int() == 1 }).
				Get("data.0.id").
				String()
			b.admin("DELETE", "/flow/requests/"+id, http.StatusAccepted)
			wg.Wait()
		})
	}
}

func TestPausedProviderHoldsItsQueue(t *testing.T) {
	b := start(t)
	q := questions(false)[0]
	b.admin("POST", "/providers/sandbox/pause", 200)
	statuses := make(chan int, 3)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			res, err := b.ask(q, "tokens=3")
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		})
	}
	queued := b.await("/flow?phase=queued", "a queue of three", func(r gjson.Result) bool {
		return r.Get("matching").Int() == 3 && len(r.Get("data.#.queue_position").Array()) == 3 &&
			r.Get("data.2.queue_position").Int() > 0
	})
	places := map[int64]string{}
	for _, r := range queued.Get("data").Array() {
		places[r.Get("queue_position").Int()] = r.Get("id").String()
	}
	if len(places) != 3 || places[1] == "" || places[3] == "" {
		t.Errorf("the places are %v", places)
	}
	p := b.admin("GET", "/providers/sandbox", 200)
	if !p.Get("paused").Bool() || p.Get("queued").Int() != 3 || p.Get("queues.0.count").Int() != 3 {
		t.Errorf("the provider is %s", p.Raw)
	}
	b.admin("DELETE", "/flow/requests/"+places[2], http.StatusAccepted)
	if got := <-statuses; got != http.StatusServiceUnavailable {
		t.Errorf("the one that was ended in the queue gets %d", got)
	}
	b.await("/flow?phase=queued", "the others move up", func(r gjson.Result) bool {
		return r.Get("matching").Int() == 2 && r.Get(byID(places[3])+".queue_position").Int() == 2
	})
	b.admin("POST", "/providers/sandbox/resume", 200)
	wg.Wait()
	for range 2 {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("one that waited gets %d", got)
		}
	}
}

// No traces are exported here, so the page shows those that the gateway keeps itself.
func TestWaterfallNeedsNoCollector(t *testing.T) {
	b := start(t)
	b.admin("GET", "/flow", 200) // a watcher opens the view
	res, err := b.ask(questions(true)[0], "pace=200, tokens=20")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	d := b.await(
		"/flow/requests/"+res.Header.Get("X-Request-Id"),
		"the span of the whole request",
		func(r gjson.Result) bool {
			return r.Get(`spans.#(kind=="server")`).Exists()
		},
	)
	root := d.Get(`spans.#(kind=="server")`)
	if root.Get("name").String() != "POST /v1/chat/completions" || root.Get("parent").String() != "" {
		t.Errorf("the root is %s", root.Raw)
	}
	for _, name := range []string{"auth", "translate", "chat m1"} {
		s := d.Get(`spans.#(name=="` + name + `")`)
		inside := s.Get("at_us").Int() >= root.Get("at_us").Int() &&
			s.Get("at_us").Int()+s.Get("took_us").Int() <= root.Get("at_us").Int()+root.Get("took_us").Int()
		if s.Get("parent").String() != root.Get("id").String() || !inside {
			t.Errorf("%s is %s", name, s.Raw)
		}
	}
	if !d.Get(`spans.#(name=="chat m1").events.#(name=="gen_ai.first_token")`).Exists() {
		t.Errorf("the time of the first token is missing: %s", d.Get("spans").Raw)
	}
	if strings.Contains(d.Raw, "hello") {
		t.Error("the prompt is in the spans")
	}
	var phases []string
	for _, s := range d.Get("steps").Array() {
		phases = append(phases, s.Get("phase").String())
	}
	if got := strings.Join(phases, " "); got != "starting queued waiting replying ended" {
		t.Errorf("the phases are %s", got)
	}
}

func TestSocketIsForWhoAdministers(t *testing.T) {
	b := start(t)
	b.user("root", "--admin")
	b.user("anna")
	root, anna := b.signIn("root"), b.signIn("anna")
	for name, c := range map[string]struct {
		client *http.Client
		origin string
		want   int
	}{
		"signed out": {nil, "", http.StatusUnauthorized}, "a user": {anna, b.URL, http.StatusNotFound},
		"another site":     {root, "https://evil.example", http.StatusForbidden},
		"an administrator": {root, b.URL, http.StatusSwitchingProtocols},
	} {
		conn, status, err := b.dial(c.client, c.origin)
		if err != nil || status != c.want {
			t.Errorf("%s: %d, %v, want %d", name, status, err, c.want)
		}
		if conn != nil {
			conn.Close()
		}
	}
	for _, path := range []string{"/flow", "/flow/providers", "/flow/actors", "/flow/requests/none", "/flow/none"} {
		if res, err := anna.Get(b.URL + path); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s for a user: %v, %v", path, res, err)
		}
		if res, err := http.Get(b.URL + path); err != nil || res.Request.URL.Path != "/signin" {
			t.Errorf("%s signed out: %v, %v", path, res, err)
		}
	}
	conn, _, err := b.dial(root, b.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch(t, conn, `{"type":"watch","view":"nothing"}`)
	hear(t, conn, "what is wrong", func(m gjson.Result) bool {
		return m.Get("type").String() == "error" && strings.HasPrefix(m.Get("message").String(), "view: must be one of")
	})
	watch(t, conn, `{"type":"watch","view":"requests","filter":{"model":"m"}}`)
	hear(t, conn, "that nothing is under way", func(m gjson.Result) bool { return m.Get("active.matching").Int() == 0 })
	res, err := b.ask(questions(true)[0], "pace=100, tokens=100000")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	seen := hear(t, conn, "a request under way",
		func(m gjson.Result) bool { return m.Get("active.data.0.output_tokens").Int() > 0 })
	id := seen.Get("active.data.0.id").String()
	watch(t, conn, `{"type":"watch","view":"request","id":"`+id+`"}`)
	hear(t, conn, "that request", func(m gjson.Result) bool { return m.Get("request.steps.#").Int() >= 4 })
	watch(t, conn, `{"type":"watch","view":"actors"}`)
	hear(t, conn, "the actors",
		func(m gjson.Result) bool { return m.Get(`actors.kinds.#(name=="request").live`).Int() == 1 })

	// The page ends it by a form with a token of the session, so no other session can send it.
	form := url.Values{"token": {"forged"}}
	if res, err := root.PostForm(b.URL+"/flow/requests/"+id+"/cancel", form); err != nil ||
		res.StatusCode != http.StatusForbidden {
		t.Errorf("a forged form: %v, %v", res, err)
	}
	form.Set("token", b.page(root, "/flow/requests/"+id))
	if res, err := root.PostForm(b.URL+"/flow/requests/"+id+"/cancel", form); err != nil ||
		res.StatusCode != http.StatusOK {
		t.Errorf("the form of the page: %v, %v", res, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), "ended by an operator") {
		t.Errorf("the stream was not ended: %v", err)
	}
	// A gateway that stops says so, and does not wait for watchers.
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	for {
		if _, _, err = conn.ReadMessage(); err != nil {
			break
		}
	}
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the socket ended by %v", err)
	}
}
