package media_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// oneByOne is a model whose upstream makes one picture in a call.
const oneByOne = "drawing-1"

// TestADryRunIsWhatTheUpstreamGets covers a generation in one call, one that is divided, and routes without a dry run.
func TestADryRunIsWhatTheUpstreamGets(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	take := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		all, seen = seen, nil
		return all
	}
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.URL.Path+" "+string(b))
		mu.Unlock()
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"message":"no"}}`)
	})
	post := func(path, body string, dry bool) (int, gjson.Result) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sd-test")
		req.Header.Set("Content-Type", "application/json")
		if dry {
			req.Header.Set("X-Dry-Run", "1")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, gjson.ParseBytes(b)
	}
	// The divided one is the last, because its answer does not wait for calls beside the one that fails first.
	for i, body := range []string{
		`{"model":"gen-image-1","prompt":"a cat","n":3,"size":"1024x1024"}`,
		`{"model":"` + oneByOne + `","prompt":"a cat","n":3}`,
	} {
		times := []int64{1, 3}[i]
		status, dry := post("/v1/images/generations", body, true)
		call, sent := dry.Get("requests.0"), take()
		if status != 200 || len(sent) != 0 || call.Get("times").Int() != times ||
			dry.Get("passthrough").Bool() != (i == 0) || dry.Get("estimated_hold").Int() < 120_000 {
			t.Errorf("got %d %s after %q", status, dry.Raw, sent)
		}
		post("/v1/images/generations", body, false)
		// The path is below the base address, which may end in /v1.
		if sent = take(); len(sent) == 0 || !strings.HasSuffix(sent[0], call.Get("path").Str+" "+call.Get("body").Raw) {
			t.Errorf("sent %q, but the dry run says %s", sent, call.Raw)
		}
		if strings.Contains(dry.Raw, "secret") {
			t.Errorf("the dry run shows a key: %s", dry.Raw)
		}
	}
	status, refused := post("/v1/videos", `{"model":"video-2","prompt":"a cat"}`, true)
	if status != 400 || refused.Get("error.code").Str != "dry_run_unsupported" ||
		slices.ContainsFunc(take(), func(call string) bool { return strings.HasPrefix(call, "/v1/videos") }) {
		t.Errorf("a video is %d %s", status, refused.Raw)
	}
	if got := g.spent(); got != 0 {
		t.Errorf("charged %d", got)
	}
}
