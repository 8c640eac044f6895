package picture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// spoolAbove is up to where a file is held in memory.
const spoolAbove = 256 << 10

// ErrTooLarge is returned for a file that is larger than it may be.
var ErrTooLarge = errors.New("file is too large")

// File is a picture that a client sent. It is read as often as needed, by any
// number of readers at a time, and Close ends its life.
type File struct {
	Name string // as the client called it; may be ""
	// MediaType is what the content is, whatever the client said.
	MediaType     string
	Width, Height int // by its header
	Size          int64

	content io.ReaderAt
	disk    *spool // nil: in memory
}

// NewFile makes a file of bytes, which must not be written to any more. It fails
// if they are no picture (ErrFormat, ErrCorrupt).
func NewFile(name string, data []byte) (*File, error) {
	f := &File{Name: name, Size: int64(len(data)), content: bytes.NewReader(data)}
	return f, f.inspect()
}

// ReadFile reads a file of at most limit bytes: a small one into memory, a
// larger one into a file of dir that nobody else can find ("": the system's
// directory for such). Errors are ErrTooLarge, ErrFormat, ErrCorrupt, or what r
// or the disk says.
func ReadFile(name string, r io.Reader, limit int64, dir string) (*File, error) {
	head, err := io.ReadAll(io.LimitReader(r, min(spoolAbove, limit)+1))
	if err != nil {
		return nil, err
	}
	if int64(len(head)) > limit {
		return nil, fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)
	}
	if len(head) <= spoolAbove {
		return NewFile(name, head)
	}
	// Whoever sends no picture does not get to fill the disk.
	if Sniff(head) == "" {
		return nil, ErrFormat
	}
	f, err := spooled(name, io.MultiReader(bytes.NewReader(head), r), limit, dir)
	if err != nil {
		return nil, err
	}
	if err := f.inspect(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func spooled(name string, r io.Reader, limit int64, dir string) (*File, error) {
	disk, err := newSpool(dir)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(disk.file, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)
	}
	if err != nil {
		return nil, errors.Join(err, disk.close())
	}
	return &File{Name: name, Size: n, content: disk.file, disk: disk}, nil
}

// Reader reads the file from its front.
func (f *File) Reader() io.ReadSeeker { return io.NewSectionReader(f.content, 0, f.Size) }

// Dimensions is its size in pixels.
func (f *File) Dimensions() Size { return Size{f.Width, f.Height} }

// Extension is the one of its type: ".png".
func (f *File) Extension() string { return extensions[f.MediaType] }

// Close gives back what the file takes. It may be called more than once.
func (f *File) Close() error {
	if f == nil || f.disk == nil {
		return nil
	}
	return f.disk.close()
}

// spool is an open file without a name, so that it is gone with the process.
type spool struct {
	file *os.File
	left string // its name, on systems where an open file keeps it
	once sync.Once
}

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, "picture-")
	if err != nil {
		return nil, err
	}
	s := &spool{file: file}
	if os.Remove(file.Name()) != nil {
		s.left = file.Name()
	}
	return s, nil
}

func (s *spool) close() (err error) {
	s.once.Do(func() {
		err = s.file.Close()
		if s.left != "" {
			err = errors.Join(err, os.Remove(s.left))
		}
	})
	return err
}
