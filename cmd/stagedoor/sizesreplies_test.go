//go:build !race

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/test/sizes"
)

// A hostile upstream answers every call with one text, which is a whole HTTP response.
type hostile struct {
	*httptest.Server
	response atomic.Pointer[string]
	calls    atomic.Int64
}

func newHostile(t testing.TB) *hostile {
	h := new(hostile)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		out := bufio.NewWriter(conn)
		_, _ = out.WriteString(*h.response.Load())
		_ = out.Flush()
	}))
	t.Cleanup(h.Close)
	return h
}

const (
	streamed = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	whole    = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	failing  = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
)

// hostileReplies are responses in which head stands for what a shape begins a stream with, and
// event for a piece of text.
func hostileReplies(head, event string) []sizes.Form {
	stream := func(name string, body func(n int) string) sizes.Form {
		return sizes.Form{Name: name, JSON: func(n int) string { return streamed + head + body(n) }}
	}
	piece := func(text string) string { return strings.ReplaceAll(event, "%", text) }
	return []sizes.Form{
		stream("many tiny events", func(n int) string { return strings.Repeat(piece("x"), n/len(piece("x"))) }),
		stream("a long event", func(n int) string { return piece(strings.Repeat("x", n)) }),
		stream("a line without end", func(n int) string { return "data: {\"x\":\"" + strings.Repeat("x", n) }),
		stream("a deep event", func(n int) string {
			return "data: {\"x\":" + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + "}\n\n"
		}),
		stream("many data lines", func(n int) string { return strings.Repeat("data: 1\n", n/8) + "\n\n" }),
		stream("many comments", func(n int) string { return strings.Repeat(":\n", n/2) }),
		stream("many empty events", func(n int) string { return strings.Repeat("data:\n\n", n/7) }),
		stream("many names of events", func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				fmt.Fprintf(&b, "event: n%d%s\ndata: {}\n\n", i, strings.Repeat("x", 1000))
			}
			return b.String()
		}),
		{Name: "a long error", JSON: func(n int) string {
			return failing + `{"error":{"message":"` + strings.Repeat("x", n) + `"}}`
		}},
		{Name: "a deep error", JSON: func(n int) string { return failing + `{"error":` + strings.Repeat("[", n) }},
		{Name: "an error of many names", JSON: func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				fmt.Fprintf(&b, `"n%d":0,`, i)
			}
			return failing + `{"error":{` + strings.TrimSuffix(b.String(), ",") + `}}`
		}},
		{Name: "a whole reply that is long", JSON: func(n int) string {
			return whole + `{"x":"` + strings.Repeat("x", n) + `"}`
		}},
		{Name: "a whole reply that is deep", JSON: func(n int) string {
			return whole + `{"x":` + strings.Repeat("[", n)
		}},
		{Name: "many header fields", JSON: func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				fmt.Fprintf(&b, "X-N%d: x\r\n", i)
			}
			return "HTTP/1.1 200 OK\r\n" + b.String() + "\r\n"
		}},
		{Name: "a long header field", JSON: func(n int) string {
			return "HTTP/1.1 200 OK\r\nX-N: " + strings.Repeat("x", n) + "\r\n\r\n"
		}},
		{Name: "a status line without end", JSON: func(n int) string {
			return "HTTP/1.1 200 " + strings.Repeat("x", n)
		}},
	}
}

// eventsOf are the beginning of a stream, and a piece of text, of the shapes of upstreams.
var eventsOf = map[string][2]string{
	"chat": {"", `data: {"id":"i","choices":[{"index":0,"delta":{"content":"%"}}]}` + "\n\n"},
	"messages": {
		"event: message_start\n" + `data: {"type":"message_start","message":{"id":"i","usage":{}}}` + "\n\n" +
			"event: content_block_start\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
		"event: content_block_delta\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%"}}` + "\n\n",
	},
	"responses": {`data: {"type":"response.created","response":{"id":"i"}}` + "\n\n",
		`data: {"type":"response.output_text.delta","item_id":"i","output_index":0,` +
			`"content_index":0,"delta":"%"}` + "\n\n"},
	"gemini":      {"", `data: {"candidates":[{"content":{"parts":[{"text":"%"}]}}]}` + "\n\n"},
	"completions": {"", `data: {"id":"i","choices":[{"index":0,"text":"%"}]}` + "\n\n"},
}

// TestHostileRepliesCostWhatTheirSizeIsWorth has upstreams of every shape send long, deep, wide
// and endless replies, which pass through or are translated on their way to a client.
func TestHostileRepliesCostWhatTheirSizeIsWorth(t *testing.T) {
	up := newHostile(t)
	clients := map[string][2]string{
		"chat": {"/v1/chat/completions", `{"model":"up","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		"messages": {"/v1/messages", `{"model":"up","stream":true,"max_tokens":9,` +
			`"messages":[{"role":"user","content":"hi"}]}`},
	}
	var subjects []sizes.Subject
	var g *gateway // that of the subject that is read; collections would walk over those of the others again and again
	renew := func(shape string) {
		if g != nil {
			g.close(context.Background())
		}
		g = newGatewayTo(t, shape, up.URL)
	}
	t.Cleanup(func() { g.close(context.Background()) })
	for _, client := range slices.Sorted(maps.Keys(clients)) {
		for _, shape := range slices.Sorted(maps.Keys(eventsOf)) {
			l := large{method: http.MethodPost, path: clients[client][0], kind: "application/json"}
			request, events := clients[client][1], eventsOf[shape]
			begun := false
			subjects = append(subjects, sizes.Subject{Name: "replies of " + shape + " to " + client,
				Forms: hostileReplies(events[0], events[1]),
				Input: func(response string) string { return response },
				Read: func(response string) {
					if !begun {
						begun = true
						renew(shape)
					}
					up.response.Store(&response)
					before := up.calls.Load()
					if l.sendTo(t, g, request, true); up.calls.Load() > before {
						return
					}
					// The provider has failed too often to be called, so it needs a new gateway.
					renew(shape)
					if l.sendTo(t, g, request, true); up.calls.Load() == before {
						t.Errorf("%s to %s: the upstream was not called", shape, client)
					}
				}})
		}
	}
	sizes.Table(t, sizes.Check(t, *sizeOfInput, subjects))
}

// newGatewayTo returns a gateway with one provider of a shape, which it calls once for each request.
func newGatewayTo(t testing.TB, shape, address string) *gateway {
	return newSizesGateway(t, func(c *config.Config) {
		none := 0
		up := config.Provider{Shape: shape, BaseURL: address, APIKeys: []config.Secret{"k"}, Retries: &none}
		target := config.Target{Provider: "up", Model: "x"}
		c.Providers = config.Map[config.Provider]{{Name: "up", Value: up}}
		c.Models = config.Map[config.Model]{{Name: "up", Value: config.Model{Targets: []config.Target{target}}}}
	})
}
