package harness

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// Handed has the process take over a listening socket, as a service manager hands
// it over (LISTEN_FDS). The socket stays open in the process that holds the listener.
func Handed(t testing.TB, l *net.TCPListener) func(*exec.Cmd) {
	t.Helper()
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return func(c *exec.Cmd) {
		c.ExtraFiles = []*os.File{file} // descriptor 3
		// LISTEN_PID is the process's own id, which only a shell knows before it is
		// the process.
		c.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`}, c.Args...)
		if c.Path, c.Err = exec.LookPath("sh"); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}

// Env adds to the environment of the process.
func Env(variables ...string) func(*exec.Cmd) {
	return func(c *exec.Cmd) { c.Env = append(c.Environ(), variables...) }
}
