package text_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

// canned answers every call with the same bytes.
type canned struct {
	header http.Header
	body   string
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)),
		ContentLength: int64(len(c.body)), Request: r}, nil
}

// BenchmarkRequest measures everything but HTTP: the actor, its attempt loop, the
// limiter, the translation and a transport that costs nothing.
func BenchmarkRequest(b *testing.B) {
	prose := strings.Repeat(`The quick fox (said \"jump\") runs;\n caf\u00e9 naïve 你好, then rests. `, 12)
	piece := strings.Replace(chatText("Hello"), `{`, `{"service_tier":"default",`, 1) // as OpenAI writes them
	long := chatRole + strings.Repeat(piece, 100) + chatStop + chatDone
	for _, bench := range []struct {
		name  string
		shape dialogue.Shape
		ask   string
		kind  string
		body  string
	}{
		{"whole/untouched", dialoguetest.Chat, chatAsk, "application/json", chatWhole},
		{"whole/translated", dialoguetest.Messages, strings.Replace(messagesAskStream, `"stream":true,`, "", 1),
			"application/json", chatWhole},
		{"1k/untouched", dialoguetest.Chat, strings.Replace(chatAsk, "hi", prose, 1), "application/json",
			strings.Replace(chatWhole, "Hello", prose, 1)},
		{"1k/translated", dialoguetest.Messages, strings.NewReplacer(`"stream":true,`, "", "hi", prose).
			Replace(messagesAskStream), "application/json", strings.Replace(chatWhole, "Hello", prose, 1)},
		{"stream/untouched", dialoguetest.Chat, chatAskStream, "text/event-stream", long},
		{"stream/translated", dialoguetest.Messages, messagesAskStream, "text/event-stream", long},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newStage(b, kittest.Start(b))
			s.add(catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test",
				APIKeys: []string{"k"}},
				&canned{http.Header{"Content-Type": {bench.kind}}, bench.body})
			o := s.request(bench.shape, bench.ask)
			if (o.Mode == shapes.Stream) != strings.HasPrefix(bench.name, "stream") {
				b.Fatal("the wrong request")
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := s.service.Begin(context.Background(), o)
					for f := range r.Chunks() {
						if f.Err != nil {
							b.Error(f.Err)
							continue
						}
						f.Data.Free()
					}
				}
			})
		})
	}
}
