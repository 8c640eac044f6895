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

// JSON is a Content that consists of one JSON document in memory.
type JSON []byte

// Open implements Content.
func (j JSON) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(j)), nil }

// Len implements Content.
func (j JSON) Len() int64 { return int64(len(j)) }

// ContentType implements Content.
func (j JSON) ContentType() string { return "application/json" }

// Form is a multipart/form-data Content (RFC 7578). Its files are read while it is sent.
type Form struct {
	boundary string
	parts    []part
	length   int64
}

// part is a field of a form, with either a text or a file.
type part struct {
	head string
	text string
	file *File
}

// NewForm returns an empty form.
func NewForm() *Form {
	var b [24]byte
	rand.Read(b[:])
	return &Form{boundary: hex.EncodeToString(b[:])}
}

// nameEscaper escapes a name as browsers do.
var nameEscaper = strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")

// Field adds a field with a text.
func (f *Form) Field(name, value string) {
	f.add(
		part{
			head: `Content-Disposition: form-data; name="` + nameEscaper.Replace(name) + `"` + "\r\n\r\n",
			text: value,
		},
	)
}

// File adds a file. The client's name of the file is not sent, because it may be private.
func (f *Form) File(name string, file *File) {
	f.add(
		part{
			head: `Content-Disposition: form-data; name="` + nameEscaper.Replace(
				name,
			) + `"; filename="` + nameEscaper.Replace(name) + file.Extension() +
				`"` + "\r\nContent-Type: " + file.MediaType + "\r\n\r\n",
			file: file,
		},
	)
}

// add appends a part and counts its length, which must be known before the form is sent.
func (f *Form) add(p part) {
	p.head = "--" + f.boundary + "\r\n" + p.head
	f.parts = append(f.parts, p)
	f.length += int64(len(p.head)+len(p.text)) + 2
	if p.file != nil {
		f.length += p.file.Size
	}
}

func (f *Form) closingLine() string { return "--" + f.boundary + "--\r\n" }

// ContentType implements Content.
func (f *Form) ContentType() string { return "multipart/form-data; boundary=" + f.boundary }

// Len implements Content.
func (f *Form) Len() int64 { return f.length + int64(len(f.closingLine())) }

// Open implements Content. Close the reader before the files.
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
	return io.NopCloser(io.MultiReader(append(readers, strings.NewReader(f.closingLine()))...)), nil
}

// Document is a JSON Content with files in base64, which are encoded while it is sent.
type Document struct {
	pieces []piece
	length int64
}

// piece is a part of a document: either text or a file.
type piece struct {
	json string
	file *File
}

// JSON adds a part of the document without changing it.
func (d *Document) JSON(text []byte) {
	d.pieces = append(d.pieces, piece{json: string(text)})
	d.length += int64(len(text))
}

// Base64 adds a file. The caller writes the quotes around it with JSON.
func (d *Document) Base64(f *File) {
	d.pieces = append(d.pieces, piece{file: f})
	d.length += (f.Size + 2) / 3 * 4
}

// ContentType implements Content.
func (d *Document) ContentType() string { return "application/json" }

// Len implements Content.
func (d *Document) Len() int64 { return d.length }

// Open implements Content. Close the reader before the files.
func (d *Document) Open() (io.ReadCloser, error) {
	readers := make([]io.Reader, len(d.pieces))
	for i, p := range d.pieces {
		readers[i] = strings.NewReader(p.json)
		if p.file != nil {
			readers[i] = &base64Reader{src: p.file.Reader()}
		}
	}
	return io.NopCloser(io.MultiReader(readers...)), nil
}

// Base64 returns a reader of src in standard base64.
func Base64(src io.Reader) io.Reader { return &base64Reader{src: src} }

// base64Reader encodes src while it is read. The size of its buffer is a multiple of three
// bytes, so that only the end is padded.
type base64Reader struct {
	src  io.Reader
	raw  [3 << 10]byte
	out  []byte // encoded and not read yet
	text [4 << 10]byte
	err  error
}

// Read implements io.Reader.
func (e *base64Reader) Read(p []byte) (int, error) {
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
