package durable

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// failSyncs has every fsync of a running gateway fail with EIO from now on, as on a
// dying disk, until the test ends.
func failSyncs(t *testing.T, g *harness.Gateway) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	tracer := exec.CommandContext(ctx, "strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:error=EIO", "-p", strconv.Itoa(g.PID()))
	tracer.Cancel = func() error { return tracer.Process.Signal(syscall.SIGTERM) } // it lets go of the gateway
	said, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	attached := make(chan bool, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "attached") {
				attached <- true
				break
			}
		}
		close(attached)
		_, _ = io.Copy(io.Discard, said)
		_ = tracer.Wait() // it ends with the gateway, or by our signal
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if !<-attached {
		t.Fatal("strace could not attach to the gateway")
	}
}

// TestFailingSyncRefusesWritesAndLosesNothing: what the disk did not confirm is not
// acknowledged, a reply under way is brought to its end, and the gateway stops, for
// only a new process knows what is on the disk. What was acknowledged is there then.
func TestFailingSyncRefusesWritesAndLosesNothing(t *testing.T) {
	data := t.TempDir()
	g := launch(t, harness.Binary(t), sandbox(data))
	var kept []string
	for range 10 {
		status, id, code := store(t, g, 5000)
		if status != http.StatusOK {
			t.Fatalf("got %d %s", status, code)
		}
		kept = append(kept, id)
	}
	underWay := make(chan string, 1)
	begun := make(chan struct{})
	go func() { underWay <- stream(t, g, begun) }()
	<-begun
	failSyncs(t, g)
	if status, id, code := store(t, g, 5000); status != http.StatusServiceUnavailable || code != "storage_unavailable" {
		t.Errorf("a write that is not on the disk: %d %s, id %q", status, code, id)
	}
	if reply := <-underWay; !strings.HasSuffix(reply, "data: [DONE]\n\n") || strings.Contains(reply, `"error"`) {
		t.Errorf("the reply that was under way ends with %q", reply[max(0, len(reply)-300):])
	}
	if code := g.Await(patience); code != exitStorage || !strings.Contains(g.Logs(), "the store failed") {
		t.Errorf("exit %d, want %d; its log:\n%s", code, exitStorage, g.Logs())
	}
	_ = g.Stop() // removes what it was started with

	does(t, "nothing is wrong", "state", "verify", "--data", data)
	g = launch(t, harness.Binary(t), sandbox(data))
	defer stop(t, g)
	for _, id := range kept {
		if status, reply := g.Ask(t, http.MethodGet, "/v1/responses/"+id, ""); status != http.StatusOK {
			t.Errorf("%s was acknowledged: %d %s", id, status, reply)
		}
	}
	if status, _, code := store(t, g, 10); status != http.StatusOK {
		t.Errorf("with a disk that works: %d %s", status, code)
	}
}

// stream asks for a reply that takes a second and returns all of it. begun is
// closed with its first piece.
func stream(t *testing.T, g *harness.Gateway, begun chan<- struct{}) string {
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"[sandbox: tokens=20 pace=20]"}]}`
	req, err := http.NewRequest(http.MethodPost, g.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		close(begun)
		return ""
	}
	req.Header.Set("Authorization", "Bearer "+harness.TestKey)
	client := http.Client{Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		close(begun)
		return ""
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	first, _ := lines.ReadString('\n') // an error is met again
	close(begun)
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Error(err)
	}
	return first + string(rest)
}
