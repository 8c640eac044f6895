package transfer

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"stagedoor/providers/picture"
	"stagedoor/providers/video"
)

// Body is a request body of texts and files. Its length is known before it is sent. The zero
// value with Files set is an empty body.
type Body struct {
	Files  video.Opener
	pieces []piece
	length int64
}

// piece is a part of a body: either text or a file.
type piece struct {
	text    string
	file    *video.File
	encoded bool // the file is sent in base64
}

// Text adds a text without changing it.
func (b *Body) Text(text string) {
	b.pieces = append(b.pieces, piece{text: text})
	b.length += int64(len(text))
}

// File adds a file's bytes.
func (b *Body) File(f *video.File) {
	b.pieces = append(b.pieces, piece{file: f})
	b.length += f.Size
}

// Base64 adds a file's bytes in base64.
func (b *Body) Base64(f *video.File) {
	b.pieces = append(b.pieces, piece{file: f, encoded: true})
	b.length += (f.Size + 2) / 3 * 4
}

// Len returns the number of bytes.
func (b *Body) Len() int64 { return b.length }

// Open returns a reader of the body from its beginning. It opens each file when the reader
// reaches it.
func (b *Body) Open() (io.ReadCloser, error) {
	return &reader{body: b, rest: b.pieces, current: strings.NewReader("")}, nil
}

// reader reads a Body. HTTP transports may call Close while a Read is running.
type reader struct {
	body    *Body
	rest    []piece
	current io.Reader

	mu     sync.Mutex
	file   io.Closer // the file that current reads from, or nil
	closed bool
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for {
		n, err := r.current.Read(p)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := r.openNext(); err != nil {
			return 0, err
		}
	}
}

// openNext makes the next piece the current one. The error is io.EOF if there is none.
func (r *reader) openNext() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed // a file opened now would stay open
	}
	if err := r.closeFile(); err != nil {
		return err
	}
	if len(r.rest) == 0 {
		return io.EOF
	}
	p := r.rest[0]
	r.rest = r.rest[1:]
	if p.file == nil {
		r.current = strings.NewReader(p.text)
		return nil
	}
	f, err := r.body.Files(p.file.ID)
	if err != nil {
		return err
	}
	r.file, r.current = f, f
	if p.encoded {
		r.current = picture.Base64(f)
	}
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.closeFile()
}

// closeFile closes the file that was being read. The caller holds mu.
func (r *reader) closeFile() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Form is a Body of the type multipart/form-data (RFC 7578). Call End after the last field.
type Form struct {
	Body
	boundary string
}

// NewForm returns an empty form whose files are opened by files.
func NewForm(files video.Opener) *Form {
	return &Form{Body: Body{Files: files}, boundary: rand.Text()}
}

// Field adds a field with a text. name must not need quoting.
func (f *Form) Field(name, value string) {
	f.Text("--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n")
}

// Upload adds a file. The client's name of the file is not sent, because it may be private.
func (f *Form) Upload(name string, file *video.File) {
	f.Text(
		"--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + name + extensions[file.Type] +
			"\"\r\nContent-Type: " + file.Type + "\r\n\r\n",
	)
	f.File(file)
	f.Text("\r\n")
}

// End adds the closing line.
func (f *Form) End() { f.Text("--" + f.boundary + "--\r\n") }

// ContentType returns the value of the header Content-Type.
func (f *Form) ContentType() string { return "multipart/form-data; boundary=" + f.boundary }

// extensions maps media types to file extensions, because some providers rely on them.
var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp",
	"video/mp4": ".mp4", "video/quicktime": ".mov", "video/webm": ".webm"}
