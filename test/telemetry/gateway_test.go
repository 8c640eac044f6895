package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	key   = "sd-telemetry-test"
	admin = "a-token-of-administration-for-tests"
	// Nothing of these may ever be in a span, a metric or a log line.
	secretPrompt = "the-prompt-that-must-stay-secret"
	secretReply  = "the-reply-that-must-stay-secret"
	secretKey    = "sk-upstream-key-that-must-stay-secret"
	// secretReply64 is the secret reply as the bytes of a picture.
	secretReply64 = "dGhlLXJlcGx5LW5vYm9keS1tYXktcmVhZA=="
)

var binary = sync.OnceValues(func() (string, error) {
	if ready := os.Getenv("STAGEDOOR_BINARY"); ready != "" {
		return ready, nil
	}
	dir, err := os.MkdirTemp("", "stagedoor-telemetry-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "stagedoor")
	build := exec.Command("go", "build", "-o", out, "./cmd/stagedoor")
	build.Dir = filepath.Join("..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, text)
	}
	return out, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil && os.Getenv("STAGEDOOR_BINARY") == "" {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// gateway is a running program.
type gateway struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	mu   sync.Mutex
	logs bytes.Buffer
}

// Write implements io.Writer.
func (g *gateway) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logs.Write(p)
}

func (g *gateway) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logs.String()
}

type object = map[string]any

// start runs a gateway with upstreams and a configuration of telemetry. env is
// NAME=value.
func start(t *testing.T, u *upstream, telemetry object, env ...string) *gateway {
	t.Helper()
	return startOn(t, "memory", u, telemetry, env...)
}

// startOn is start on a data directory.
func startOn(t *testing.T, data string, u *upstream, telemetry object, env ...string) *gateway {
	t.Helper()
	g := launch(t, data, u, telemetry, env...)
	g.api("POST", "/users", `{"username":"anna"}`)
	g.api("POST", "/accounts/anna/credits", `{"amount":1000000000,"id":"start"}`)
	return g
}

// launch is start on a data directory, with whatever users are there.
func launch(t *testing.T, data string, u *upstream, telemetry object, env ...string) *gateway {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	c := object{
		"listen": []string{addr}, "data": data, "admin": object{"token": admin}, "log": object{"format": "json"},
		"keys": []object{{"key": key, "name": "test", "user": "anna"}},
		"providers": object{
			"first":  object{"shape": "chat", "base_url": u.url, "api_keys": []string{secretKey}, "retries": 1},
			"second": object{"shape": "chat", "base_url": u.url, "api_keys": []string{secretKey}, "retries": 0},
			"narrow": object{"shape": "chat", "base_url": u.url, "limits": object{"concurrency": 1}},
			"drawing": object{
				"shape":    "images",
				"base_url": u.url,
				"api_keys": []string{secretKey},
				"retries":  1,
				"limits":   object{"concurrency": 1},
			},
			"sandbox": object{"shape": "sandbox"},
		},
		"models": object{
			"priced": object{
				"targets":  []object{{"provider": "first", "model": "up-1"}},
				"fallback": []object{{"provider": "second", "model": "up-2"}},
				"price":    object{"input": 1, "output": 2},
			},
			"plain": object{
				"targets":      []object{{"provider": "second", "model": "up-4"}},
				"capabilities": object{"structured_outputs": false},
			},
			"narrow":  object{"targets": []object{{"provider": "narrow", "model": "up-3"}}},
			"sandbox": object{"targets": []object{{"provider": "sandbox", "model": "sandbox"}}},
			"clips":   object{"targets": []object{{"provider": "sandbox", "model": "video-2"}}},
			"*":       object{"targets": []object{{"provider": "sandbox", "model": "*"}}},
			"painted": object{
				"targets": []object{{"provider": "drawing", "model": "gpt-image-1"}},
				"price":   object{"per_image": 0.04},
			},
			"dreams": object{"targets": []object{{"provider": "sandbox", "model": "gpt-image-1"}}},
		},
		"telemetry": telemetry,
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "stagedoor.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, url: "http://" + addr}
	g.cmd = exec.Command(path, "serve", "--config", file)
	g.cmd.Stdout, g.cmd.Stderr = g, g
	g.cmd.Env = append(os.Environ(), env...)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	g.awaitReady()
	return g
}

// kill ends the gateway as a crash does.
func (g *gateway) kill() {
	g.t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	_ = g.cmd.Wait() // it was killed
}

func (g *gateway) stop() {
	if g.cmd.ProcessState != nil {
		return
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- g.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			g.t.Errorf("the gateway ended with %v\n%s", err, g.log())
		}
	case <-time.After(time.Minute):
		_ = g.cmd.Process.Kill()
		g.t.Errorf("the gateway did not stop within a minute\n%s", g.log())
	}
}

func (g *gateway) awaitReady() {
	g.t.Helper()
	for range 4000 {
		if r, err := http.Get(g.url + "/readyz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	g.t.Fatalf("the gateway was not ready within 20 s\n%s", g.log())
}

// api asks the interface for operators and returns its answer.
func (g *gateway) api(method, path, body string) string {
	g.t.Helper()
	r, err := http.NewRequest(method, g.url+"/admin/v1"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+admin)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		g.t.Fatalf("%s %s: %d %s, %v", method, path, res.StatusCode, text, err)
	}
	return string(text)
}

var ids atomic.Int64

// ask sends a request and returns its id, status and reply. headers are name,
// value, and so on.
func (g *gateway) ask(path, body string, headers ...string) (id string, status int, reply string) {
	g.t.Helper()
	id = fmt.Sprintf("telemetry-%d", ids.Add(1))
	r, err := http.NewRequest("POST", g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return id, res.StatusCode, string(text)
}

// queue sends a request twice, to a provider that takes one at a time. The second,
// whose id and status it returns, waits in the queue until the first is through.
func (g *gateway) queue(u *upstream, path, body string) (id string, status int) {
	g.t.Helper()
	release := u.stall()
	defer release()
	var both sync.WaitGroup
	both.Go(func() { g.ask(path, body) })
	g.awaitGates(0)
	both.Go(func() { id, status, _ = g.ask(path, body) })
	g.awaitGates(1)
	release()
	both.Wait()
	return id, status
}

// awaitGates waits until one request is in flight and so many are in the providers'
// queues, for long enough that their wait has a span.
func (g *gateway) awaitGates(queued int) {
	g.t.Helper()
	var inFlight, waiting, long int
	for range 4000 {
		var list struct {
			Data []struct {
				InFlight int `json:"in_flight"`
				Queues   []struct {
					Count    int
					OldestMs int64 `json:"oldest_ms"`
				}
			}
		}
		if err := json.Unmarshal([]byte(g.api("GET", "/providers", "")), &list); err != nil {
			g.t.Fatal(err)
		}
		inFlight, waiting, long = 0, 0, 0
		for _, p := range list.Data {
			inFlight += p.InFlight
			for _, q := range p.Queues {
				if waiting += q.Count; q.OldestMs > 1 {
					long++
				}
			}
		}
		if inFlight == 1 && waiting == queued && long == queued {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	g.t.Fatalf("after 20 s %d requests are in flight and %d in queues, want 1 and %d", inFlight, waiting, queued)
}

// chat is a request that is good in the shapes of chat and of messages.
func chat(model string, stream bool) string {
	return fmt.Sprintf(
		`{"model":%q,"stream":%t,"max_tokens":50,"messages":[{"role":"user","content":%q}]}`,
		model,
		stream,
		secretPrompt,
	)
}

// upstream is a provider of shape chat that follows the test's script.
type upstream struct {
	url string
	mu  sync.Mutex
	// next are the statuses of the next calls; then it is 200.
	next []int
	// wait is the duration of a call.
	wait time.Duration
	// stalled holds all calls until it is closed; nil: none is held.
	stalled chan struct{}
	heard   []http.Header
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	u.url = s.URL
	return u
}

// will sets the statuses of the next calls.
func (u *upstream) will(status ...int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = status
}

func (u *upstream) slow(d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wait = d
}

// stall holds all calls from now on, until release is called.
func (u *upstream) stall() (release func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	stalled := make(chan struct{})
	u.stalled = stalled
	return sync.OnceFunc(func() { close(stalled) })
}

// lastHeader is a header of the last call.
func (u *upstream) lastHeader(name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.heard[len(u.heard)-1].Get(name)
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Stream bool }
	_ = json.NewDecoder(r.Body).Decode(&body)
	u.mu.Lock()
	u.heard = append(u.heard, r.Header.Clone())
	status, wait, stalled := http.StatusOK, u.wait, u.stalled
	if len(u.next) > 0 {
		status, u.next = u.next[0], u.next[1:]
	}
	u.mu.Unlock()
	time.Sleep(wait)
	if stalled != nil {
		<-stalled
	}
	if status != http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"no","type":"server_error","code":null}}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/images/generations") {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w,
			`{"created":5,"output_format":"png","size":"1024x1024","data":[{"b64_json":"`+
				secretReply64+`"}],"usage":{"total_tokens":9,"input_tokens":4,"output_tokens":5}}`,
		)
		return
	}
	const usage = `{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`
	if !body.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"id":"chatcmpl-up","object":"chat.completion","created":1,"model":"up-model","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":%s}`,
			secretReply,
			usage,
		)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(data string) {
		fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
	const head = `{"id":"chatcmpl-up","object":"chat.completion.chunk","created":1,"model":"up-model",`
	say(head + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	for range 3 {
		say(head + fmt.Sprintf(`"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, secretReply))
		time.Sleep(5 * time.Millisecond)
	}
	say(head + `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	say(head + `"choices":[],"usage":` + usage + `}`)
	say("[DONE]")
}
