package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

// models returns the names in a list of models, in the form of the path and the headers.
func (p *program) models(key, path string, header ...string) string {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.URL+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%d %s %v", res.StatusCode, body, err)
	}
	var names []string
	for _, list := range []string{"data.#.id", "models.#.name"} {
		for _, name := range gjson.GetBytes(body, list).Array() {
			names = append(names, name.Str)
		}
	}
	return strings.Join(names, " ")
}

// Lists of models show what the provider lists behind a pattern, in each client's form, and to each key what it may
// use. The gateway serves before it has read them.
func TestListsOfModelsShowWhatIsBehindPatterns(t *testing.T) {
	names := atomic.Pointer[[]string]{}
	names.Store(&[]string{"gpt-5", "gpt-4o", "o3", "text-embedding-3-small", "sora-2"})
	release := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/v1/models" || r.Header.Get("Authorization") != "Bearer upstream-key" {
			t.Errorf("%s %s with %q", r.Method, r.RequestURI, r.Header.Get("Authorization"))
		}
		select {
		case <-release:
		case <-r.Context().Done(): // the test has failed
			return
		}
		list := strings.Join(*names.Load(), `","object":"model"},{"id":"`)
		fmt.Fprintf(w, `{"object":"list","data":[{"id":"%s","object":"model"}]}`, list)
	}))
	t.Cleanup(upstream.Close)
	dir := directory(t)
	write(t, filepath.Join(dir, "f.yaml"), fmt.Sprintf(`
listen: "127.0.0.1:0"
data: memory
keys: [{key: all, name: all}, {key: some, name: some, models: [gpt-4*, mine]}]
providers:
  up: {shape: chat, base_url: "%s/v1", api_keys: [upstream-key], vendor: openai}
models:
  mine: {targets: [{provider: up, model: gpt-5}]}
  gpt-*: {targets: [{provider: up, model: "*"}]}
  o*: {targets: [{provider: up, model: "*"}], list: []}
  video-*: {targets: [{provider: up, model: "*"}]}
`, upstream.URL))
	p := launch(t, dir, "serve", "--config", "f.yaml")
	if got := p.models("all", "/v1/models"); got != "mine" {
		t.Errorf("before the provider has answered: %q", got)
	}
	close(release)
	const all = "mine gpt-4o gpt-5 video-2"
	p.await("the provider's list", func() bool { return p.models("all", "/v1/models") == all })
	for _, c := range []struct{ key, path, header, want string }{
		{"all", "/v1/models?limit=2", "anthropic-version", "mine gpt-4o"},
		{"all", "/v1/models?limit=2&after_id=gpt-4o", "anthropic-version", "gpt-5 video-2"},
		{"all", "/v1beta/models", "", "models/mine models/gpt-4o models/gpt-5 models/video-2"},
		{"some", "/v1/models", "", "mine gpt-4o"},
		{"some", "/v1beta/models", "", "models/mine models/gpt-4o"},
	} {
		header := []string{}
		if c.header != "" {
			header = []string{c.header, "2023-06-01"}
		}
		if got := p.models(c.key, c.path, header...); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.key, c.path, got, c.want)
		}
	}
	names.Store(&[]string{"gpt-6"})
	p.signal(syscall.SIGHUP)
	p.await("a reload", func() bool { return p.models("all", "/v1/models") == "mine gpt-6" })
	p.stop()
}
