package text_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// discarded is a ResponseWriter that keeps nothing.
type discarded struct{ h http.Header }

func (d discarded) Header() http.Header         { return d.h }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}
func (d discarded) Flush()                      {}

// BenchmarkStream is one stream of 21 events that passes through, without and with each way of keeping its reply.
func BenchmarkStream(b *testing.B) {
	events := make([]string, 0, 21)
	for range 18 {
		events = append(events, chunk("some words of an answer"))
	}
	events = append(events, lastChunk, fmt.Sprintf(usageChunk, 5), "[DONE]")
	for _, c := range []struct {
		name    string
		headers []string
	}{
		{"ordinary", nil},
		{"finish", []string{"X-On-Disconnect", "finish"}},
		{"detach", []string{"X-On-Disconnect", "detach"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			u := httptest.NewServer(answerStream(events...))
			defer u.Close()
			g := open(b, vendorAt(u.URL))
			handler := g.server.Handler()
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(discarded{http.Header{}}, g.request("POST", "/v1/chat/completions",
					askFor("dear", streamed), c.headers...))
				g.kept.Sweep()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
		})
	}
}
