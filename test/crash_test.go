package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"stagedoor/test/harness"
)

// kills is the number of times the gateway is killed. Each time there is one more
// response whose id a client has seen.
const kills = 5

// A stored response whose id a client has seen survives a kill of the process
// (issue: durable before visible).
func TestStoredResponsesSurviveAKill(t *testing.T) {
	c := harness.Config{Data: t.TempDir(), Providers: map[string]harness.Provider{"s": {Shape: "sandbox"}},
		Models: map[string]harness.Model{"*": {Targets: []harness.Target{{Provider: "s", Model: "*"}}}}}
	previous := ""
	var seen []string
	for i := range kills {
		g, err := harness.Launch(harness.Binary(t), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range seen {
			if got := field(t, ask(t, g, http.MethodGet, "/v1/responses/"+id, ""), "id"); got != id {
				t.Errorf("after kill %d: response %s is %q", i, id, got)
			}
		}
		stream := i%2 == 0
		body := fmt.Sprintf(`{"model":"m","input":"round %d [sandbox: pace=max]","stream":%t,"previous_response_id":%s}`, i, stream, quoted(previous))
		reply := ask(t, g, http.MethodPost, "/v1/responses", body)
		if stream {
			reply = terminal(t, reply)
		}
		previous = field(t, reply, "id")
		seen = append(seen, previous)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// The id of a stream is good from its first event: what a kill leaves of it has
// failed, and a background response beside it goes on.
func TestAStreamThatAKillCutsHasFailed(t *testing.T) {
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	c.Data = t.TempDir()
	g, err := harness.Launch(harness.Binary(t), c)
	if err != nil {
		t.Fatal(err)
	}
	cut := begin(t, g, `{"model":"m","input":"[sandbox: stall=2]","stream":true}`)
	if got := field(t, ask(t, g, http.MethodGet, "/v1/responses/"+cut, ""), "status"); got != "in_progress" {
		t.Errorf("while it streams it is %q", got)
	}
	lasting := field(t, ask(t, g, http.MethodPost, "/v1/responses",
		`{"model":"m","input":"[sandbox: delay=30s]","background":true}`), "id")
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	g, err = harness.Launch(harness.Binary(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Kill() }()
	var failed struct {
		ID, Status string
		Error      struct{ Code, Message string }
	}
	if err := json.Unmarshal(ask(t, g, http.MethodGet, "/v1/responses/"+cut, ""), &failed); err != nil {
		t.Fatal(err)
	}
	if failed.ID != cut || failed.Status != "failed" || failed.Error.Code != "server_error" || failed.Error.Message == "" {
		t.Errorf("after the kill it is %+v", failed)
	}
	ask(t, g, http.MethodGet, "/v1/responses/"+cut+"/input_items", "")
	if got := field(t, ask(t, g, http.MethodGet, "/v1/responses/"+lasting, ""), "status"); got != "queued" {
		t.Errorf("the background response is %q", got)
	}
}

// begin starts a stream that lasts as long as the gateway, and returns the id that
// its first event tells.
func begin(t *testing.T, g *harness.Gateway, body string) string {
	t.Helper()
	res, err := g.Send(http.MethodPost, "/v1/responses", body)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var ev struct{ Response struct{ ID string } }
			if err := json.Unmarshal([]byte(data), &ev); err != nil || ev.Response.ID == "" {
				t.Fatalf("the stream begins with %s: %v", data, err)
			}
			return ev.Response.ID
		}
	}
	t.Fatalf("no event: %v", lines.Err())
	return ""
}

// ask asks for what there is.
func ask(t *testing.T, g *harness.Gateway, method, path, body string) []byte {
	t.Helper()
	status, reply := g.Ask(t, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, reply)
	}
	return reply
}

// terminal is the response object of a stream's last event.
func terminal(t *testing.T, stream []byte) []byte {
	t.Helper()
	at := bytes.LastIndex(stream, []byte("\ndata: "))
	if at < 0 {
		t.Fatalf("no events: %s", stream)
	}
	var ev struct{ Response json.RawMessage }
	if err := json.Unmarshal(bytes.TrimSpace(stream[at+len("\ndata: "):]), &ev); err != nil {
		t.Fatal(err)
	}
	return ev.Response
}

func field(t *testing.T, object []byte, name string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	s, _ := m[name].(string)
	return s
}

func quoted(id string) string {
	if id == "" {
		return "null"
	}
	return `"` + id + `"`
}
