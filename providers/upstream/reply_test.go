package upstream

import (
	"net/http"
	"testing"

	"stagedoor/providers/shapes"
)

// typed is a transport whose replies have a content type.
type typed struct {
	replying
	header http.Header
}

func (t typed) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := t.replying.RoundTrip(q)
	r.Header = t.header
	return r, err
}

// TestAStreamIsKnownByItsBeginning: where the content type is neither that of events nor that of JSON. The reply is
// read whole afterwards, with the bytes that decided.
func TestAStreamIsKnownByItsBeginning(t *testing.T) {
	for _, tt := range []struct {
		kind, body string
		stream     bool
	}{
		{"text/event-stream; charset=utf-8", "\n\n", true},
		{"text/plain; charset=utf-8", "data: {}\n\n", true},
		{"", "event: ping\ndata: {}\n\n", true},
		{"application/octet-stream", ": ping\n\ndata: {}\n\n", true},
		{"text/plain", "id:1\ndata: {}\n\n", true},
		{"text/plain", "retry: 1000\n\n", true},
		{"application/json", "data: {}\n\n", false},
		{"text/plain", `{"data": 1}`, false},
		{"text/plain", "database error: no room", false},
		{"text/html", "<p>", false},
		{"", "", false},
	} {
		transport := typed{replying{tt.body, true}, http.Header{"Content-Type": {tt.kind}}}
		client, err := New(Options{BaseURL: "http://upstream.test", Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Do(t.Context(), shapes.Call{Path: "/v1/x", Body: []byte("{}")}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if first, again := r.IsStream(), r.IsStream(); first != tt.stream || again != tt.stream {
			t.Errorf("%s %q: a stream %v, and asked again %v", tt.kind, tt.body, first, again)
		}
		if body, err := r.ReadAll(nil); string(body) != tt.body || err != nil {
			t.Errorf("%s %q: read as %q, %v", tt.kind, tt.body, body, err)
		}
		r.Close()
	}
}
