package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"stagedoor/test/harness"
)

func TestWithoutConfigurationTheCurlLineThatIsPrintedWorks(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("install curl: the first thing a user does is tested with it")
	}
	dir := directory(t)
	p := launch(t, dir, "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	_, line, _ := strings.Cut(p.printed("Try it:"), "Try it:")
	out, err := exec.Command("sh", "-c", strings.TrimSpace(line)).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(out, &reply); err != nil || len(reply.Choices) != 1 || reply.Choices[0].Message.Content == "" {
		t.Errorf("curl answered %s", out)
	}
	p.stop()
	if line, _, _ := strings.Cut(p.out.String(), "\n"); !strings.Contains(line, "keeps its state in memory") {
		t.Errorf("the first line is %q", line)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files were left behind: %v %v", left, err)
	}
}

const streaming = `{"model":"sandbox","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"hi"}]}`

// stream begins a stream and returns it once its first bytes are here.
func (p *program) stream(path, key, directives string) *bufio.Reader {
	p.t.Helper()
	res := p.post(path, key, streaming, "x-sandbox", directives)
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("status %d", res.StatusCode)
	}
	r := bufio.NewReader(res.Body)
	if _, err := r.Peek(1); err != nil {
		p.t.Fatal(err)
	}
	return r
}

var printedKey = regexp.MustCompile(`key      (sd-\S+)`)

func (p *program) key() string {
	p.t.Helper()
	p.await("a key is printed", func() bool { return printedKey.MatchString(p.out.String()) })
	return printedKey.FindStringSubmatch(p.out.String())[1]
}

func TestStreamsFinishWithinTheGrace(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory", "--grace", "15s")
	reply := p.stream("/v1/chat/completions", p.key(), "pace=40,tokens=40")
	p.signal(syscall.SIGTERM)
	p.await("refusing connections", func() bool {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get(p.URL + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err != nil
	})
	text, err := io.ReadAll(reply)
	if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("the stream ended with %v after %s", err, text[max(0, len(text)-200):])
	}
	p.ended(exitOK)
}

func TestStreamsBeyondTheGraceEndWithTheirShapesErrorEvent(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory", "--grace", "400ms")
	key := p.key()
	streams := map[string]*bufio.Reader{}
	for path := range map[string]bool{"/v1/chat/completions": true, "/v1/messages": true} {
		streams[path] = p.stream(path, key, "pace=20,tokens=10000")
	}
	begun := time.Now()
	p.signal(syscall.SIGINT)
	for path, reply := range streams {
		text, err := io.ReadAll(reply)
		events := strings.Split(strings.TrimSpace(string(text)), "\n\n")
		last := events[len(events)-1]
		if err != nil || !strings.Contains(last, `"error"`) || (path == "/v1/messages") != strings.HasPrefix(last, "event: error\n") {
			t.Errorf("%s ended with %v after %s", path, err, last)
		}
	}
	p.ended(exitOK)
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("the stop took %s with a grace of 400ms", took)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory", "--grace", "10m")
	p.stream("/v1/chat/completions", p.key(), "pace=20,tokens=10000")
	p.signal(syscall.SIGTERM)
	p.logged("msg=stopping")
	p.signal(syscall.SIGTERM)
	p.ended(exitFailure)
}

func TestSecondGatewayOnADataDirectoryIsToldAndEndsWithCode75(t *testing.T) {
	data := filepath.Join(directory(t), "data")
	p := launch(t, filepath.Dir(data), "serve", "--listen", "127.0.0.1:0", "--data", data)
	command(t, nil, "serve", "--listen", "127.0.0.1:0", "--data", data).check(t, exitStorage, "",
		"another process has the store open")
	p.stop()
}

func TestDataDirectoryThatCannotBeUsedEndsWithCode75(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "file"), "")
	command(t, nil, "serve", "--listen", "127.0.0.1:0", "--data", file).check(t, exitStorage, "",
		"state is unavailable")
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	command(t, nil, "serve", "--listen", "127.0.0.1:0", "--data", long).check(t, exitStorage, "",
		"choose a shorter --data")
}

func TestAddressInUseEndsWithCode1(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	again := command(t, nil, "serve", "--listen", strings.TrimPrefix(p.URL, "http://"), "--data", "memory")
	again.check(t, exitFailure, "",
		"address already in use: stop what listens there, perhaps another gateway, or choose another --listen")
}

func TestSandboxServesOverHTTPUntilItIsStopped(t *testing.T) {
	p := &program{t: t, cmd: exec.Command(harness.Binary(t), "sandbox", "--listen", "127.0.0.1:0", "--pace", "max"),
		exit: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errOut
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exit)
		_ = p.cmd.Wait()
	}()
	defer p.cmd.Process.Kill()
	address := regexp.MustCompile(`http://\S+`)
	p.await("listening", func() bool { return address.MatchString(p.out.String()) })
	p.URL = address.FindString(p.out.String())
	if status := p.ask("any", "any-model"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	p.stop()
}

// BenchmarkStart measures from the start of the process to its first answer.
func BenchmarkStart(b *testing.B) {
	dir := directory(b)
	for b.Loop() {
		p := launch(b, dir, "serve", "--listen", "127.0.0.1:0", "--data", "memory")
		res, err := http.Get(p.URL + "/readyz")
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(res, err)
		}
		b.StopTimer()
		_ = res.Body.Close()
		p.stop()
		b.StartTimer()
	}
}
