package ops

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// A service manager that holds the socket lets the gateway be replaced without
// refusing a connection. One that is made in between waits.
func TestRestartsUnderLoadRefuseNobody(t *testing.T) {
	const clients, restarts = 16, 3
	socket := listen(t)
	binary, data := harness.Binary(t), t.TempDir()
	start := func() *harness.Gateway {
		c := sandbox(data, "10s")
		c.Listen = []string{socket.Addr().String()}
		g, err := harness.Launch(binary, c, harness.Handed(t, socket))
		return launch(t, g, err)
	}
	g := start()
	var mu sync.Mutex
	counts, slowest := map[string]int{}, time.Duration(0)
	end := make(chan struct{})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				began := time.Now()
				how := once(t, "http://"+socket.Addr().String(), g.Key)
				mu.Lock()
				counts[how]++
				slowest = max(slowest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for range restarts {
		time.Sleep(500 * time.Millisecond) // of load; nothing is waited for
		stop(t, g)
		g = start()
	}
	time.Sleep(500 * time.Millisecond)
	close(end)
	wg.Wait()
	stop(t, g)
	t.Logf("%d restarts under %d clients: %s, the slowest took %s", restarts, clients, fmt.Sprint(counts),
		slowest.Round(time.Millisecond))
	if len(counts) != 1 || counts["answered"] == 0 {
		t.Errorf("not every client was answered: %s", fmt.Sprint(counts))
	}
}

// once is one request on a connection of its own, and how it went.
func once(t *testing.T, url, key string) string {
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		return err.Error()
	}
	q.Header.Set("Authorization", "Bearer "+key)
	q.Header.Set("X-Sandbox", "pace=max, tokens=20, delay=20ms")
	r, err := client.Do(q)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return "cut before the reply"
	case err != nil:
		return err.Error()
	}
	defer r.Body.Close()
	if _, err := io.ReadAll(r.Body); err != nil {
		return "cut in the reply"
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Sprint(r.StatusCode)
	}
	return "answered"
}

// The service manager hears when the gateway serves, that it is alive, and that
// it stops.
func TestTheServiceManagerIsTold(t *testing.T) {
	path := t.TempDir() + "/n"
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	g, err := harness.Launch(harness.Binary(t), sandbox("memory", "1s"),
		harness.Env("NOTIFY_SOCKET="+path, "WATCHDOG_USEC=300000"))
	launch(t, g, err)
	hear := func(want string) {
		t.Helper()
		buffer := make([]byte, 1024)
		if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for {
			n, err := manager.Read(buffer)
			if err != nil {
				t.Fatalf("%s was not written: %v", want, err)
			}
			if string(buffer[:n]) == want {
				return
			}
		}
	}
	// A second beat shows that the first was not the only one.
	hear("READY=1")
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	stop(t, g)
	hear("STOPPING=1")
}
