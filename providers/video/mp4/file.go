package mp4

import (
	"errors"
	"io"

	"stagedoor/providers/spool"
)

// MediaType is the media type of every File.
const MediaType = "video/mp4"

// File is a video that a client sent. It can be read any number of times, also concurrently,
// until Close.
type File struct {
	Name string // from the client; may be ""
	Header
	content *spool.File
}

// ReadFile reads a file of at most limit bytes, a small one into memory and a larger one into a
// file without a name in dir (see providers/spool). The error is spool.ErrTooLarge, ErrFormat or
// ErrCorrupt, or an error of r or the disk.
func ReadFile(name string, r io.Reader, limit int64, dir string) (*File, error) {
	content, err := spool.Read(r, limit, dir, checkFormat)
	if err != nil {
		return nil, err
	}
	header, err := Inspect(content.Reader(), content.Len())
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return &File{Name: name, Header: header, content: content}, nil
}

// checkFormat returns ErrFormat unless head is the beginning of an MP4.
func checkFormat(head []byte) error {
	if !Sniff(head) {
		return ErrFormat
	}
	return nil
}

// Reader returns a reader of the whole file.
func (f *File) Reader() io.ReadSeeker { return f.content.Reader() }

// Len returns the number of bytes.
func (f *File) Len() int64 { return f.content.Len() }

// Close frees the memory or disk space. It may be called more than once, and on nil.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	return f.content.Close()
}
