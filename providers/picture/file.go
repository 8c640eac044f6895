package picture

import (
	"errors"
	"io"

	"stagedoor/providers/spool"
)

// ErrTooLarge is returned for a file that is larger than it may be.
var ErrTooLarge = spool.ErrTooLarge

// File is a picture that a client sent. It is read as often as needed, by any
// number of readers at a time, and Close ends its life.
type File struct {
	Name string // as the client called it; may be ""
	// MediaType is what the content is, whatever the client said.
	MediaType     string
	Width, Height int // by its header
	Size          int64

	content *spool.File
}

// NewFile makes a file of bytes, which must not be written to any more. It fails
// if they are no picture (ErrFormat, ErrCorrupt).
func NewFile(name string, data []byte) (*File, error) {
	f := newFile(name, spool.FromBytes(data))
	return f, f.inspect()
}

// ReadFile reads a file of at most limit bytes: a small one into memory, a
// larger one into a file of dir that nobody else can find ("": the system's
// directory for such). Errors are ErrTooLarge, ErrFormat, ErrCorrupt, or what r
// or the disk says.
func ReadFile(name string, r io.Reader, limit int64, dir string) (*File, error) {
	content, err := spool.Read(r, limit, dir, known)
	if err != nil {
		return nil, err
	}
	f := newFile(name, content)
	if err := f.inspect(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func newFile(name string, content *spool.File) *File {
	return &File{Name: name, Size: content.Len(), content: content}
}

// known refuses what does not begin as a picture does.
func known(head []byte) error {
	if Sniff(head) == "" {
		return ErrFormat
	}
	return nil
}

// Reader reads the file from its front.
func (f *File) Reader() io.ReadSeeker { return f.content.Reader() }

// Dimensions is its size in pixels.
func (f *File) Dimensions() Size { return Size{f.Width, f.Height} }

// Extension is the one of its type: ".png".
func (f *File) Extension() string { return extensions[f.MediaType] }

// Close gives back what the file takes. It may be called more than once.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	return f.content.Close()
}
