package picture

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// JSON is a Content of one document.
type JSON []byte

// Open implements Content.
func (j JSON) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(j)), nil }

// Len implements Content.
func (j JSON) Len() int64 { return int64(len(j)) }

// ContentType implements Content.
func (j JSON) ContentType() string { return "application/json" }

// Form is a multipart/form-data Content (RFC 7578). Its files are read while it
// is sent, and its length is known before.
type Form struct {
	boundary string
	parts    []part
	length   int64
}

type part struct {
	head string
	text string
	file *File // or
}

// NewForm makes an empty form.
func NewForm() *Form {
	var b [24]byte
	rand.Read(b[:])
	return &Form{boundary: hex.EncodeToString(b[:])}
}

// quoted escapes a name as browsers do.
var quoted = strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")

// Field adds a text.
func (f *Form) Field(name, value string) {
	f.add(part{head: `Content-Disposition: form-data; name="` + quoted.Replace(name) + `"` + "\r\n\r\n", text: value})
}

// File adds a file. Its own name is not sent: it is the client's business.
func (f *Form) File(name string, file *File) {
	f.add(part{head: `Content-Disposition: form-data; name="` + quoted.Replace(name) + `"; filename="` + quoted.Replace(name) + file.Extension() +
		`"` + "\r\nContent-Type: " + file.MediaType + "\r\n\r\n", file: file})
}

func (f *Form) add(p part) {
	p.head = "--" + f.boundary + "\r\n" + p.head
	f.parts = append(f.parts, p)
	f.length += int64(len(p.head)+len(p.text)) + 2
	if p.file != nil {
		f.length += p.file.Size
	}
}

func (f *Form) last() string { return "--" + f.boundary + "--\r\n" }

// ContentType implements Content.
func (f *Form) ContentType() string { return "multipart/form-data; boundary=" + f.boundary }

// Len implements Content.
func (f *Form) Len() int64 { return f.length + int64(len(f.last())) }

// Open implements Content. The files must not be closed before the reader.
func (f *Form) Open() (io.ReadCloser, error) {
	readers := make([]io.Reader, 0, 3*len(f.parts)+1)
	for i := range f.parts {
		p := &f.parts[i]
		readers = append(readers, strings.NewReader(p.head))
		if p.file != nil {
			readers = append(readers, p.file.Reader(), strings.NewReader("\r\n"))
			continue
		}
		readers = append(readers, strings.NewReader(p.text+"\r\n"))
	}
	return io.NopCloser(io.MultiReader(append(readers, strings.NewReader(f.last()))...)), nil
}

// Document is a JSON Content with files in it as base64, which are encoded while
// it is sent.
type Document struct {
	pieces []piece
	length int64
}

type piece struct {
	json string
	file *File // or
}

// JSON adds a part of the document as it is.
func (d *Document) JSON(text []byte) {
	d.pieces = append(d.pieces, piece{json: string(text)})
	d.length += int64(len(text))
}

// Base64 adds a file, without quotes around it.
func (d *Document) Base64(f *File) {
	d.pieces = append(d.pieces, piece{file: f})
	d.length += (f.Size + 2) / 3 * 4
}

// ContentType implements Content.
func (d *Document) ContentType() string { return "application/json" }

// Len implements Content.
func (d *Document) Len() int64 { return d.length }

// Open implements Content. The files must not be closed before the reader.
func (d *Document) Open() (io.ReadCloser, error) {
	readers := make([]io.Reader, len(d.pieces))
	for i, p := range d.pieces {
		readers[i] = strings.NewReader(p.json)
		if p.file != nil {
			readers[i] = &encoded{src: p.file.Reader()}
		}
	}
	return io.NopCloser(io.MultiReader(readers...)), nil
}

// Base64 reads src as base64 text.
func Base64(src io.Reader) io.Reader { return &encoded{src: src} }

// encoded reads src as base64. Its buffer is a whole number of groups of three
// bytes, so that padding comes at the end only.
type encoded struct {
	src  io.Reader
	raw  [3 << 10]byte
	out  []byte // encoded and not read yet
	text [4 << 10]byte
	err  error
}

// Read implements io.Reader.
func (e *encoded) Read(p []byte) (int, error) {
	if len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		n, err := io.ReadFull(e.src, e.raw[:])
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		e.err = err
		e.out = base64.StdEncoding.AppendEncode(e.text[:0], e.raw[:n])
		if n == 0 {
			return 0, e.err
		}
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}
