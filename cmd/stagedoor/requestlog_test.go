package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/requestlog"
)

// loggedRequests reads a log that no process has open.
func loggedRequests(t *testing.T, dir string) []requestlog.Record {
	t.Helper()
	return findLogged(t, dir, "")
}

// findLogged searches a log that no process has open.
func findLogged(t *testing.T, dir, search string) (all []requestlog.Record) {
	t.Helper()
	terms, err := requestlog.Parse(search)
	if err != nil {
		t.Fatal(err)
	}
	log, err := sqlite.Open(sqlite.Options{Path: filepath.Join(dir, sqlite.FileName), Now: time.Now,
		Limits: func() requestlog.Limits { return requestlog.Limits{Keep: time.Hour, Bytes: 1 << 30} },
		Room:   func() int64 { return 0 }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	err = log.Find(t.Context(), &requestlog.Query{Terms: terms, Limit: 1000}, func(r *requestlog.Record) bool {
		all = append(all, *r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheLogOfRequestsSurvivesKill9 shows what is in the log of requests: the cost, the attempts, and no words of the
// client or of a provider; after a stop, after a kill and after the file was broken.
func TestTheLogOfRequestsSurvivesKill9(t *testing.T) {
	t.Parallel()
	const prompt, vendorKey, key = "my doctor said", "sk-vendor-secret-1234567890", "sd-for-tests-only"
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"you sent %d bytes: %s with %s","type":"invalid","code":"bad_prompt"}}`,
			len(body),
			prompt, r.Header.Get("Authorization"))
	}))
	defer upstream.Close()
	dir := directory(t)
	data := filepath.Join(dir, "data")
	file := write(t, filepath.Join(dir, "stagedoor.yaml"), fmt.Sprintf(`
listen: 127.0.0.1:0
data: %s
keys: [{key: %s, name: laptop, user: anna}]
providers:
  sandbox: {shape: sandbox}
  vendor: {shape: chat, base_url: %s/v1, api_keys: [%s]}
models:
  m1: {targets: [{provider: sandbox, model: m1}], price: {input: 1, output: 1000}}
  v1: {targets: [{provider: vendor, model: v1}]}
`, data, key, upstream.URL, vendorKey))
	p := launch(t, dir, "serve", "--config", file)
	command(t, nil, "users", "create", "anna", "--data", data).check(t, exitOK, "", "anna")
	command(t, nil, "credits", "add", "anna", "10", "--data", data).check(t, exitOK, "anna has", "")
	if status := p.ask(key, "m1"); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	res := p.post("/v1/chat/completions", key, `{"model":"v1","messages":[{"role":"user","content":"`+prompt+`"}]}`)
	if answer, _ := io.ReadAll(res.Body); res.StatusCode != 400 || !strings.Contains(string(answer), prompt) {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	p.stop()
	all := loggedRequests(t, data)
	if len(all) != 2 {
		t.Fatalf("%d requests after a stop: %+v", len(all), all)
	}
	if bad := all[0]; bad.Status != 400 || bad.Code != "bad_prompt" || bad.Error != "" || bad.KeyName != "laptop" ||
		len(bad.Tries) != 1 || bad.Tries[0].Status != 400 {
		t.Errorf("the request that failed: %+v", bad)
	}
	if good := all[1]; good.Status != 200 || good.Cost <= 0 || good.User != "anna" || good.Output == 0 ||
		good.First == 0 {
		t.Errorf("the request with a price: %+v", good)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(filepath.Join(data, sqlite.FileName+suffix))
		if err != nil && suffix == "" {
			t.Fatal(err)
		}
		for _, secret := range []string{"doctor", vendorKey, key, "you sent"} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
	}

	p = launch(t, dir, "serve", "--config", file)
	for range 20 {
		p.ask(key, "m1")
	}
	p.await("a batch in the log", func() bool { return len(loggedRequests(t, data)) > 2 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exit
	if all := loggedRequests(t, data); len(all) < 3 || len(all) > 22 {
		t.Errorf("%d requests after a kill", len(all))
	}

	write(t, filepath.Join(data, sqlite.FileName), strings.Repeat("broken", 5000))
	p = launch(t, dir, "serve", "--config", file)
	p.ask(key, "m1")
	p.logged("the log of requests was broken and begins anew")
	p.stop()
	if all := loggedRequests(t, data); len(all) != 1 {
		t.Errorf("%d requests in the new file", len(all))
	}
}

// TestAReloadThatChangesDataKeepsTheLogOfRequests where it is, because another data directory waits for the next start.
func TestAReloadThatChangesDataKeepsTheLogOfRequests(t *testing.T) {
	t.Parallel()
	reload := func(t *testing.T, before, after string) (dir string) {
		dir = directory(t)
		if err := os.Mkdir(filepath.Join(dir, "memory"), 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(serving("a", "p"), "file:secret", "one", 1)
		file := write(t, filepath.Join(dir, "f.yaml"), strings.Replace(text, "data: memory", "data: "+before, 1))
		p := launch(t, dir, "serve", "--config", "f.yaml")
		first := p.ask("one", "a")
		write(t, file, strings.Replace(text, "data: memory", "data: "+after, 1))
		p.logged("configuration read again")
		if second := p.ask("one", "a"); first != http.StatusOK || second != http.StatusOK {
			t.Errorf("status %d before and %d after", first, second)
		}
		p.stop()
		return dir
	}
	t.Run("to memory", func(t *testing.T) {
		if n := len(loggedRequests(t, filepath.Join(reload(t, "data", "memory"), "data"))); n != 2 {
			t.Errorf("%d requests are in the log, want 2", n)
		}
	})
	t.Run("from memory", func(t *testing.T) {
		dir := reload(t, "memory", "data")
		for _, name := range []string{"memory", "data"} { // the first is what a relative path of the word would name
			if entries, err := os.ReadDir(filepath.Join(dir, name)); len(entries) > 0 {
				t.Errorf("%s has %v, %v", name, entries, err)
			}
		}
	})
}

// TestRequestsThatAreRefusedAreInTheLog: those with a known key that are refused before a provider is chosen, for any
// reason and with any kind of reply. Strangers cannot fill the log.
func TestRequestsThatAreRefusedAreInTheLog(t *testing.T) {
	const key = "sd-for-tests-only"
	dir := directory(t)
	data := filepath.Join(dir, "data")
	file := write(t, filepath.Join(dir, "stagedoor.yaml"), fmt.Sprintf(`
listen: 127.0.0.1:0
data: %s
keys: [{key: %s, name: laptop}, {key: sd-small-key, name: small, limits: {rpm: 1}}]
providers: {sandbox: {shape: sandbox}}
models: {m1: {targets: [{provider: sandbox, model: m1}]}}
`, data, key))
	p := launch(t, dir, "serve", "--config", file)
	for _, c := range []struct {
		key, path, body string
		status          int
	}{
		{key, "/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404},
		{key, "/v1/messages", `{"model":"m1","max_tokens":1,"messages":[}`, 400},
		{key, "/v1/responses", `{"model":"m1","input":"x","previous_response_id":"resp_none"}`, 404},
		{key, "/v1/embeddings", `{"model":"none","input":"x"}`, 404},
		{key, "/v1/images/generations", `{"model":"none","prompt":"x"}`, 404},
		{key, "/v1/videos", `{"model":"none","prompt":"x"}`, 404},
		{"sd-small-key", "/v1/chat/completions", `{"model":"m1","messages":[{"role":"user","content":"x"}]}`, 200},
		{"sd-small-key", "/v1/chat/completions", `{"model":"m1","messages":[{"role":"user","content":"x"}]}`, 429},
		{"sd-stranger", "/v1/chat/completions", `{"model":"m1","messages":[{"role":"user","content":"x"}]}`, 401},
	} {
		if res := p.post(c.path, c.key, c.body); res.StatusCode != c.status {
			t.Errorf("%s by %s: %d, want %d", c.path, c.key, res.StatusCode, c.status)
		}
		if c.status == 404 || c.status == 400 { // a dry run that is refused is not in the log
			if res := p.post(c.path, c.key, c.body, "X-Dry-Run", "1"); res.StatusCode < 400 {
				t.Errorf("a dry run of %s: %d, want an error", c.path, res.StatusCode)
			}
		}
	}
	p.stop()
	var got []string
	for _, r := range loggedRequests(t, data) {
		got = append(got, fmt.Sprintf("%s %s %q %d %s", r.KeyName, r.Shape, r.Model, r.Status, r.Code))
		if r.Attempts != 0 && r.Status != 200 || r.Status != 200 && r.Error == "" || r.Cost != 0 {
			t.Errorf("%+v", r)
		}
	}
	if found := findLogged(t, data, "error:invalid_json key:laptop"); len(found) != 1 || found[0].Shape != "messages" {
		t.Errorf("a search for the error finds %+v", found)
	}
	slices.Sort(got)
	want := []string{`laptop chat "none" 404 model_not_found`, `laptop embeddings "none" 404 model_not_found`,
		`laptop images "none" 404 model_not_found`, `laptop messages "" 400 invalid_json`,
		`laptop responses "m1" 404 previous_response_not_found`, `laptop videos "none" 404 model_not_found`,
		`small chat "" 429 rate_limit_exceeded`, `small chat "m1" 200 `}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
