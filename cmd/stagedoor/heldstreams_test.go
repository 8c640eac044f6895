//go:build !race

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
)

// mostStack bounds the stacks of the gateway's goroutines for one stream, in bytes. Two of the five are those of
// the connection and of the attempt, with 8 KiB each. A stack doubles at once and is halved only if less than a quarter
// of it is in use, so a few hundred bytes more in the functions that a stream waits in would make it 16 KiB.
const mostStack = 31 << 10

// TestAStreamThatWaitsKeepsSmallStacks measures in a process of its own, because goroutines that other tests have left
// behind have stacks, too.
func TestAStreamThatWaitsKeepsSmallStacks(t *testing.T) {
	const measuring = "STAGEDOOR_MEASURE_STACKS"
	if os.Getenv(measuring) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), measuring+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const streams = 100
	upstream := newHeldUpstream(t)
	g := newGatewayTo(t, "chat", upstream.URL+"/v1")
	t.Cleanup(func() { g.close(context.Background()) })
	gateway := httptest.NewServer(g.server.Handler())
	t.Cleanup(gateway.Close)
	direct := stacksOf(t, streams, upstream.URL+"/v1/chat/completions", chatStream)
	for _, tc := range []struct{ name, path, body string }{
		{"passed through", "/v1/chat/completions", chatStream},
		{"translated", "/v1/messages", `{"model":"up","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`},
	} {
		each := (stacksOf(t, streams, gateway.URL+tc.path, tc.body) - direct) / streams
		t.Logf("%s: %d bytes of stack", tc.name, each)
		if each < 8<<10 || each > mostStack {
			t.Errorf("%s: a stream that waits has %d bytes of stack, of at most %d", tc.name, each, mostStack)
		}
	}
}

const chatStream = `{"model":"up","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// newHeldUpstream returns an upstream whose streams send a piece and then wait for their clients to leave.
func newHeldUpstream(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",`+
			`"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s
}

// stacksOf opens streams, which stay open until the test ends, and returns by how many bytes the stacks of the process
// have grown then.
func stacksOf(t *testing.T, streams int, url, body string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	before := stacks()
	for range streams {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+sizesKey)
		r.Header.Set("Content-Type", "application/json")
		reply, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reply.Body.Close() })
		if line, err := bufio.NewReader(reply.Body).ReadString('\n'); err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %q, %v", url, reply.Status, line, err)
		}
	}
	return stacks() - before
}

// stacks returns the bytes of all stacks. A collection halves a stack that is too large, so several go before.
func stacks() int {
	for range 4 {
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
