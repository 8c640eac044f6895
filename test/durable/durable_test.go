package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// exitStorage is the exit code for a data directory that cannot be used.
const exitStorage = 75

func sandbox(data string) harness.Config {
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	c.Data = data
	return c
}

// store asks for a response that is stored, with an input of n bytes.
func store(t *testing.T, g *harness.Gateway, n int) (status int, id, code string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","input":"[sandbox: pace=max] %s"}`, strings.Repeat("x", n))
	status, reply := g.Ask(t, http.MethodPost, "/v1/responses", body)
	var r struct {
		ID    string
		Error *struct{ Code string }
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		t.Fatalf("%d %s", status, reply)
	}
	if r.Error != nil {
		code = r.Error.Code
	}
	return status, r.ID, code
}

// patience limits the time of a command on a loaded machine.
const patience = 2 * time.Minute

// command runs a command of the program and returns its exit code and output.
func command(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var text bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(t), args...)
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// does fails unless a command ends well and says what is wanted.
func does(t *testing.T, want string, args ...string) {
	t.Helper()
	if code, out := command(t, args...); code != 0 || !strings.Contains(out, want) {
		t.Fatalf("stagedoor %s: exit %d:\n%s", strings.Join(args, " "), code, out)
	}
}

// refuses fails unless a command ends with a code and says why.
func refuses(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if got, out := command(t, args...); got != code || !strings.Contains(out, want) {
		t.Errorf("stagedoor %s: exit %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, want, out)
	}
}

func launch(t *testing.T, binary string, c harness.Config) *harness.Gateway {
	t.Helper()
	g, err := harness.Launch(binary, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func stop(t *testing.T, g *harness.Gateway) {
	t.Helper()
	if err := g.Stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, g.Logs())
	}
}

// TestFullDiskRefusesWritesAndLosesNothing gives the gateway a disk of a few
// megabytes: writes become 503s, reads go on, and after a kill and with room
// again everything that was acknowledged is there.
func TestFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	data := t.TempDir()
	script := harness.Script(t, "stagedoor",
		fmt.Sprintf("#!/bin/sh\nulimit -f 4096\nexec %q \"$@\"\n", harness.Binary(t)))
	g := launch(t, script, sandbox(data))
	var kept []string
	refused := 0
	for range 200 {
		status, id, code := store(t, g, 100_000)
		switch {
		case status == http.StatusOK:
			kept = append(kept, id)
		case status == http.StatusServiceUnavailable && code == "storage_unavailable":
			refused++
		default:
			t.Fatalf("got %d %s after %d responses", status, code, len(kept))
		}
		if refused == 5 {
			break
		}
	}
	if refused == 0 || len(kept) == 0 {
		t.Fatalf("%d kept, %d refused: nothing was tested", len(kept), refused)
	}
	for _, path := range []string{"/v1/responses/" + kept[0], "/v1/models", "/readyz"} {
		if status, reply := g.Ask(t, http.MethodGet, path, ""); status != http.StatusOK {
			t.Errorf("GET %s on a full disk: %d %s", path, status, reply)
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	does(t, "nothing is wrong", "state", "verify", "--data", data)
	g = launch(t, harness.Binary(t), sandbox(data))
	for _, id := range kept {
		if status, reply := g.Ask(t, http.MethodGet, "/v1/responses/"+id, ""); status != http.StatusOK {
			t.Errorf("%s was acknowledged: %d %s", id, status, reply)
		}
	}
	if status, _, code := store(t, g, 10); status != http.StatusOK {
		t.Errorf("with room again: %d %s", status, code)
	}
	stop(t, g)
}

// TestOneProcessOwnsADataDirectory: a second one ends soon and says what to do.
func TestOneProcessOwnsADataDirectory(t *testing.T) {
	data := t.TempDir()
	g := launch(t, harness.Binary(t), sandbox(data))
	defer stop(t, g)
	began := time.Now()
	refuses(t, exitStorage, "another process has the store open: stop it, or choose another data directory",
		"serve", "--data", data, "--listen", "127.0.0.1:0")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	refuses(t, exitStorage, "stop it", "state", "verify", "--data", data)
	refuses(t, exitStorage, "stop it", "state", "compact", "--data", data)
	refuses(t, exitStorage, "stop it", "state", "export", "--data", data)
	if status, _, _ := store(t, g, 10); status != http.StatusOK {
		t.Errorf("the first one answers %d", status)
	}
}

// TestBackupOfARunningGatewayIsAGateway: it has everything that was acknowledged
// before it was made, can be verified and exported, and serves when restored.
func TestBackupOfARunningGatewayIsAGateway(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	g := launch(t, harness.Binary(t), sandbox(data))
	var before []string
	for range 5 {
		_, id, _ := store(t, g, 5000)
		before = append(before, id)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if status, _, code := store(t, g, 5000); status != http.StatusOK {
					t.Errorf("during the backup: %d %s", status, code)
				}
			}
		}
	})
	file := filepath.Join(dir, "backup.db")
	does(t, "backed up to", "state", "backup", file, "--data", data)
	close(done)
	wg.Wait()
	refuses(t, 1, "exist", "state", "backup", file, "--data", data)
	stop(t, g)

	does(t, "nothing is wrong", "state", "verify", file)
	first, second := filepath.Join(dir, "1.ndjson"), filepath.Join(dir, "2.ndjson")
	restored := filepath.Join(dir, "restored")
	does(t, "exported", "state", "export", first, "--from", file)
	does(t, "imported", "state", "import", first, "--data", restored)
	does(t, "exported", "state", "export", second, "--data", restored)
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("an import exports other bytes (%v, %v)", errA, errB)
	}
	does(t, "compacted", "state", "compact", "--data", restored)
	refuses(t, 1, "choose an empty directory", "state", "import", first, "--data", restored)
	half := filepath.Join(dir, "half.ndjson")
	if err := os.WriteFile(half, a[:len(a)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, 1, "not a whole export", "state", "import", half, "--data", filepath.Join(dir, "none"))

	g = launch(t, harness.Binary(t), sandbox(restored))
	for _, id := range before {
		if status, reply := g.Ask(t, http.MethodGet, "/v1/responses/"+id, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", id, status, reply)
		}
	}
	stop(t, g)
}

// TestDamageIsReportedAndNotServed flips a bit of a record, and cuts the file.
func TestDamageIsReportedAndNotServed(t *testing.T) {
	data := t.TempDir()
	does(t, "anna", "users", "create", "anna", "--data", data)
	path := filepath.Join(data, "stagedoor.db")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Every copy of the record: most are in pages that are free.
	flipped := bytes.ReplaceAll(good, []byte(`"username":"anna"`), []byte(`"username":"ann`+string(rune('a'^1))+`"`))
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a bit":  {flipped, `user/"0000000000000000001" has a wrong checksum: restore a backup`},
		"cut":    {good[:len(good)/2], "the store is damaged"},
		"zeroed": {append(bytes.Clone(good[:8192]), make([]byte, len(good)-8192)...), "the store is damaged"},
		"empty":  {nil, "is empty"},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		refuses(t, exitStorage, c.want, "state", "verify", "--data", data)
		refuses(t, exitStorage, c.want, "serve", "--data", data, "--listen", "127.0.0.1:0")
		if now, err := os.ReadFile(path); name != "a bit" && (err != nil || !bytes.Equal(now, c.file)) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
	}
}

// TestAFinishedReplyOutlivesTheProcess: a stream whose end has arrived is repeated byte for byte by the next process,
// although the first one was killed.
func TestAFinishedReplyOutlivesTheProcess(t *testing.T) {
	data := t.TempDir()
	ask := func(g *harness.Gateway) (reply []byte, repeated string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+"/v1/chat/completions",
			strings.NewReader(
				`{"model":"m","stream":true,"messages":[{"role":"user","content":"[sandbox: pace=max] hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+g.Key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if reply, err = io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", res.StatusCode, reply, err)
		}
		return reply, res.Header.Get("Idempotent-Replayed") + res.Header.Get("X-Survives-Restart")
	}
	g := launch(t, harness.Binary(t), sandbox(data))
	first, mark := ask(g)
	if mark != "false" || !bytes.Contains(first, []byte("[DONE]")) {
		t.Errorf("%q: %s", mark, first)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	g = launch(t, harness.Binary(t), sandbox(data))
	if again, mark := ask(g); mark != "truetrue" || !bytes.Equal(again, first) {
		t.Errorf("%q: got\n%s\nafter\n%s", mark, again, first)
	}
	stop(t, g)
	does(t, "nothing is wrong", "state", "verify", "--data", data)
}
