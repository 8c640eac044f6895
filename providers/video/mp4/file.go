package mp4

import (
	"errors"
	"io"

	"stagedoor/providers/spool"
)

// MediaType is that of every File.
const MediaType = "video/mp4"

// ErrTooLarge is returned for a file that is larger than it may be.
var ErrTooLarge = spool.ErrTooLarge

// File is a video that a client sent. It is read as often as needed, by any number
// of readers at a time, and Close ends its life.
type File struct {
	Name string // as the client called it; may be ""
	Header
	content *spool.File
}

// ReadFile reads a file of at most limit bytes: a small one into memory, a larger
// one into a file of dir that nobody else can find ("": the system's directory for
// such). Errors are ErrTooLarge, ErrFormat, ErrCorrupt, or what r or the disk says.
func ReadFile(name string, r io.Reader, limit int64, dir string) (*File, error) {
	content, err := spool.Read(r, limit, dir, known)
	if err != nil {
		return nil, err
	}
	header, err := Inspect(content.Reader(), content.Len())
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return &File{Name: name, Header: header, content: content}, nil
}

// known refuses what does not begin as an MP4 does.
func known(head []byte) error {
	if !Sniff(head) {
		return ErrFormat
	}
	return nil
}

// Reader reads the file from its front.
func (f *File) Reader() io.ReadSeeker { return f.content.Reader() }

// Len is how many bytes there are.
func (f *File) Len() int64 { return f.content.Len() }

// Close gives back what the file takes. It may be called more than once, and on
// nil.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	return f.content.Close()
}
