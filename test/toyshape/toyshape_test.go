// Package toyshape tests that a new text shape needs a folder and one line in shapes/registry. It
// builds the program with a shape from testdata laid over the source, and uses it through HTTP.
package toyshape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// build returns the program with the toy shape. The shape is a folder, and one line in the registry, with its import.
// The registry is compiled with that line. The program gets the shape from the line's statement in package main, before
// main begins: everything that imports the registry would otherwise be compiled again.
func build(t *testing.T) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	registry := filepath.Join(root, "providers/shapes/registry/registry.go")
	source, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(source), "\nimport (", "\nimport (\n\t\"stagedoor/providers/shapes/toy\"", 1)
	changed = strings.Replace(changed, "\nvar All = []*shapes.Shape{\n", "\nvar All = []*shapes.Shape{\n\ttoy.Shape,\n",
		1)
	if !strings.Contains(changed, "toy.Shape,") {
		t.Fatal("the registry has no list to add a line to")
	}
	compile(t, root, map[string]string{registry: changed}, "./providers/shapes/registry")
	binary := filepath.Join(t.TempDir(), "stagedoor")
	compile(t, root, map[string]string{filepath.Join(root, "cmd/stagedoor/toy.go"): `package main

import (
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/shapes/toy"
)

func init() { registry.All = append(registry.All, toy.Shape) }
`}, "-ldflags=-w", "-o", binary, "./cmd/stagedoor")
	return binary
}

// compile runs go build with the folder of the toy shape and with these texts in place of the files at their paths.
func compile(t *testing.T, root string, texts map[string]string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]string{}
	for path, text := range texts {
		overlay[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(overlay[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "test/toyshape/testdata/toy/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no toy shape: %v", err)
	}
	for _, file := range files {
		overlay[filepath.Join(root, "providers/shapes/toy", filepath.Base(file))] = file
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", list}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOGC=400", "GOMEMLIMIT=2GiB") // a third less processor time
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with the toy shape: %v\n%s", err, out)
	}
}

// TestANewShapeNeedsAFolderAndOneLine boots the gateway with a toy shape. Routes, scope, errors,
// telemetry, doctor, catalogue and simulator must work for it.
func TestANewShapeNeedsAFolderAndOneLine(t *testing.T) {
	binary := build(t)
	t.Run("no scope", func(t *testing.T) {
		c := config("http://127.0.0.1:9")
		c.Keys = []harness.Key{{Key: "sd-any", Name: "any"}}
		g, err := harness.Spawn(binary, c)
		if err != nil {
			t.Fatal(err)
		}
		if code := g.Await(20 * time.Second); code == 0 || code == -1 || !strings.Contains(g.Logs(), "shape toy: its routes have no scope") {
			t.Errorf("a gateway with routes that every key could use ended with %d: %s", code, g.Logs())
		}
		_ = g.Stop() // it has ended with an error, as it should
	})
	t.Setenv("TOY_SCOPE", "toy")
	sandbox := serveSandbox(t, binary)
	g, err := harness.Launch(binary, config(sandbox))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &session{t: t, url: g.URL}
	t.Run("route", s.route)
	t.Run("scope", s.scope)
	t.Run("errors", s.errors)
	t.Run("models", s.models)
	t.Run("telemetry", s.telemetry)
	t.Run("doctor", func(t *testing.T) { doctor(t, binary, sandbox) })
}

func config(sandbox string) harness.Config {
	only := func(provider string) harness.Model {
		return harness.Model{Targets: []harness.Target{{Provider: provider, Model: "*"}}}
	}
	return harness.Config{
		Keys: []harness.Key{
			{Key: "sd-toy", Name: "toy", Scopes: []string{"toy", "chat", "models"}},
			{Key: "sd-chat", Name: "chat", Scopes: []string{"chat"}},
		},
		Providers: map[string]harness.Provider{
			"toys":     {Shape: "toy", BaseURL: sandbox + "/v1", APIKeys: []string{"k"}},
			"chats":    {Shape: "chat", BaseURL: sandbox + "/v1", APIKeys: []string{"k"}},
			"embedded": {Shape: "sandbox"},
		},
		Models:    map[string]harness.Model{"toy": only("toys"), "chat": only("chats"), "sandbox": only("embedded")},
		Telemetry: map[string]any{"metrics": map[string]any{"prometheus": true}},
	}
}

// serveSandbox runs the simulator as an upstream.
func serveSandbox(t *testing.T, binary string) string {
	t.Helper()
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "sandbox", "--listen", addr, "--pace", "max")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the test's context has ended it already
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if resp, err := http.Get("http://" + addr + "/models"); err == nil {
			_ = resp.Body.Close()
			return "http://" + addr
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the simulator does not answer")
	return ""
}

// session sends requests to a gateway.
type session struct {
	t   *testing.T
	url string
}

func (s *session) send(t *testing.T, key, method, path, body string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Toy-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, reply
}

// route uses the shape with an upstream of its own shape, with one of another shape and with the
// embedded simulator, and its upstream with a client of another shape.
func (s *session) route(t *testing.T) {
	for _, model := range []string{"toy", "chat", "sandbox"} {
		body := fmt.Sprintf(`{"model":%q,"say":"Say exactly: hello","most":50}`, model)
		status, _, reply := s.send(t, "sd-toy", "POST", "/v1/toy", body)
		var got struct {
			Model, Said string
			Read, Wrote int64
		}
		if err := json.Unmarshal(reply, &got); err != nil || status != 200 || got.Said == "" || got.Wrote == 0 {
			t.Errorf("%s: %d %s", model, status, reply)
		}
		status, header, reply := s.send(t, "sd-toy", "POST", "/v1/toy",
			strings.Replace(body, "{", `{"stream":true,`, 1))
		if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") ||
			bytes.Count(reply, []byte(`data: {"piece":`)) == 0 || bytes.Count(reply, []byte(`"wrote":`)) != 1 {
			t.Errorf("%s streamed: %d %s", model, status, reply)
		}
	}
	status, _, reply := s.send(t, "sd-toy", "POST", "/v1/chat/completions",
		`{"model":"toy","messages":[{"role":"user","content":"hi"}]}`)
	if status != 200 || !bytes.Contains(reply, []byte(`"finish_reason":"stop"`)) {
		t.Errorf("a chat client of a toy upstream: %d %s", status, reply)
	}
	status, header, reply := s.send(t, "sd-toy", "POST", "/v1/toy/count", `{"model":"toy","say":"one two three"}`)
	if status != 200 || header.Get("X-Stagedoor-Estimate") == "" || !bytes.HasPrefix(reply, []byte(`{"tokens":`)) {
		t.Errorf("count: %d %s", status, reply)
	}
}

func (s *session) scope(t *testing.T) {
	status, _, reply := s.send(t, "sd-chat", "POST", "/v1/toy", `{"model":"toy","say":"hi"}`)
	if status != 403 || !bytes.Contains(reply, []byte(`"code":"permission_denied"`)) {
		t.Errorf("a key without the scope: %d %s", status, reply)
	}
}

// errors checks that errors of the shape's paths have its envelope, whether a handler, the router
// or an upstream makes them.
func (s *session) errors(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/toy", `{"model":"toy"}`, 400},
		{"POST", "/v1/toy", `{"model":"none","say":"hi"}`, 404},
		{"POST", "/v1/toy", `{"model":"toy","Say":"hi"}`, 400},
		{"POST", "/v1/toy", `{"model":"toy","say":"[sandbox: status=418]"}`, 418},
		{"GET", "/v1/toy", ``, 405},
		{"POST", "/v1/toy/none", ``, 404},
	} {
		status, _, reply := s.send(t, "sd-toy", c.method, c.path, c.body)
		if status != c.status || !bytes.HasPrefix(reply, []byte(`{"fault":"`)) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, reply)
		}
	}
}

func (s *session) models(t *testing.T) {
	for path, want := range map[string]string{"/v1/toymodels": `{"toys":[`, "/v1/toymodels/toy": `{"toy":"toy"}`} {
		if status, _, reply := s.send(t, "sd-toy", "GET", path, ""); status != 200 || !strings.HasPrefix(string(reply), want) {
			t.Errorf("%s: %d %s", path, status, reply)
		}
	}
}

func (s *session) telemetry(t *testing.T) {
	_, _, reply := s.send(t, "sd-toy", "GET", "/metrics", "")
	for _, want := range []string{`gen_ai_operation_name="toy_operation"`, `gen_ai_provider_name="toyworks"`} {
		if !bytes.Contains(reply, []byte(want)) {
			t.Errorf("no metric has %s", want)
		}
	}
}

func doctor(t *testing.T, binary, sandbox string) {
	text, err := json.Marshal(config(sandbox))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "stagedoor.yaml")
	text = bytes.Replace(text, []byte(`"data":""`), []byte(`"data":"memory"`), 1)
	text = bytes.Replace(text, []byte(`"listen":null`), []byte(`"listen":["127.0.0.1:0"]`), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "doctor", "--config", file).CombinedOutput()
	if !bytes.Contains(out, []byte("provider toys")) || !bytes.Contains(out, []byte("the key is good")) {
		t.Errorf("%v\n%s", err, out)
	}
}
