package picture

import (
	"errors"
	"io"

	"stagedoor/providers/spool"
)

// ErrTooLarge is returned for a file that is larger than the limit of ReadFile.
var ErrTooLarge = spool.ErrTooLarge

// File is a picture that a client sent. It can be read any number of times, also concurrently,
// until Close.
type File struct {
	Name          string // from the client; may be ""
	MediaType     string // recognised by the content; the client's claim is ignored
	Width, Height int    // from the header of the picture
	Size          int64

	content *spool.File
}

// NewFile returns a File in memory. The caller must not change data afterwards. The error is
// ErrFormat or ErrCorrupt.
func NewFile(name string, data []byte) (*File, error) {
	f := newFile(name, spool.FromBytes(data))
	return f, f.readHeader()
}

// ReadFile reads a file of at most limit bytes, a small one into memory and a larger one into a
// file without a name in dir (see providers/spool). The error is ErrTooLarge, ErrFormat or
// ErrCorrupt, or an error of r or the disk.
func ReadFile(name string, r io.Reader, limit int64, dir string) (*File, error) {
	content, err := spool.Read(r, limit, dir, checkFormat)
	if err != nil {
		return nil, err
	}
	f := newFile(name, content)
	if err := f.readHeader(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// newFile returns a File without the facts of its header, which readHeader adds.
func newFile(name string, content *spool.File) *File {
	return &File{Name: name, Size: content.Len(), content: content}
}

// checkFormat returns ErrFormat unless head is the beginning of a picture.
func checkFormat(head []byte) error {
	if Sniff(head) == "" {
		return ErrFormat
	}
	return nil
}

// Reader returns a reader of the whole file.
func (f *File) Reader() io.ReadSeeker { return f.content.Reader() }

// Dimensions returns the size in pixels, from the header of the picture.
func (f *File) Dimensions() Size { return Size{f.Width, f.Height} }

// Extension returns the usual extension of the file's type, as ".png".
func (f *File) Extension() string { return extensions[f.MediaType] }

// Close frees the memory or disk space. It may be called more than once, and on nil.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	return f.content.Close()
}
