package text_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

// stalled begins a stream that falls silent, and returns it with the id that its
// first event tells.
func (w *web) stalled(t *testing.T) (*stream, string) {
	t.Helper()
	s := w.stream(t, "POST", "/v1/responses", `{"model":"alpha","input":"[sandbox: stall=2]","stream":true}`)
	first := s.event(t)
	if kind := first.Get("type").String(); kind != "response.created" {
		t.Fatalf("the stream begins with %s", first.Raw)
	}
	return s, first.Get("response.id").String()
}

// get is a stored response, which must be there.
func (g *gateway) get(id string) reply {
	g.t.Helper()
	r := g.do("GET", "/v1/responses/"+id, "")
	if r.status != 200 {
		g.t.Fatalf("%d %s", r.status, r.body)
	}
	return r
}

func TestTheResponseOfAStreamIsStoredBeforeItsIDIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		s, id := g.listen(t).stalled(t)
		defer s.Close()
		if r := g.get(id); r.get("status").String() != "in_progress" || r.get("id").String() != id ||
			r.get("object").String() != "response" {
			t.Errorf("while it streams: %s", r.body)
		}
		if r := g.do("GET", "/v1/responses/"+id+"/input_items", ""); r.status != 200 ||
			!strings.Contains(string(r.body), "stall=2") {
			t.Errorf("its input: %d %s", r.status, r.body)
		}
		early := g.do("POST", "/v1/responses",
			fmt.Sprintf(`{"model":"alpha","input":"more","previous_response_id":%q}`, id))
		want(t, early, 400, "invalid_value")
		if early.get("error.param").String() != "previous_response_id" ||
			!strings.Contains(early.get("error.message").String(), "has not ended yet") {
			t.Errorf("continued before its end: %s", early.body)
		}
		want(t, g.do("POST", "/v1/responses/"+id+"/cancel", ""), 400, "invalid_value")
		want(t, g.do("GET", "/v1/responses/"+id+"?stream=true", ""), 400, "invalid_value")
	})
}

func TestAStreamsResponseEndsAsItsClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		w := g.listen(t)
		for name, c := range map[string]struct {
			script, status, code string
			most                 int
		}{
			"completed":  {"tokens=30 pace=10", "completed", "", 100},
			"incomplete": {"tokens=30 pace=10", "incomplete", "", 16},
			"failed":     {"tokens=30 pace=10 error=10", "failed", "server_error", 100},
			"cut":        {"tokens=30 pace=10 cut=10", "failed", "server_error", 100},
		} {
			s := w.stream(
				t,
				"POST",
				"/v1/responses",
				fmt.Sprintf(`{"model":"alpha","input":"[sandbox: %s]","stream":true,"max_output_tokens":%d}`, c.script,
					c.most),
			)
			first := s.event(t)
			id := first.Get("response.id").String()
			if r := g.get(id); r.get("status").String() != "in_progress" {
				t.Errorf("%s: begins as %s", name, r.body)
			}
			last := first
			for ev := first; ev.Exists(); ev = s.event(t) {
				last = ev
			}
			s.Close()
			r := g.get(id)
			if r.get("status").String() != c.status || r.get("error.code").String() != c.code {
				t.Errorf("%s: is %s", name, r.body)
			}
			if sent := last.Get("response"); sent.Raw != string(r.body) {
				t.Errorf("%s: the client got %s, kept is %s", name, sent.Raw, r.body)
			}
		}
	})
}

func TestAResponseIsCancelledByItsClientsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		s, id := g.listen(t).stalled(t)
		s.Close()
		time.Sleep(100 * time.Millisecond)
		r := g.get(id)
		if r.get("status").String() != "cancelled" || r.get("error").Type != gjson.Null || r.get("id").String() != id {
			t.Errorf("%s", r.body)
		}
	})
}

func TestAResponseDeletedWhileItStreamsStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		s := g.listen(t).
			stream(t, "POST", "/v1/responses", `{"model":"alpha","input":"[sandbox: tokens=30 pace=10]","stream":true}`)
		defer s.Close()
		id := s.event(t).Get("response.id").String()
		if r := g.do("DELETE", "/v1/responses/"+id, ""); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
		rest, err := io.ReadAll(s.body)
		if err != nil || !strings.Contains(string(rest), "event: response.completed\n") {
			t.Errorf("its stream: %v, %s", err, rest)
		}
		want(t, g.do("GET", "/v1/responses/"+id, ""), 404, "response_not_found")
	})
}

func TestAStreamThatIsNotStoredHasNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		s := g.listen(t).
			stream(t, "POST", "/v1/responses",
				`{"model":"alpha","input":"[sandbox: stall=2]","stream":true,"store":false}`)
		defer s.Close()
		want(t, g.do("GET", "/v1/responses/"+s.event(t).Get("response.id").String(), ""), 404, "response_not_found")
	})
}

func TestAStreamDoesNotBeginUnlessItsResponseCanBeStored(t *testing.T) {
	g := open(t)
	g.state.Close()
	r := g.do("POST", "/v1/responses", `{"model":"alpha","input":"[sandbox: tokens=30 pace=100]","stream":true}`)
	want(t, r, 503, "storage_unavailable")
	if line := g.log.lines()[0]; line.Get("status").Int() != 503 {
		t.Errorf("its line: %s", line.Raw)
	}
	if r := g.do("POST", "/v1/responses", `{"model":"alpha","input":"hi","stream":true,"store":false}`); r.status != 200 {
		t.Errorf("one that is not stored: %d %s", r.status, r.body)
	}
}

// nativeStream answers with the events of a responses upstream, cut before the
// terminal one if it has none.
func nativeStream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range events {
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", gjson.Get(ev, "type"), ev)
			w.(http.Flusher).Flush()
		}
	}
}

const (
	nativeCreated = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_native","object":"response","status":"queued","model":"m","output":[],"x_extra":1}}`
	nativeDelta   = `{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"pong"}`
	nativeDone    = `{"type":"response.completed","sequence_number":2,"response":{"id":"resp_native","object":"response","status":"completed","model":"m","output":[]}}`
)

func TestAnUntouchedStreamIsStoredByItsProvidersID(t *testing.T) {
	answers := make(chan http.HandlerFunc, 3)
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) { (<-answers)(w, r) })
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	began, goOn := make(chan struct{}), make(chan struct{})
	answers <- func(w http.ResponseWriter, r *http.Request) {
		nativeStream(nativeCreated, nativeDelta)(w, r)
		close(began)
		<-goOn
		nativeStream(nativeDone)(w, r)
	}
	ask := `{"model":"m","input":"ping","stream":true}`
	s := g.listen(t).stream(t, "POST", "/v1/responses", ask)
	defer s.Close()
	if first := s.event(t); strings.TrimSpace(first.Raw) != nativeCreated {
		t.Errorf("it was touched: %s", first.Raw)
	}
	<-began
	if r := g.get("resp_native"); r.get("status").String() != "in_progress" || r.get("x_extra").Int() != 1 {
		t.Errorf("while it streams: %s", r.body)
	}
	// A provider that tells an id twice does not get at what is kept of the first.
	answers <- nativeStream(nativeCreated, nativeDelta)
	if r := g.do("POST", "/v1/responses", ask); !strings.Contains(string(r.body), "event: response.failed\n") {
		t.Errorf("cut off: %s", r.body)
	}
	if r := g.get("resp_native"); r.get("status").String() != "in_progress" {
		t.Errorf("another's end: %s", r.body)
	}
	close(goOn)
	if rest, err := io.ReadAll(s.body); err != nil || !strings.Contains(string(rest), nativeDone) {
		t.Errorf("its end: %v, %s", err, rest)
	}
	if r := g.get("resp_native"); r.get("status").String() != "completed" {
		t.Errorf("kept is %s", r.body)
	}
	answers <- nativeStream(nativeCreated, nativeDelta, nativeDone)
	g.create(fmt.Sprintf(`{"model":"m","input":"more","stream":true,"previous_response_id":%q}`, "resp_native"))
	if last := up.all()[2].body; gjson.GetBytes(last, "previous_response_id").String() != "resp_native" {
		t.Errorf("the provider was asked %s", last)
	}
}

func TestAnEndThatCannotBeStoredIsNotSent(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		nativeStream(nativeCreated, nativeDelta)(w, r)
		close(began)
		<-goOn
		nativeStream(nativeDone)(w, r)
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	s := g.listen(t).stream(t, "POST", "/v1/responses", `{"model":"m","input":"ping","stream":true}`)
	s.event(t)
	<-began
	g.state.Close()
	close(goOn)
	rest, err := io.ReadAll(s.body)
	s.Close()
	if sent := string(rest); err != nil || strings.Contains(sent, "response.completed") ||
		strings.Count(sent, "event: response.failed\n") != 1 {
		t.Errorf("sent %v, %s", err, sent)
	}
	if r := g.get("resp_native"); r.get("status").String() != "in_progress" {
		t.Errorf("kept %s", r.body)
	}
	for until := time.Now().Add(time.Minute); !strings.Contains(g.log.String(), "is not stored yet"); {
		if time.Now().After(until) {
			t.Fatal("the log does not say that it stays in progress")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestTheEndOfAStreamIsStoredWhenTheStoreIsThereAgain: it is away when the stream ends, and for much longer than a
// write waits.
func TestTheEndOfAStreamIsStoredWhenTheStoreIsThereAgain(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := statetest.NewFaulty()
			g := open(t, func(g *gateway) { g.store = store })
			s := g.listen(t).stream(t, "POST", "/v1/responses",
				`{"model":"alpha","input":"[sandbox: tokens=30 pace=10]","stream":true}`)
			id := s.event(t).Get("response.id").String()
			store.Refuse(journal.ErrUnreachable)
			status := "cancelled"
			if !leaves {
				status = "failed"
				if rest, err := io.ReadAll(s.body); err != nil || !strings.Contains(string(rest), "response.failed") {
					t.Errorf("its stream: %v, %s", err, rest)
				}
			}
			s.Close()
			time.Sleep(10 * time.Minute)
			if r := g.get(id); r.get("status").String() != "in_progress" {
				t.Errorf("without the store it is %s", r.body)
			}
			store.Refuse(nil)
			time.Sleep(time.Minute)
			if r := g.get(id); r.get("status").String() != status {
				t.Errorf("want %s, it is %s", status, r.body)
			}
		})
	}
}

// A stream that failed before any chunk of the answer is sent as a whole, with its id.
func TestAResponseThatFailedAtOnceIsStored(t *testing.T) {
	up := newUpstream(t, nativeStream(
		nativeCreated,
		`{"type":"response.failed","sequence_number":1,"response":{"id":"resp_native","object":"response","status":"failed","model":"m","output":[],"error":{"code":"invalid_prompt","message":"no"}}}`,
	))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Responses, BaseURL: up.URL},
			catalog.Model{Pattern: "m"})
	})
	sent := g.do("POST", "/v1/responses", `{"model":"m","input":"ping","stream":true}`).events()
	if r := g.get("resp_native"); r.get("status").String() != "failed" ||
		string(r.body) != sent[len(sent)-1].Get("response").Raw {
		t.Errorf("sent %s, kept %s", sent[len(sent)-1].Raw, r.body)
	}
}
