package blobs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// directory is a Backend of one file for each blob, whose name has all that is known of it.
type directory struct {
	path   string
	shared bool
}

// Directory returns a Backend of files in a directory, which is made if it is missing. Set shared if several processes
// use the directory, for example because several machines have mounted it.
func Directory(path string, shared bool) (Backend, error) {
	return &directory{path, shared}, ownership.MkdirAll(path, 0o700)
}

// Shared implements Backend.
func (d *directory) Shared() bool { return d.shared }

// List implements Backend. Other files of the directory are left alone.
func (d *directory) List(now time.Time) ([]Info, error) {
	if err := d.tidy(now); err != nil {
		return nil, err
	}
	return d.match("*")
}

// match returns the blobs whose file names match a pattern.
func (d *directory) match(pattern string) ([]Info, error) {
	entries, err := os.ReadDir(d.path)
	var all []Info
	for _, e := range entries {
		info, ok := parseName(e.Name())
		if matches, _ := filepath.Match(pattern, e.Name()); !matches || !ok || !e.Type().IsRegular() {
			continue
		}
		// A file may be gone by now if another process that has the directory is about to end.
		stat, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info.Size = stat.Size()
		all = append(all, info)
	}
	return all, err
}

// Find implements Backend.
func (d *directory) Find(id ID) (Info, error) {
	all, err := d.match(string(id) + ".*")
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Info{}, err
	}
	return all[0], nil
}

// file returns the path of a blob's file.
func (d *directory) file(info Info) string {
	name, _ := info.name()
	return filepath.Join(d.path, name)
}

// Create implements Backend.
func (d *directory) Create(info Info) (Unfinished, error) {
	file, err := os.CreateTemp(d.path, halfPattern)
	if err != nil {
		return nil, err
	}
	u := &unfinishedFile{file, d, info}
	if err := ownership.File(file); err != nil {
		return nil, errors.Join(err, u.Discard())
	}
	return u, nil
}

// Open implements Backend. The file can be read to its end, also after Remove.
func (d *directory) Open(info Info) (io.ReadSeekCloser, error) {
	file, err := os.Open(d.file(info))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Remove implements Backend.
func (d *directory) Remove(info Info) error { return remove(d.file(info)) }

// remove removes a file. A file that is missing is no error, since another sweep may have been faster.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tidy removes files that were not finished.
func (d *directory) tidy(now time.Time) error {
	found, err := filepath.Glob(filepath.Join(d.path, halfPattern))
	for _, path := range found {
		if d.shared {
			if stat, e := os.Stat(path); e != nil || now.Sub(stat.ModTime()) < abandonedAfter {
				continue
			}
		}
		err = errors.Join(err, remove(path))
	}
	return err
}

// halfPattern names files that are being written.
const halfPattern = "half-*"

type unfinishedFile struct {
	*os.File
	in   *directory
	info Info
}

// Finish implements Unfinished.
func (u *unfinishedFile) Finish() error {
	err := u.Sync()
	err = errors.Join(err, u.Close())
	if err == nil {
		err = os.Rename(u.Name(), u.in.file(u.info))
	}
	if err != nil {
		return errors.Join(err, remove(u.Name()))
	}
	if err := fsync.Dir(u.in.path); err != nil {
		return errors.Join(err, u.in.Remove(u.info))
	}
	return nil
}

// Discard implements Unfinished.
func (u *unfinishedFile) Discard() error {
	return errors.Join(u.Close(), remove(u.Name()))
}
