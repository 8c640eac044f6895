package ops

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// client opens a connection per request, so that one that is refused is noticed.
var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// sandbox is a gateway's configuration with the simulator behind it.
func sandbox(data, grace string) harness.Config {
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	c.Data, c.Shutdown = data, &harness.Shutdown{Grace: grace}
	return c
}

// launch runs the program and stops it at the end, if it still runs.
func launch(t *testing.T, g *harness.Gateway, err error) *harness.Gateway {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Kill() // it has ended, if all went well
		if t.Failed() {
			t.Logf("gateway's log:\n%s", g.Logs())
		}
	})
	return g
}

func stop(t *testing.T, g *harness.Gateway) {
	t.Helper()
	if err := g.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// listen is a socket that outlives the gateways it is handed to.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// body is a streamed request of each shape.
func body(shape cases.Shape) string {
	switch shape {
	case cases.Responses:
		return `{"model":"m","input":"hi","stream":true}`
	case cases.Completions:
		return `{"model":"m","prompt":"hi","max_tokens":100000,"stream":true}`
	case cases.Messages:
		return `{"model":"m","max_tokens":100000,"messages":[{"role":"user","content":"hi"}],"stream":true}`
	case cases.Gemini:
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	}
	return `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}`
}

// stream asks for a stream; directives request faults of the simulator.
func stream(t testing.TB, g *harness.Gateway, shape cases.Shape, directives string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+shape.Path("m", true),
		strings.NewReader(body(shape)))
	if err != nil {
		return nil, err
	}
	cases.Authorize(q, shape, g.Key)
	q.Header.Set("X-Sandbox", directives)
	return client.Do(q)
}

// ask sends JSON and decodes the reply into out.
func ask(t *testing.T, g *harness.Gateway, method, path, text string, out any) (status int) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+g.Key)
	q.Header.Set("Content-Type", "application/json")
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reply, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewReader(reply)).Decode(out); err != nil {
		t.Fatalf("%s %s: %d %q: %v", method, path, r.StatusCode, reply, err)
	}
	return r.StatusCode
}

// await waits until done, as long as a loaded machine may take.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}
