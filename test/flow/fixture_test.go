package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"stagedoor/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	token    = "a token of administration for tests"
	password = "correct horse battery"
	// patience limits each step on a loaded machine; a test waits for it only if it
	// fails.
	patience = 2 * time.Minute
)

// bench is a gateway with its sandbox and an administrator.
type bench struct {
	testing.TB
	*harness.Gateway
	data string
}

func start(t testing.TB) *bench {
	t.Helper()
	data, err := os.MkdirTemp("", "stagedoor-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	b := &bench{TB: t, data: data}
	b.launch()
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stop the gateway: %v", err)
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", b.Logs())
		}
	})
	return b
}

// launch starts the gateway on its data.
func (b *bench) launch() {
	b.Helper()
	g, err := harness.Launch(harness.Binary(b), gatewayOn(b.data))
	if err != nil {
		b.Fatal(err)
	}
	b.Gateway = g
}

// again kills the gateway and starts another one on its data.
func (b *bench) again() {
	b.Helper()
	if err := b.Kill(); err != nil {
		b.Fatal(err)
	}
	b.launch()
}

func gatewayOn(data string) harness.Config {
	return harness.Config{Data: data, Admin: &harness.Admin{Token: strings.ReplaceAll(token, " ", "-")},
		Providers: map[string]harness.Provider{"sandbox": {Shape: "sandbox"}},
		Models: map[string]harness.Model{"m1": {Targets: []harness.Target{{Provider: "sandbox", Model: "m1"}}},
			"video-2": {Targets: []harness.Target{{Provider: "sandbox", Model: "video-2"}}}}}
}

// user makes a person.
func (b *bench) user(name string, flags ...string) {
	b.Helper()
	c := exec.Command(
		harness.Binary(b),
		append([]string{"users", "create", name, "--password-stdin", "--data", b.data}, flags...)...)
	c.Stdin = strings.NewReader(password)
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("create %s: %v\n%s", name, err, out)
	}
}

// admin asks the API of administration.
func (b *bench) admin(method, path string, status int) gjson.Result {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.URL+"/admin/v1"+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.ReplaceAll(token, " ", "-"))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		b.Fatalf("%s %s: %d, %v\n%s", method, path, res.StatusCode, err, body)
	}
	return gjson.ParseBytes(body)
}

// await asks until the reply is as wanted.
func (b *bench) await(path, what string, wanted func(gjson.Result) bool) gjson.Result {
	b.Helper()
	var got gjson.Result
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = b.admin("GET", path, http.StatusOK); wanted(got) {
			return got
		}
	}
	b.Fatalf("%s never was: %s", what, got.Raw)
	return got
}

// A question is one request of a shape.
type question struct {
	shape, path string
	body        map[string]any
}

func questions(stream bool) []question {
	user := []any{map[string]any{"role": "user", "content": "hello"}}
	method := "generateContent"
	if stream {
		method = "streamGenerateContent?alt=sse"
	}
	all := []question{
		{"chat", "/v1/chat/completions", map[string]any{"messages": user}},
		{"completions", "/v1/completions", map[string]any{"prompt": "hello", "max_tokens": 4000}},
		{"messages", "/v1/messages", map[string]any{"messages": user, "max_tokens": 4000}},
		{"responses", "/v1/responses", map[string]any{"input": "hello"}},
	}
	for i := range all {
		all[i].body["model"] = "m1"
		if stream {
			all[i].body["stream"] = true
		}
	}
	return append(all, question{"gemini", "/v1beta/models/m1:" + method,
		map[string]any{
			"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hello"}}}},
		}})
}

// ask begins a request; what the sandbox does is in play.
func (b *bench) ask(q question, play string) (*http.Response, error) {
	body, err := json.Marshal(q.body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.URL+q.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+b.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Sandbox", play)
	return http.DefaultClient.Do(r)
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// signIn returns the browser of a signed-in user.
func (b *bench) signIn(name string) *http.Client {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	page := b.page(c, "/signin")
	res, err := c.PostForm(b.URL+"/signin", url.Values{"token": {page}, "username": {name}, "password": {password}})
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/account" {
		b.Fatalf("sign in: %d at %s", res.StatusCode, res.Request.URL)
	}
	return c
}

// page is the form token of a page.
func (b *bench) page(c *http.Client, path string) string {
	b.Helper()
	res, err := c.Get(b.URL + path)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	m := formToken.FindSubmatch(body)
	if err != nil || res.StatusCode != http.StatusOK || m == nil {
		b.Fatalf("GET %s: %d, %v\n%s", path, res.StatusCode, err, body)
	}
	return string(m[1])
}

// dial opens the socket of the pages.
func (b *bench) dial(c *http.Client, origin string) (*websocket.Conn, int, error) {
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	d := websocket.Dialer{HandshakeTimeout: patience}
	if c != nil {
		d.Jar = c.Jar
	}
	conn, res, err := d.DialContext(b.Context(), "ws"+strings.TrimPrefix(b.URL, "http")+"/flow/socket", h)
	if err != nil {
		if res == nil {
			return nil, 0, err
		}
		return nil, res.StatusCode, nil
	}
	return conn, res.StatusCode, nil
}

// watch asks a socket for a view.
func watch(t testing.TB, conn *websocket.Conn, wish string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(wish)); err != nil {
		t.Fatal(err)
	}
}

// hear reads messages until one is as wanted.
func hear(t testing.TB, conn *websocket.Conn, what string, wanted func(gjson.Result) bool) gjson.Result {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("%s was not heard: %v", what, err)
		}
		if m := gjson.ParseBytes(message); wanted(m) {
			return m
		}
	}
}

func byID(id string) string { return fmt.Sprintf(`data.#(id=="%s")`, id) }
