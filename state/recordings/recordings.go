// Package recordings keeps what keys have sent and were answered, for the pages of their requests: one file for each
// exchange, in a folder of its key, below one directory. The files are bounded by their age, their number and their
// bytes, and the oldest go first.
//
// The package does not know what is in a file, nor who may read it (see actors/recording), and it is no part of the
// state: nothing depends on it, backups do not have it, and a file is not synced to the disk, so that recording never
// slows the journal.
//
// # Concurrency
//
// One goroutine at a time may call Put, Prune and Retain, and any goroutine Find and Empty, which do not wait for a
// disk that writes.
package recordings

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stagedoor/state"
	"stagedoor/state/ownership"
)

// Limits bound what is kept. A Keep of 0 keeps nothing.
type Limits struct {
	Keep      time.Duration
	Bytes     int64
	Exchanges int
}

// Store keeps files. Its index is read from their names, so that there is no second file that could disagree.
type Store struct {
	dir string

	mu    sync.Mutex
	files []file // the oldest first
	bytes int64
}

// file is one exchange. Its name has the time at which the exchange began and a hash of its request's id, because
// clients choose ids.
type file struct {
	key  string
	name string
	size int64
}

// half is the end of the name of a file that is being written.
const half = ".half"

// nameOf returns the name of a file. Names sort by time.
func nameOf(began time.Time, id string) string {
	return fmt.Sprintf("%016x", began.UnixNano()) + tailOf(id)
}

// tailOf returns the part of the name that the id decides.
func tailOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "-" + hex.EncodeToString(sum[:16]) + ".json"
}

// began returns the time in the name of a file, and false for another file.
func (f *file) began() (time.Time, bool) {
	stamp, rest, _ := strings.Cut(f.name, "-")
	nano, err := strconv.ParseInt(stamp, 16, 64)
	return time.Unix(0, nano), err == nil && len(stamp) == 16 && len(rest) == 32+len(".json")
}

// Open returns the store in a directory, which is made with the first file. Files that were not finished are removed,
// and others that are none of its own are left alone. Directories that cannot be read are reported in the error,
// joined, after the others were read.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	keys, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	for _, k := range keys {
		if k.IsDir() && folder(k.Name()) {
			err = errors.Join(err, s.read(k.Name()))
		}
	}
	slices.SortFunc(s.files, compare)
	return s, err
}

// read adds the files of a key to the index.
func (s *Store) read(key string) error {
	names, err := os.ReadDir(filepath.Join(s.dir, key))
	for _, n := range names {
		f := file{key: key, name: n.Name()}
		if strings.HasSuffix(f.name, half) {
			err = errors.Join(err, s.remove(&f))
			continue
		}
		info, e := n.Info()
		if _, ok := f.began(); !ok || e != nil || !info.Mode().IsRegular() {
			continue
		}
		f.size = info.Size()
		s.files, s.bytes = append(s.files, f), s.bytes+f.size
	}
	return err
}

// compare orders files by their time.
func compare(a, b file) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.key, b.key))
}

// folder reports whether a key's id can be the name of a folder.
func folder(key string) bool { return state.CheckID(key) == nil && !strings.HasPrefix(key, ".") }

func (s *Store) path(f *file) string { return filepath.Join(s.dir, f.key, f.name) }

// remove removes a file, and the folders that are empty then. A file that is missing is no error.
func (s *Store) remove(f *file) error {
	err := os.Remove(s.path(f))
	_ = os.Remove(filepath.Join(s.dir, f.key)) // it fails while there are other files
	_ = os.Remove(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Put keeps data as the exchange of a request that began at a time. Before that it removes the oldest exchanges for
// which the limits leave no room beside it. An exchange that is above the limits by itself, or a key that cannot be the
// name of a directory, is state.ErrInvalid. If an old exchange cannot be removed, the new one is not written, so that
// the limits hold.
func (s *Store) Put(key, id string, began time.Time, data []byte, l Limits) error {
	f := file{key: key, name: nameOf(began, id), size: int64(len(data))}
	switch {
	case !folder(key):
		return fmt.Errorf("%w: key %q", state.ErrInvalid, key)
	case f.size > l.Bytes || l.Exchanges < 1:
		return fmt.Errorf("%w: an exchange of %d bytes", state.ErrInvalid, f.size)
	}
	s.forget(&f) // an exchange of the same request at the same time is replaced
	err := s.removeWhile(func(*file) bool { return len(s.files) >= l.Exchanges || s.bytes+f.size > l.Bytes })
	if err == nil {
		err = s.write(&f, data)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.files, f, compare)
	s.files, s.bytes = slices.Insert(s.files, at, f), s.bytes+f.size
	return nil
}

// write writes a file under another name first, so that a reader finds whole files only.
func (s *Store) write(f *file, data []byte) error {
	path := s.path(f)
	if err := ownership.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path+half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = ownership.File(to)
	if err == nil {
		_, err = to.Write(data)
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(path+half, path)
	}
	if err != nil {
		_ = os.Remove(path + half)
	}
	return err
}

// Find returns the latest exchange of a request of a key that began between two times, or state.ErrNotFound.
func (s *Store) Find(key, id string, from, to time.Time) ([]byte, error) {
	tail := tailOf(id)
	s.mu.Lock()
	var found *file
	for i := len(s.files) - 1; i >= 0 && found == nil; i-- {
		if f := s.files[i]; f.key == key && strings.HasSuffix(f.name, tail) {
			if at, _ := f.began(); !at.Before(from) && !at.After(to) {
				found = &f
			}
		}
	}
	s.mu.Unlock()
	if found == nil {
		return nil, fmt.Errorf("a recorded exchange: %w", state.ErrNotFound)
	}
	data, err := os.ReadFile(s.path(found))
	if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
		err = fmt.Errorf("a recorded exchange: %w", state.ErrNotFound)
	}
	return data, err
}

// Prune removes the oldest exchanges until the limits hold at a time.
func (s *Store) Prune(now time.Time, l Limits) error {
	oldest := now.Add(-l.Keep)
	return s.removeWhile(func(f *file) bool {
		at, _ := f.began()
		return len(s.files) > l.Exchanges || s.bytes > l.Bytes || at.Before(oldest)
	})
}

// removeWhile removes the oldest files while doomed says so. A file that cannot be removed stays in the index, so that
// it still counts and is tried again.
func (s *Store) removeWhile(doomed func(f *file) bool) error {
	for {
		s.mu.Lock()
		if len(s.files) == 0 || !doomed(&s.files[0]) {
			s.mu.Unlock()
			return nil
		}
		f := s.files[0]
		s.mu.Unlock()
		if err := s.remove(&f); err != nil {
			return err
		}
		s.forget(&f)
	}
}

// forget takes a file out of the index.
func (s *Store) forget(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, found := slices.BinarySearchFunc(s.files, *f, compare); found {
		s.bytes -= s.files[at].size
		s.files = slices.Delete(s.files, at, at+1)
	}
}

// Retain removes the exchanges of all keys but those that stay. stays is called once for each key. An exchange that
// cannot be removed is reported in the error and tried again by the next call.
func (s *Store) Retain(stays func(key string) bool) error {
	s.mu.Lock()
	known := map[string]bool{}
	var doomed []file
	for _, f := range s.files {
		if _, asked := known[f.key]; !asked {
			known[f.key] = stays(f.key)
		}
		if !known[f.key] {
			doomed = append(doomed, f)
		}
	}
	s.mu.Unlock()
	var all error
	for i := range doomed {
		err := s.remove(&doomed[i])
		if err == nil {
			s.forget(&doomed[i])
		}
		all = errors.Join(all, err)
	}
	return all
}

// Empty reports whether nothing is kept.
func (s *Store) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files) == 0
}
