package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"stagedoor/providers/shapes"
)

func TestEverySegmentOfAPathIsEscaped(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.RequestURI }))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL + "/a%2Fb/v1beta"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for path, want := range map[string]string{
		"/v1beta/models/m:generateContent":    "/a%2Fb/v1beta/models/m:generateContent",
		"/v1beta/models/a/b.c:x":              "/a%2Fb/v1beta/models/a/b.c:x",
		"/models/a?b#c d%2e;e:x":              "/a%2Fb/v1beta/models/a%3Fb%23c%20d%252e%3Be:x",
		"/models/\u00fc\\\n:x":                "/a%2Fb/v1beta/models/%C3%BC%5C%0A:x",
		"/models/%2e%2e/x":                    "/a%2Fb/v1beta/models/%252e%252e/x",
		"/models/.hidden/..x/...":             "/a%2Fb/v1beta/models/.hidden/..x/...",
		"/models/cheap-/../dear:x":            "",
		"/models/cheap-/./x":                  "",
		"/models/cheap-//x":                   "",
		"/models/..":                          "",
		"/v1beta/operations/../../models/x:y": "",
	} {
		send := func() error {
			reply, err := client.Send(context.Background(), Request{Method: http.MethodGet, Path: path}, nil, "")
			if err == nil {
				reply.Close()
			}
			return err
		}
		do := func() error {
			reply, err := client.Do(context.Background(), shapes.Call{Path: path, Body: []byte("{}")}, nil, "")
			if err == nil {
				reply.Close()
			}
			return err
		}
		for name, call := range map[string]func() error{"Send": send, "Do": do} {
			err := call()
			if (err == nil) != (want != "") {
				t.Errorf("%s %q: %v", name, path, err)
			}
			if err == nil {
				if uri := <-got; uri != want {
					t.Errorf("%s %q: asked for %s, want %s", name, path, uri, want)
				}
			}
		}
	}
}
