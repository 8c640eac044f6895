package text_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// randomScript is an upstream in any mood.
func randomScript(t *rapid.T, mark string) script {
	pause := func() time.Duration { return time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond }
	switch rapid.IntRange(0, 5).Draw(t, "script") {
	case 0:
		return unreachable(rapid.SampledFrom([]error{refusedDial, reset}).Draw(t, "error"))
	case 1:
		status := rapid.SampledFrom([]int{400, 401, 404, 429, 500, 503, 529}).Draw(t, "status")
		return withHeader(document(status, chatRefuse), "Retry-After",
			fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "after")))
	case 2:
		return func(*call) (*http.Response, error) { panic("chaos") }
	case 3:
		return document(200, strings.Replace(chatWhole, "Hello", mark, 1))
	}
	pieces := []any{chatRole}
	for range rapid.IntRange(0, 30).Draw(t, "pieces") {
		pieces = append(pieces, chatText(mark))
		if rapid.Bool().Draw(t, "slow") {
			pieces = append(pieces, pause())
		}
	}
	switch rapid.IntRange(0, 6).Draw(t, "end") {
	case 0:
		return stream(append(pieces, error(reset))...)
	case 1:
		return stream(append(pieces, stall)...)
	case 2:
		return stream(append(pieces, chatError)...)
	case 3:
		return stream(append(pieces, func() { panic("chaos") })...)
	case 4:
		return stream(pieces...)
	}
	return stream(append(pieces, chatStop+chatUsage+chatDone)...)
}

// Whatever upstreams, clients and actors do, every reply ends exactly once and
// legally, no client reads another's reply, and nothing is left.
func TestEveryReplyEndsOnce(t *testing.T) {
	asks := []struct {
		shape dialogue.Shape
		body  string
		ends  []string // the terminal events of a stream
	}{
		{dialoguetest.Chat, chatAskStream, []string{chatDone, `{"error":{`}},
		{dialoguetest.Messages, messagesAskStream, []string{"event: message_stop\n", "event: error\n"}},
		{dialoguetest.Responses, responsesAskStream, []string{"event: response.completed\n", "event: response.failed\n",
			"event: error\n", "event: response.incomplete\n"}},
		{dialoguetest.Chat, chatAsk, []string{`"chat.completion"`}},
	}
	rapid.Check(t, func(rt *rapid.T) {
		kittest.Run(t, func(t *testing.T, sys *kit.System) {
			s := newStage(t, sys)
			limits := catalog.Limits{Concurrency: rapid.IntRange(0, 2).Draw(rt, "limit")}
			timeouts := catalog.Timeouts{FirstByte: 5 * time.Second, Idle: 5 * time.Second, Total: 30 * time.Second}
			for _, name := range []string{"a", "b"} {
				var scripts []script
				for range rapid.IntRange(1, 3).Draw(rt, "scripts") {
					scripts = append(scripts, randomScript(rt, "text"))
				}
				s.add(catalog.Provider{Name: name, Shape: dialoguetest.Chat, BaseURL: "http://" + name + ".test",
					APIKeys: []string{"k1", "k2"},
					Retries: rapid.IntRange(0, 2).Draw(rt, "retries"), Limits: limits, Timeouts: timeouts},
					&fake{scripts: scripts})
			}
			type result struct {
				received
				left bool
			}
			n := rapid.IntRange(1, 6).Draw(rt, "requests")
			results := make(chan result, n)
			for range n {
				ask := rapid.SampledFrom(asks).Draw(rt, "ask")
				leave := time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "leave")) * time.Millisecond
				breaks := rapid.IntRange(0, 20).Draw(rt, "breaks")
				o := s.request(ask.shape, ask.body)
				if breaks > 0 && breaks < 8 {
					o.Inbound = breaking(o.Inbound, breaks, rapid.Bool().Draw(rt, "for good"))
				}
				go func() {
					r := s.service.Begin(context.Background(), o)
					leaving := time.AfterFunc(leave, r.Abandon)
					got := s.read(r)
					left := !leaving.Stop()
					ends := 0
					for _, end := range ask.ends {
						ends += strings.Count(got.text, end)
					}
					if ends > 1 || got.status == 200 && ends == 0 && !left {
						t.Errorf("%d terminal events in %q", ends, got.text)
					}
					results <- result{got, left}
				}()
			}
			if rapid.Bool().Draw(rt, "drain") {
				ctx, cancel := context.WithTimeout(context.Background(),
					time.Duration(rapid.IntRange(0, 30).Draw(rt, "grace"))*time.Second)
				defer cancel()
				s.engine.Drain(ctx, 10*time.Second)
			}
			kittest.Pass(3 * time.Minute)
			for range n {
				select {
				case got := <-results:
					if got.status == 200 && got.Err == nil && !got.Committed {
						t.Error("a reply that was sent counts as not sent")
					}
				default:
					t.Fatal("a reply never ended")
				}
			}
			s.empty()
		})
	})
}
