package picture

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
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
