package ops

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// TestLargeBodiesAreRefusedBeforeTheKernelKills: in a control group of little memory, 60
// valid bodies of 20 MiB at once are answered or refused with 503 and a time to come
// back. The process lives on, whether the bodies pass through or are translated. In 256 MiB
// no owner's share is enough to translate 20 MiB, which is 413, so there the bodies that
// are translated have 14 MiB.
func TestLargeBodiesAreRefusedBeforeTheKernelKills(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(300 * time.Millisecond) // so that bodies are held at once
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,`+
			`"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer upstream.Close()
	var keys []harness.Key // one each, or they would be refused for one owner's share
	for i := range 60 {
		keys = append(keys, harness.Key{Key: fmt.Sprintf("sd-test-%d", i), Name: fmt.Sprintf("test-%d", i)})
	}
	limits := []int64{256, 512}
	if testing.Short() {
		limits = limits[:1]
	}
	for _, mebibytes := range limits {
		for name, ask := range map[string]struct{ path, body string }{
			"passthrough": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"%s"}]}`},
			"translation": {"/v1/messages", `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"%s"}]}`},
		} {
			t.Run(fmt.Sprintf("%d MiB, %s", mebibytes, name), func(t *testing.T) {
				g, err := harness.Launch(harness.Binary(t), harness.Config{
					Keys:      keys,
					Providers: map[string]harness.Provider{"p": {Shape: "chat", BaseURL: upstream.URL + "/v1"}},
					Models:    map[string]harness.Model{"m": {Targets: []harness.Target{{Provider: "p", Model: "m"}}}},
				}, within(t, mebibytes<<20))
				launch(t, g, err)
				words := strings.Repeat("all work and no play ", 1<<20)
				if mebibytes == 256 && name == "translation" {
					large := postAtOnce(t, keys[:1], g.URL+ask.path, fmt.Appendf(nil, ask.body, words))
					if large[413] != 1 {
						t.Errorf("a body that no share is enough for: %v, want 413", large)
					}
					words = words[:14<<20]
				}
				body := fmt.Appendf(nil, ask.body, words)
				statuses := postAtOnce(t, keys, g.URL+ask.path, body)
				t.Logf("statuses %v, peak of memory %d MiB", statuses, peak(t, g)>>20)
				// A client that is still sending when it is refused may lose the reply to the
				// reset that follows it.
				if statuses[200] == 0 || statuses[503] == 0 ||
					statuses[200]+statuses[503]+statuses[noReply] != len(keys) {
					t.Errorf("statuses %v, want some 200 and some 503 and nothing else", statuses)
				}
				// The pages of the program itself are a file's, which the group does not count.
				const program = 32 << 20
				if got := peak(t, g); got > mebibytes<<20+program {
					t.Errorf("the process had %d MiB at its peak, want %d MiB at most", got>>20, mebibytes)
				}
				if after := postAtOnce(t, keys[:1], g.URL+ask.path, fmt.Appendf(nil, ask.body, "hi")); after[200] != 1 {
					t.Errorf("a small request afterwards: %v", after)
				}
				stop(t, g)
			})
		}
	}
}

// noReply stands for the status of a request whose connection was reset.
const noReply = 0

// postAtOnce posts a body with each key at once and counts the statuses. A 503 must say when
// to come back.
func postAtOnce(t *testing.T, keys []harness.Key, url string, body []byte) map[int]int {
	t.Helper()
	statuses := make(map[int]int)
	var mu sync.Mutex
	keeping := &http.Client{Transport: &http.Transport{}}
	defer keeping.CloseIdleConnections()
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+key.Key)
			status := noReply
			if reply, err := keeping.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, reply.Body)
				_ = reply.Body.Close()
				if status = reply.StatusCode; status == http.StatusServiceUnavailable &&
					reply.Header.Get("Retry-After") == "" {
					t.Error("a 503 does not say when to come back")
				}
			}
			mu.Lock()
			statuses[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	return statuses
}

// within starts a process in a control group of its own with so much memory, or, where
// none can be made, with a GOMEMLIMIT as such a group would give.
func within(t *testing.T, limit int64) func(*exec.Cmd) {
	for _, version := range []struct{ mount, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group := filepath.Join(version.mount, fmt.Sprintf("stagedoor-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if os.Mkdir(group, 0o700) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, version.file), strconv.AppendInt(nil, limit, 10), 0o600) != nil {
			_ = os.Remove(group)
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		return func(c *exec.Cmd) {
			c.Args = append(
				[]string{"sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group, c.Path},
				c.Args[1:]...)
			c.Path, c.Err = exec.LookPath("sh")
		}
	}
	t.Log("no control group can be made here: GOMEMLIMIT stands in for it")
	return func(c *exec.Cmd) { c.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9)) }
}

// peak is the most memory that a process has had resident.
func peak(t *testing.T, g *harness.Gateway) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.PID()))
	if err != nil {
		t.Fatalf("the process is gone: %v", err)
	}
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ = strings.Cut(line, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
