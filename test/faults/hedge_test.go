package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/test/harness"
)

const (
	wholeHello = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	streamHello = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":` +
		`[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// A target that is slow, with or without headers, is overtaken by the next one, and its connection is closed at once.
func TestTheConnectionOfAnOvertakenTargetIsClosed(t *testing.T) {
	t.Parallel()
	closed := make(chan time.Time, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "headers") {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		closed <- time.Now()
	}))
	defer slow.Close()
	fast := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, streamHello)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, wholeHello)
	}))
	defer fast.Close()
	g := harness.Start(t, harness.Config{
		Providers: map[string]harness.Provider{
			"slow": {Shape: "chat", BaseURL: slow.URL}, "fast": {Shape: "chat", BaseURL: fast.URL}},
		Models: map[string]harness.Model{"m": {Hedge: &harness.Hedge{After: "100ms"}, Targets: []harness.Target{
			{Provider: "slow", Model: "m", Weight: 1_000_000_000}, {Provider: "fast", Model: "m"}}}},
	})
	for _, says := range []string{"nothing", "headers"} {
		for _, streamed := range []bool{true, false} {
			if says == "headers" && !streamed {
				continue // the headers of this upstream are those of a stream
			}
			body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":%q}]}`, streamed, says)
			status, reply := g.Ask(t, "POST", "/v1/chat/completions", body)
			ended := time.Now()
			if status != 200 || !strings.Contains(string(reply), "Hello") {
				t.Errorf("%s, stream %t: %d %s", says, streamed, status, reply)
			}
			select {
			case at := <-closed:
				if d := at.Sub(ended); d > 10*time.Second {
					t.Errorf("%s, stream %t: closed %s after the reply", says, streamed, d)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s, stream %t: the connection stayed open", says, streamed)
			}
		}
	}
}
