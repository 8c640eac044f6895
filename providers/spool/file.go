package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// memory is up to where a file is held in memory.
const memory = 256 << 10

// ErrTooLarge is returned for a file that is larger than it may be.
var ErrTooLarge = errors.New("file is too large")

// File is content that is read as often as needed, by any number of readers at a
// time, until it is closed.
type File struct {
	content io.ReaderAt
	size    int64
	disk    *unnamed // nil: in memory
}

// FromBytes makes a file of bytes, which must not be written to any more.
func FromBytes(data []byte) *File {
	return &File{content: bytes.NewReader(data), size: int64(len(data))}
}

// Read reads a file of at most limit bytes: a small one into memory, a larger one
// into a file of dir ("": the system's directory for such). Before anything is
// written to disk check sees how the file begins, so that it is not filled by
// what is of no use. Errors are ErrTooLarge, check's, or what r or the disk says.
func Read(r io.Reader, limit int64, dir string, check func(head []byte) error) (*File, error) {
	head, err := io.ReadAll(io.LimitReader(r, min(memory, limit)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(head)) > limit:
		return nil, tooLarge(limit)
	case len(head) <= memory:
		return FromBytes(head), nil
	}
	if err := check(head); err != nil {
		return nil, err
	}
	return onDisk(io.MultiReader(bytes.NewReader(head), r), limit, dir)
}

func onDisk(r io.Reader, limit int64, dir string) (*File, error) {
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

// Len is how many bytes there are.
func (f *File) Len() int64 { return f.size }

// Reader reads the file from its front.
func (f *File) Reader() *io.SectionReader { return io.NewSectionReader(f.content, 0, f.size) }

// Close gives back what the file takes. It may be called more than once, and on
// nil.
func (f *File) Close() error {
	if f == nil || f.disk == nil {
		return nil
	}
	return f.disk.close()
}

// unnamed is an open file without a name, so that it is gone with the process.
type unnamed struct {
	file *os.File
	left string // its name, on systems where an open file keeps it
	once sync.Once
}

func newUnnamed(dir string) (*unnamed, error) {
	file, err := os.CreateTemp(dir, "upload-")
	if err != nil {
		return nil, err
	}
	u := &unnamed{file: file}
	if os.Remove(file.Name()) != nil {
		u.left = file.Name()
	}
	return u, nil
}

func (u *unnamed) close() (err error) {
	u.once.Do(func() {
		err = u.file.Close()
		if u.left != "" {
			err = errors.Join(err, os.Remove(u.left))
		}
	})
	return err
}
