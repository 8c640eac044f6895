//go:build linux || darwin || freebsd

package journal

import (
	"os"
	"syscall"
)

// FreeSpace returns the bytes an unprivileged process may still write in dir. Blocks that are reserved for the
// superuser do not count, because the gateway does not run as one.
func FreeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// unlock lets go of the lock on f.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
