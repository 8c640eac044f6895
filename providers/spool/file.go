package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxInMemory is the size of the largest file that is held in memory.
const maxInMemory = 256 << 10

// ErrTooLarge is returned for a file that is larger than the limit of Read.
var ErrTooLarge = errors.New("file is too large")

// File is the content of an upload. It can be read any number of times, also concurrently,
// until it is closed.
type File struct {
	content io.ReaderAt
	size    int64
	disk    *unnamed // nil if the content is in memory
}

// FromBytes returns a File in memory. The caller must not change data afterwards.
func FromBytes(data []byte) *File {
	return &File{content: bytes.NewReader(data), size: int64(len(data))}
}

// Read reads a file of at most limit bytes, a small one into memory and a larger one into a
// file in dir. If dir is "", that is the system's directory for temporary files. Before
// anything is written to disk, check gets the beginning of the file, so that content of no use
// does not fill the disk. The error is ErrTooLarge, or an error of check, r or the disk.
func Read(r io.Reader, limit int64, dir string, check func(head []byte) error) (*File, error) {
	head, err := io.ReadAll(io.LimitReader(r, min(maxInMemory, limit)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(head)) > limit:
		return nil, tooLarge(limit)
	case len(head) <= maxInMemory:
		return FromBytes(head), nil
	}
	if err := check(head); err != nil {
		return nil, err
	}
	return writeToDisk(io.MultiReader(bytes.NewReader(head), r), limit, dir)
}

// writeToDisk copies r into a file in dir. It reads one byte beyond the limit, to see whether there
// is more.
func writeToDisk(r io.Reader, limit int64, dir string) (*File, error) {
	disk, err := newUnnamed(dir)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(disk.file, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = tooLarge(limit)
	}
	if err != nil {
		return nil, errors.Join(err, disk.close())
	}
	return &File{content: disk.file, size: n, disk: disk}, nil
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit) }

// Len returns the number of bytes.
func (f *File) Len() int64 { return f.size }

// Reader returns a reader of the whole file. Readers do not affect each other.
func (f *File) Reader() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.size) }

// Close frees the memory or disk space. It may be called more than once, and on nil.
func (f *File) Close() error {
	if f == nil || f.disk == nil {
		return nil
	}
	return f.disk.close()
}

// unnamed is an open file without a name, which the system removes when the process ends.
type unnamed struct {
	file *os.File
	name string // set on systems that do not remove the name of an open file
	once sync.Once
}

// newUnnamed creates a file and removes its name at once, so that the space is free when the file
// is closed, also if the process dies. Where a system refuses to remove the name of an open file,
// close does it.
func newUnnamed(dir string) (*unnamed, error) {
	file, err := os.CreateTemp(dir, "upload-")
	if err != nil {
		return nil, err
	}
	u := &unnamed{file: file}
	if os.Remove(file.Name()) != nil {
		u.name = file.Name()
	}
	return u, nil
}

// close closes the file once, however often it is called.
func (u *unnamed) close() (err error) {
	u.once.Do(func() {
		err = u.file.Close()
		if u.name != "" {
			err = errors.Join(err, os.Remove(u.name))
		}
	})
	return err
}
