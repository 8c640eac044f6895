package picture

import (
	"encoding/json"
	"errors"

	"stagedoor/providers/dialogue"
)

// Operation is what is to be done.
type Operation string

// The operations. The last ones are those of the image vendor's routes
// (imagegen-and-oauth.md 4).
const (
	Generate          Operation = "generate"
	Edit              Operation = "edit"
	Remix             Operation = "remix"
	Reframe           Operation = "reframe"
	ReplaceBackground Operation = "replace_background"
	Describe          Operation = "describe"
	Upscale           Operation = "upscale"
)

// Request is one request for pictures, checked against the rules of the shape it
// came in, and free of that shape's spelling. "", 0 and nil are "not given". It
// is not changed once an upstream is asked.
type Request struct {
	// Inbound is the shape of the client, so that an upstream of the same shape
	// may be sent Body, and generation may be told apart where a shape has several.
	Inbound dialogue.Shape
	// Version is the generation of the inbound interface, where it has several:
	// "V1", "V2" and "V3" of imagegen.
	Version   string
	Operation Operation
	Model     string // as the client asked for it

	Prompt         string
	NegativePrompt string
	N              int // images asked for, at least 1

	// At most one of Size and Aspect is given; neither is automatic.
	Size   Size
	Aspect Aspect

	Quality      string // auto, low, medium, high; standard, hd
	OutputFormat string // png, jpeg, webp
	Compression  *int   // 0..100
	Background   string // auto, transparent, opaque
	Moderation   string // auto, low
	Style        string // vivid, natural
	Fidelity     string // of edits to their sources: high, low

	// In the words of imagegen-and-oauth.md.
	StyleType      string // AUTO, GENERAL, ...
	RenderingSpeed string // TURBO, DEFAULT, QUALITY
	MagicPrompt    string // AUTO, ON, OFF
	Seed           *int64
	ImageWeight    *int // 1..100
	Resemblance    *int // of an upscaled picture, 1..100
	Detail         *int // likewise

	Sources []*File // what is edited, remixed, described; the first is the main one
	Mask    *File
	// MaskKeeps says how Mask is to be read: false, what is transparent is changed
	// (images); true, what is black is changed and white is kept (imagegen).
	MaskKeeps bool
	Styles    []*File      // style references
	Others    []Attachment // files under names that only the inbound shape knows

	Stream   bool
	Partials int // images on the way to the final one, 0..3

	User string
	// Inline: the client is to get the picture itself. Otherwise it gets an
	// address.
	Inline bool

	// Extra are the fields the form has no place for, in the order they came.
	Extra []Field
	// Body is the client's JSON if that is how it asked, for an upstream of its
	// own shape. It must not be written to.
	Body []byte
}

// Attachment is a file under a name of its own.
type Attachment struct {
	Name string
	File *File
}

// Field is a field as it came: a form's text is a JSON string.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Text is the value as a form has it: a string's characters, any other value's
// JSON.
func (f *Field) Text() string {
	var s string
	if json.Unmarshal(f.Value, &s) == nil {
		return s
	}
	return string(f.Value)
}

// Files are all of the request's, in no order that matters.
func (r *Request) Files() []*File {
	files := append(append([]*File(nil), r.Sources...), r.Styles...)
	for _, a := range r.Others {
		files = append(files, a.File)
	}
	if r.Mask != nil {
		files = append(files, r.Mask)
	}
	return files
}

// Close gives the files back. Nothing may read them any more.
func (r *Request) Close() error {
	var errs []error
	for _, f := range r.Files() {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
