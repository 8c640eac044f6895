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

// Body is text with files between, of a length known before. Its zero value with
// Files set is empty.
type Body struct {
	Files  video.Opener
	pieces []piece
	length int64
}

type piece struct {
	text    string
	file    *video.File // or
	encoded bool        // as base64
}

// Text adds a piece as it is.
func (b *Body) Text(text string) {
	b.pieces = append(b.pieces, piece{text: text})
	b.length += int64(len(text))
}

// File adds a file's bytes.
func (b *Body) File(f *video.File) {
	b.pieces = append(b.pieces, piece{file: f})
	b.length += f.Size
}

// Base64 adds a file as base64.
func (b *Body) Base64(f *video.File) {
	b.pieces = append(b.pieces, piece{file: f, encoded: true})
	b.length += (f.Size + 2) / 3 * 4
}

// Len is how many bytes there are.
func (b *Body) Len() int64 { return b.length }

// Open begins at the front. Files are opened when it is their turn.
func (b *Body) Open() (io.ReadCloser, error) {
	return &reader{body: b, rest: b.pieces, now: strings.NewReader("")}, nil
}

// reader is a Body on its way. Transports may close it while they read.
type reader struct {
	body *Body
	rest []piece
	now  io.Reader

	mu     sync.Mutex
	file   io.Closer // that now reads from, or nil
	closed bool
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for {
		n, err := r.now.Read(p)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
}

// next turns to the next piece; the error is io.EOF if there is none.
func (r *reader) next() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed // nobody would close what is opened now
	}
	if err := r.leave(); err != nil {
		return err
	}
	if len(r.rest) == 0 {
		return io.EOF
	}
	p := r.rest[0]
	r.rest = r.rest[1:]
	if p.file == nil {
		r.now = strings.NewReader(p.text)
		return nil
	}
	f, err := r.body.Files(p.file.ID)
	if err != nil {
		return err
	}
	r.file, r.now = f, f
	if p.encoded {
		r.now = picture.Base64(f)
	}
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.leave()
}

// leave closes the file that was being read. mu is held.
func (r *reader) leave() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Form is a Body of multipart/form-data (RFC 7578). End must be called last.
type Form struct {
	Body
	boundary string
}

// NewForm makes an empty form.
func NewForm(files video.Opener) *Form {
	return &Form{Body: Body{Files: files}, boundary: rand.Text()}
}

// Field adds a text. name must need no quoting.
func (f *Form) Field(name, value string) {
	f.Text("--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n")
}

// Upload adds a file. Its own name is not sent: it is the client's business.
func (f *Form) Upload(name string, file *video.File) {
	f.Text("--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + name + extensions[file.Type] +
		"\"\r\nContent-Type: " + file.Type + "\r\n\r\n")
	f.File(file)
	f.Text("\r\n")
}

// End adds the last line.
func (f *Form) End() { f.Text("--" + f.boundary + "--\r\n") }

// ContentType is the form's media type.
func (f *Form) ContentType() string { return "multipart/form-data; boundary=" + f.boundary }

// extensions are of the files that are sent: some providers go by them.
var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp",
	"video/mp4": ".mp4", "video/quicktime": ".mov", "video/webm": ".webm"}
