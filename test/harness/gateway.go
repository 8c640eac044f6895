package harness

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	readyWithin = time.Minute // a cold start on a loaded machine
	stopWithin  = time.Minute // a graceful stop; then it is killed
)

// A Gateway is a running program.
type Gateway struct {
	URL string // base address without a slash at the end
	Key string

	cmd  *exec.Cmd
	logs Buffer
	dir  string
	exit chan struct{} // closed when the process has ended
	err  error         // how it ended; read after exit
}

// Start runs the gateway for a test and stops it when the test ends. The logs are
// shown if the test fails.
func Start(t testing.TB, c Config) *Gateway {
	t.Helper()
	g, err := Launch(Binary(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Errorf("stop the gateway: %v", err)
		}
		if t.Failed() {
			t.Logf("gateway's log, end:\n%s", tail(g.Logs(), 8<<10))
		}
	})
	return g
}

// Launch runs a binary with a configuration and waits until it is ready. adapt may change how the process is started.
// If it does not become ready, it is stopped, and the error has the end of its log.
func Launch(binary string, c Config, adapt ...func(*exec.Cmd)) (*Gateway, error) {
	g, err := Spawn(binary, c, adapt...)
	if err != nil {
		return nil, err
	}
	if err := g.AwaitReady(); err != nil {
		return nil, errors.Join(err, g.Stop(), fmt.Errorf("its log:\n%s", tail(g.Logs(), 4<<10)))
	}
	return g, nil
}

// Spawn runs a binary with a configuration and does not wait for it. A configuration without a listener, keys or data
// gets a free loopback address, a key for tests and data in memory.
func Spawn(binary string, c Config, adapt ...func(*exec.Cmd)) (*Gateway, error) {
	if len(c.Listen) == 0 {
		addr, err := FreeAddr()
		if err != nil {
			return nil, err
		}
		c.Listen = []string{addr}
	}
	c.Data = cmp.Or(c.Data, "memory")
	if len(c.Keys) == 0 {
		c.Keys = []Key{{Key: TestKey, Name: "test"}}
	}
	dir, err := os.MkdirTemp("", "stagedoor-run-")
	if err != nil {
		return nil, err
	}
	g := &Gateway{URL: "http://" + c.Listen[0], Key: c.Keys[0].Key, dir: dir, exit: make(chan struct{})}
	if err := g.run(binary, c, adapt...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return g, nil
}

func (g *Gateway) run(binary string, c Config, adapt ...func(*exec.Cmd)) error {
	text, err := c.encode()
	if err != nil {
		return err
	}
	file := filepath.Join(g.dir, "stagedoor.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	g.cmd = exec.Command(binary, "serve", "--config", file)
	g.cmd.Dir = g.dir
	g.cmd.Stdout, g.cmd.Stderr = &g.logs, &g.logs
	for _, change := range adapt {
		change(g.cmd)
	}
	if err := g.cmd.Start(); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	go func() {
		defer close(g.exit)
		g.err = g.cmd.Wait()
	}()
	return nil
}

// AwaitReady waits until the program says that it is ready.
func (g *Gateway) AwaitReady() error {
	client := http.Client{Timeout: time.Second}
	deadline := time.After(readyWithin)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if response, err := client.Get(g.URL + "/readyz"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-g.exit:
			return fmt.Errorf("the gateway ended before it was ready: %w", g.err)
		case <-deadline:
			return fmt.Errorf("the gateway was not ready within %s", readyWithin)
		case <-tick.C:
		}
	}
}

// Stop ends the program gracefully, or hard if it does not listen, and waits for it.
// An exit status other than 0 is an error.
func (g *Gateway) Stop() error {
	_ = g.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-g.exit:
	case <-time.After(stopWithin):
		_ = g.cmd.Process.Kill()
		<-g.exit
		return errors.Join(fmt.Errorf("the gateway did not stop within %s", stopWithin), os.RemoveAll(g.dir))
	}
	if err := g.err; err != nil {
		return errors.Join(err, os.RemoveAll(g.dir))
	}
	return os.RemoveAll(g.dir)
}

// Await waits until the program has ended by itself and tells with which code: -1 if
// it has not within a time.
func (g *Gateway) Await(within time.Duration) (code int) {
	select {
	case <-g.exit:
		return g.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		return -1
	}
}

// Kill ends the program with SIGKILL, as a crash would, and waits for it. That it
// had ended by itself before is an error.
func (g *Gateway) Kill() error {
	signalled := g.cmd.Process.Kill()
	<-g.exit
	if signalled != nil {
		signalled = fmt.Errorf("it had ended already: %w", g.err)
	}
	return errors.Join(signalled, os.RemoveAll(g.dir))
}

// PID is the process id, for memory and processor time.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Logs is everything the program has printed.
func (g *Gateway) Logs() string { return g.logs.String() }

// reserved are the sockets of FreeAddr. They stay open until the test program ends.
var reserved struct {
	sync.Mutex
	ports []net.PacketConn
}

// FreeAddr returns a loopback address that no other test program gets while this one runs, although it has no listener:
// the UDP port of the same number is taken for that time. Its port is below those that systems give to outgoing
// connections, and above those that test/gateway.sh gives to the gateways of other suites. So none of them takes it
// before the program listens, or while it is down.
func FreeAddr() (string, error) {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 14_000+rand.IntN(18_000))
		port, err := net.ListenPacket("udp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", err
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			_ = port.Close()
			if errors.Is(err, syscall.EADDRINUSE) {
				continue
			}
			return "", err
		}
		reserved.Lock()
		reserved.ports = append(reserved.ports, port)
		reserved.Unlock()
		return addr, l.Close()
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
