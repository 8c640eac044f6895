// Package ownership gives files the owner of the directory that they are made in, if the process is root. A command
// that an administrator runs with sudo on the data directory of a service thus leaves no file there that the service
// cannot open. For any other user the functions change nothing.
//
// # Usage
//
// Every function that makes a file below the data directory calls File, Path or MkdirAll of this package in place of
// leaving the owner as it is. The owner of the directory is taken and not a configured one, because the directory was
// made for the service and is right by definition.
package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File gives a file that was just made the owner of its directory.
func File(f *os.File) error {
	return inherit(filepath.Dir(f.Name()), f.Chown)
}

// Path is like File for a socket or directory, which has no open file.
func Path(path string) error {
	return inherit(filepath.Dir(path), func(uid, gid int) error { return os.Lchown(path, uid, gid) })
}

// inherit calls change with the owner of dir if this process is root and the directory is not root's.
func inherit(dir string, change func(uid, gid int) error) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && (s.Uid != 0 || s.Gid != 0) {
		if err := change(int(s.Uid), int(s.Gid)); err != nil {
			return fmt.Errorf("give it the owner of %s: %w", dir, err)
		}
	}
	return nil
}

// MkdirAll is os.MkdirAll, where each directory that it makes takes the owner of the one above it.
func MkdirAll(dir string, mode os.FileMode) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil {
		if info.IsDir() {
			return nil
		}
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if above := filepath.Dir(dir); above != dir {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, mode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil // another process was first
		}
		return err
	}
	return Path(dir)
}

// Of returns the user and group of a file, and false on systems that have none.
func Of(info fs.FileInfo) (uid, gid uint32, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return s.Uid, s.Gid, true
}
