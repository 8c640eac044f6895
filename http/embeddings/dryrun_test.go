package embeddings_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// dry posts a request for a dry run.
func (g *gateway) dry(path, body string) gjson.Result {
	g.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sd-test")
	req.Header.Set("X-Dry-Run", "1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		g.t.Fatalf("got %d %s, %v", res.StatusCode, b, err)
	}
	return gjson.ParseBytes(b)
}

// TestADryRunIsWhatTheUpstreamGets, for a request that passes through and for one that is divided into three calls.
func TestADryRunIsWhatTheUpstreamGets(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, path, body string) {
		if path == openai {
			answer(w, 200, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`)
		} else {
			answer(w, 200, numbers(body))
		}
	})
	for _, body := range []string{`{"model": "openai","input":"a" }`, manyTexts(250)} {
		before := len(g.calls())
		dry := g.dry(openai, body)
		if n := len(g.calls()); n != before {
			t.Fatalf("the dry run made %d calls", n-before)
		}
		if r := g.post(openai, body); r.status != 200 {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		sent := map[string]bool{}
		for _, c := range g.calls()[before:] {
			sent[c] = true
		}
		calls := dry.Get("requests").Array()
		if len(calls) != len(sent) {
			t.Errorf("the dry run has %d calls and the request %d", len(calls), len(sent))
		}
		for _, c := range calls {
			call := c.Get("path").Str + " " + c.Get("body").Raw // below the base address, which may end in /v1
			if !sent[call] && !sent["/v1"+call] {
				t.Errorf("not sent: %.300s", c.Raw)
			}
		}
		if strings.Contains(dry.Raw, "secret") || dry.Get("estimated_hold").Int() == 0 {
			t.Errorf("got %.300s", dry.Raw)
		}
	}
	if got := g.spent(); got != 251 {
		t.Errorf("charged %d, want 251 for the two requests that were sent", got)
	}
}
