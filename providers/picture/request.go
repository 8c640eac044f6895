package picture

import (
	"encoding/json"
	"errors"
	"slices"

	"stagedoor/providers/dialogue"
)

// Operation says what the client wants done.
type Operation string

// The operations. All but Generate and Edit exist only on the image vendor's routes.
const (
	Generate          Operation = "generate"
	Edit              Operation = "edit"
	Remix             Operation = "remix"
	Reframe           Operation = "reframe"
	ReplaceBackground Operation = "replace_background"
	Describe          Operation = "describe"
	Upscale           Operation = "upscale"
)

// Request is one request for pictures. The rules of the client's shape have been checked, and
// nothing in it is spelled in a shape's own way. "", 0 and nil mean that the client did not
// give the parameter. A Request does not change once an upstream is asked.
type Request struct {
	// Inbound is the shape of the client. An upstream of the same shape may get Body.
	Inbound dialogue.Shape
	// Version is the generation of the client's interface, where the shape has several: "V1",
	// "V2" and "V3" of imagegen.
	Version   string
	Operation Operation
	Model     string // the name in the client's request

	Prompt         string
	NegativePrompt string
	N              int // number of images, at least 1

	// At most one of Size and Aspect is given. Without either the model chooses.
	Size   Size
	Aspect Aspect

	Quality      string // auto, low, medium, high; standard, hd
	OutputFormat string // png, jpeg, webp
	Compression  *int   // 0..100
	Background   string // auto, transparent, opaque
	Moderation   string // auto, low
	Style        string // vivid, natural
	Fidelity     string // of an edit to its sources: high, low

	// The following have the values of imagegen-and-oauth.md.
	StyleType      string // AUTO, GENERAL, ...
	RenderingSpeed string // TURBO, DEFAULT, QUALITY
	MagicPrompt    string // AUTO, ON, OFF
	Seed           *int64
	ImageWeight    *int // 1..100
	Resemblance    *int // of an upscaled picture, 1..100
	Detail         *int // of an upscaled picture, 1..100

	Sources []*File // the pictures to edit, remix or describe; the first is the main one
	Mask    *File
	// MaskKeeps says how Mask marks the part to change: false if that is transparent (images),
	// true if it is black and the part to keep is white (imagegen).
	MaskKeeps bool
	Styles    []*File      // style references
	Others    []Attachment // files under names that only the client's shape has

	Stream   bool
	Partials int // unfinished images to send before the final one, 0..3

	User string
	// Owner is the user of the client's key, or the key if it has no user. Masks of different
	// owners are converted in turns.
	Owner string
	// ShowsWithheld says that the client's shape can say of one image that it was withheld as unsafe.
	ShowsWithheld bool
	// Refusal is the form in which the client's shape reports that moderation refused the request.
	Refusal *dialogue.Moderation
	// Inline says that the client gets the picture itself and not an address.
	Inline bool

	// Extra holds the fields that the neutral form does not have, in the order of the client.
	Extra []Field
	// Body is the client's JSON, for an upstream of the same shape. It is nil if the client
	// sent a form. It must not be changed.
	Body []byte
}

// Attachment is a file with the name of its field.
type Attachment struct {
	Name string
	File *File
}

// Field is a field as the client sent it. The text of a form is a JSON string.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Text returns the value as a form writes it: a string without quotes, any other value as JSON.
func (f *Field) Text() string {
	var s string
	if json.Unmarshal(f.Value, &s) == nil {
		return s
	}
	return string(f.Value)
}

// Files returns all files of the request, in no particular order.
func (r *Request) Files() []*File {
	files := slices.Concat(r.Sources, r.Styles)
	for _, a := range r.Others {
		files = append(files, a.File)
	}
	if r.Mask != nil {
		files = append(files, r.Mask)
	}
	return files
}

// Close closes the files. No reader of them may be in use.
func (r *Request) Close() error {
	var errs []error
	for _, f := range r.Files() {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
