package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Replica starts a standby that follows the server. It has the application name replica.
func (s *Server) Replica() (*Server, error) {
	r := &Server{}
	var err error
	if r.dir, err = makeDir(); err != nil {
		return nil, err
	}
	made := command("pg_basebackup", "-D", r.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-d", "host="+s.dir+" user=stagedoor dbname=postgres application_name=replica")
	if out, err := made.CombinedOutput(); err != nil {
		r.Stop()
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	if err := r.Run(); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// makeDir makes a directory for a server. The path of the socket in it is short.
func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "pg")
	if err == nil && os.Getuid() == 0 { // as which Postgres refuses to run
		err = os.Chown(dir, unprivileged, unprivileged)
	}
	return dir, err
}

// Promote makes a standby the primary, and returns when it accepts changes.
func (s *Server) Promote() error {
	out, err := command("pg_ctl", "promote", "-w", "-D", s.data()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, out)
	}
	return nil
}

// Halt ends the server as an administrator does, who ends its connections. Run starts it again.
func (s *Server) Halt() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	<-s.done
}

// socket returns the path of the server's socket.
func (s *Server) socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }
