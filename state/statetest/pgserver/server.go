// Package pgserver starts a Postgres for the tests of a package, from initdb in a temporary directory. It listens on a
// socket in that directory only. It is for tests.
//
// # Usage
//
// TestMain calls Main, and tests get a server from Shared, which is started once for all of them, or from New if they
// stop it or change its settings, because initdb takes two seconds of the processor. A test makes a database of its own
// in it with NewDatabase, which takes a twentieth of that, so that tests do not see the tables of each other.
//
// A Proxy stands between a client and a server, and simulates what a network does: it refuses connections, delays, cuts
// them, or swallows what was sent in one direction. Crash and Halt end a server with and without a warning, Replica
// starts a standby, and Promote makes it the primary.
//
// The shared server does not sync its files, because most tests are not about a power cut of the database's machine. A
// test that is about one starts its own server. Sockets are in a temporary directory, so that several test programs run
// side by side without ports.
package pgserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a Postgres that runs until Stop.
type Server struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	databases atomic.Int64 // that NewDatabase has made
}

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// Shared returns the server of this test process, which is started by the first call and does not sync its files.
// TestMain calls Main, which stops it. The test fails on a machine without Postgres.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Start("fsync=off", "synchronous_commit=on")
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// New returns a server of a test's own, which runs until the test ends. The test fails on a machine without Postgres.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Main runs the tests of a package and stops the server that they have shared. It returns the code to exit with.
func Main(m *testing.M) int {
	defer func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.server != nil {
			shared.server.Stop()
		}
	}()
	return m.Run()
}

// errMissing says that there is no Postgres on this machine. A suite that went on without it would test nothing of what
// the gateway does with a database.
var errMissing = errors.New("these tests need Postgres 14 or newer: make tools installs it on Debian (postgresql)")

// programs finds the programs of Postgres: in PATH, or where Debian has them, which is not in PATH.
var programs = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // the others may be beside it only
		}
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errMissing
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // version 9 is older than 15
	})), nil
})

// Start starts a server with settings beside those that small tests need.
func Start(settings ...string) (*Server, error) {
	if _, err := programs(); err != nil {
		return nil, err
	}
	dir, err := makeDir()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	made := command("initdb", "-D", s.data(), "-A", "trust", "-U", "stagedoor", "--locale=C", "-E", "UTF8", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	conf := "listen_addresses=''\nshared_buffers=16MB\nautovacuum=off\n" +
		"max_connections=100\nlog_min_messages=fatal\n" + strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(s.data(), "postgresql.auto.conf"), []byte(conf), 0o644); err != nil {
		s.Stop()
		return nil, err
	}
	if err := s.Run(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// unprivileged is the user that runs the server if the tests run as root.
const unprivileged = 65534

func command(name string, args ...string) *exec.Cmd {
	bin, _ := programs() // which Start has found
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	}
	return cmd
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Run starts the server again after Crash, and returns when it accepts connections.
func (s *Server) Run() error {
	for {
		err := s.run()
		if err == nil || !strings.Contains(err.Error(), "still in use") {
			return err
		}
		time.Sleep(20 * time.Millisecond) // processes of the server that crashed are about to end
	}
}

func (s *Server) run() error {
	started := make(chan error, 1)
	s.cmd, s.done = command("postgres", "-D", s.data(), "-k", s.dir), make(chan struct{})
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	go func() {
		// The server ends with the thread that started it, which is how it ends with a test that is killed.
		runtime.LockOSThread()
		defer close(s.done)
		defer log.Close()
		err := s.cmd.Start()
		if started <- err; err == nil {
			s.err = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	for {
		// The last line of this file says when connections are accepted.
		pid, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		status := strings.TrimSpace(string(pid))
		if (strings.HasSuffix(status, "ready") || strings.HasSuffix(status, "standby")) &&
			strings.HasPrefix(string(pid), fmt.Sprintln(s.cmd.Process.Pid)) {
			return nil
		}
		select {
		case <-s.done:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres: %w: %s", s.err, text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// URL returns the address of the server's database.
func (s *Server) URL() string { return s.URLOf("postgres") }

// NewDatabase makes a database in the server and returns its name.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return name
}

// URLOf returns the address of a database of the server that the caller has created.
func (s *Server) URLOf(database string) string {
	return "postgres://stagedoor@/" + database + "?host=" + s.dir
}

// Crash ends the server as a power cut does, if the power is cut to it alone.
func (s *Server) Crash() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// SetStandby says whether the server is a standby, which only reads, from its next Run on.
func (s *Server) SetStandby(standby bool) error {
	file := filepath.Join(s.data(), "standby.signal")
	if standby {
		return os.WriteFile(file, nil, 0o644)
	}
	return os.Remove(file)
}

// Stop ends the server and removes its files.
func (s *Server) Stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.done
	}
	_ = os.RemoveAll(s.dir)
}
