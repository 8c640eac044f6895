package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startPostgres starts a database and returns its URL. The main module's pgserver is not imported, since this module
// has other dependencies.
func startPostgres(t *testing.T) string {
	t.Helper()
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
		if len(found) == 0 {
			t.Fatal("this test needs Postgres: make tools installs it on Debian (postgresql)")
		}
		initdb = found[len(found)-1]
	} else if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pg") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, attributes := filepath.Join(dir, "data"), &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // as which Postgres refuses to run
		const unprivileged = 65534
		attributes.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
		if err := os.Chown(dir, unprivileged, unprivileged); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(filepath.Dir(initdb), name), args...)
		c.Dir, c.SysProcAttr = "/", attributes
		return c
	}
	made := command("initdb", "-D", data, "-A", "trust", "-U", "stagedoor", "--locale=C", "-E", "UTF8", "--no-sync")
	if text, err := made.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, text)
	}
	server := command("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	for range 6000 {
		text, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if strings.HasSuffix(strings.TrimSpace(string(text)), "ready") {
			return "postgres://stagedoor@/postgres?host=" + dir
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("Postgres was not ready within 20 s")
	return ""
}
