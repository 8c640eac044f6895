package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
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

	"stagedoor/state/statetest/pgserver"
	"stagedoor/test/harness"
)

// TestMain runs more tests at a time than there are processors, because those of several gateways mostly wait for
// leases.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil { // unless the command line says otherwise
		panic(err)
	}
	harness.Main(serverTests{m})
}

// serverTests are the tests of the package, which share a Postgres.
type serverTests struct{ *testing.M }

// Run runs the tests and stops the server.
func (s serverTests) Run() int { return pgserver.Main(s.M) }

// patience limits each step on a loaded machine; a test waits for it only if it
// fails.
const patience = 2 * time.Minute

// program is the real program, running.
type program struct {
	t           testing.TB
	cmd         *exec.Cmd
	out, errOut harness.Buffer
	exit        chan struct{}
	URL         string
}

var listening = regexp.MustCompile(`msg=serving listen=\[?([0-9.:]+)`)

// launch runs the program in an empty directory and waits until it serves.
func launch(t testing.TB, dir string, args ...string) *program {
	t.Helper()
	p := begin(t, dir, args...)
	p.serving()
	return p
}

// serving waits until the program serves, and notes its address.
func (p *program) serving() {
	p.t.Helper()
	p.await("serving", func() bool { return listening.MatchString(p.errOut.String()) })
	p.URL = "http://" + listening.FindStringSubmatch(p.errOut.String())[1]
}

// begin starts the program, which ends with the test at the latest.
func begin(t testing.TB, dir string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(harness.Binary(t), args...), exit: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.out, &p.errOut
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exit)
		_ = p.cmd.Wait() // ProcessState says how it went
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // if it still runs
		<-p.exit
		if t.Failed() {
			t.Logf("log of %v:\n%s", args, p.errOut.String())
		}
	})
	return p
}

// await waits for what another process does.
func (p *program) await(what string, done func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	// Most is done in milliseconds. To look as often at what takes seconds would take the processor from it.
	for pause := 5 * time.Millisecond; !done(); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-p.exit:
			if done() {
				return
			}
			p.t.Fatalf("the program ended before: %s\n%s", what, p.errOut.String())
		default:
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("did not happen: %s\n%s", what, p.errOut.String())
		}
		time.Sleep(pause)
	}
}

func (p *program) logged(text string) {
	p.t.Helper()
	p.await("log of "+text, func() bool { return strings.Contains(p.errOut.String(), text) })
}

// printed waits until the text is on the standard output, and returns all that is there.
func (p *program) printed(text string) string {
	p.t.Helper()
	p.await("print "+text, func() bool { return strings.Contains(p.out.String(), text) })
	return p.out.String()
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for the end and checks the exit code.
func (p *program) ended(code int) {
	p.t.Helper()
	select {
	case <-p.exit:
	case <-time.After(patience):
		p.t.Fatal("the program does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d\n%s", got, code, p.errOut.String())
	}
}

func (p *program) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.ended(exitOK)
}

// post sends a request; header pairs follow the body.
func (p *program) post(path, key, body string, header ...string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// ask sends a small chat request and returns the status.
func (p *program) ask(key, model string) int {
	p.t.Helper()
	res := p.post("/v1/chat/completions", key, `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`,
		"x-sandbox", "pace=max")
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode
}

// result holds the exit code and the output of a command.
type result struct {
	code        int
	out, errOut string
}

// command runs the program inside the test.
func command(t testing.TB, env map[string]string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		if !ok && name == "XDG_RUNTIME_DIR" { // else it is that of the person who runs the tests
			return os.LookupEnv(name)
		}
		return v, ok
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := run(ctx, args, lookup, &out, &errOut)
	complain(&errOut, err)
	return result{exitCode(err), out.String(), errOut.String()}
}

func (r result) check(t testing.TB, code int, out, errOut string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.errOut, errOut) {
		t.Errorf("exit code %d, want %d\nout %q, want %q in it\nerr %q, want %q in it", r.code, code, r.out, out,
			r.errOut, errOut)
	}
}

// write makes a file in one step, as careful editors do.
func write(t testing.TB, file, text string) string {
	t.Helper()
	temporary := file + "~"
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(temporary, []byte(text), 0o600),
		os.Rename(temporary, file))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// directory is a temporary one with a path short enough for sockets.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stagedoor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
