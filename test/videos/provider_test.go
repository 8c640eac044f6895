package videos

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// jobTime is the simulator's time for a video.
const jobTime = 5 * time.Second

// provider is the simulator behind a proxy that can hold requests.
type provider struct {
	t   *testing.T
	url string // of the proxy
	box string // of the simulator

	mu   sync.Mutex
	hold string        // "before" or "after" a submission, or "polls"; "": never
	held chan struct{} // receives a value when one is held
	over chan struct{} // closed at the end of the test
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Binary(t), "sandbox", "--listen", addr, "--job-time", jobTime.String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		_ = cmd.Wait()
	})
	p := &provider{t: t, box: "http://" + addr, held: make(chan struct{}, 16), over: make(chan struct{})}
	behind, err := url.Parse(p.box)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(p.delayed(httputil.NewSingleHostReverseProxy(behind)))
	t.Cleanup(func() { close(p.over); proxy.CloseClientConnections(); proxy.Close() })
	p.url = proxy.URL
	await(t, "the simulator", func() bool {
		res, err := http.Get(p.box + "/sandbox/jobs")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return p
}

// delayed holds submissions before the simulator gets them, or after it has answered,
// or else polls, until their client is gone.
func (p *provider) delayed(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		hold := p.hold
		p.mu.Unlock()
		if (hold == "polls") != (r.Method == http.MethodGet) {
			hold = ""
		}
		switch hold {
		case "polls":
		case "before":
			_, _ = io.Copy(io.Discard, r.Body) // a server hears of a lost client only behind the body
		case "after":
			next.ServeHTTP(httptest.NewRecorder(), r)
		default:
			next.ServeHTTP(w, r)
			return
		}
		p.held <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-p.over:
		}
	}
}

func (p *provider) holding(when string) {
	p.mu.Lock()
	p.hold = when
	p.mu.Unlock()
}

type count struct {
	ID          string
	Key         string `json:"idempotency_key"`
	Submissions int
	Polls       int
}

// jobs are the simulator's books.
func (p *provider) jobs() []count {
	p.t.Helper()
	res, err := http.Get(p.box + "/sandbox/jobs")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var books struct{ Jobs []count }
	if err := json.NewDecoder(res.Body).Decode(&books); err != nil {
		p.t.Fatal(err)
	}
	return books.Jobs
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
