package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"time"

	"stagedoor/providers/dialogue"
)

// Event is a step of a reply. Exactly one of its fields is set. A reply has any number of
// Partials and then one Done. A reply that ends without Done has failed.
type Event struct {
	Partial *Partial
	Done    *Reply
}

// Partial is an unfinished version of an image.
type Partial struct {
	Index int
	Image Image
	// Raw is the data of the event if the upstream speaks the client's shape. See Reply.Raw.
	Raw []byte
}

// Reply is the whole answer to a Request.
type Reply struct {
	Created time.Time
	Images  []Image
	// Descriptions holds the answer to Describe.
	Descriptions []string
	Usage        *Usage // nil if the upstream counts no tokens
	// These say what the images have become, in the words of Request. "" is unknown.
	Background, OutputFormat, Quality, Size string

	// Raw is the reply, or the data of the last event, if the upstream speaks the client's
	// shape and nothing in it must be changed. The handler forwards it. If Raw is nil, the
	// handler encodes the Reply.
	Raw []byte
}

// Delivered returns the number of images that the client gets and is charged for. An image
// that was withheld as unsafe does not count.
func (r *Reply) Delivered() int {
	n := 0
	for i := range r.Images {
		if r.Images[i].HasContent() {
			n++
		}
	}
	return n
}

// Image is one picture. Its content is one of Data, Base64 and URL. It has none if it was
// withheld.
type Image struct {
	Data   []byte
	Base64 []byte // standard alphabet, padded, as an upstream wrote it
	// URL is the address of the picture. An upstream's address is replaced by one of the
	// gateway before the client gets it.
	URL string

	MediaType     string // image/png and so on; "" if only the content shows it
	Width, Height int    // 0 if unknown
	Seed          *int64
	Unsafe        bool   // is_image_safe false
	Prompt        string // the prompt as revised, if it was
	StyleType     string
	// Upscaled is the size after Upscale. Width and Height are the size before.
	Upscaled Size
}

// HasContent reports whether the image has a content, so was not withheld.
func (i *Image) HasContent() bool { return len(i.Data) > 0 || len(i.Base64) > 0 || i.URL != "" }

var errRemote = errors.New("the content of the picture is only an address")

// Reader returns a reader of Data or Base64. It returns an error if there is only a URL.
func (i *Image) Reader() (io.Reader, error) {
	switch {
	case len(i.Data) > 0:
		return bytes.NewReader(i.Data), nil
	case len(i.Base64) > 0:
		return base64.NewDecoder(base64.StdEncoding, bytes.NewReader(i.Base64)), nil
	}
	return nil, errRemote
}

// AppendBase64 appends Data or Base64 in base64. It appends nothing if there is only a URL.
func (i *Image) AppendBase64(dst []byte) []byte {
	if len(i.Base64) > 0 {
		return append(dst, i.Base64...)
	}
	return base64.StdEncoding.AppendEncode(dst, i.Data)
}

// Usage counts tokens, for models that charge by them.
type Usage struct {
	InputText, InputImage   int64
	CachedInput             int64 // the part of both inputs that came from a cache
	OutputText, OutputImage int64
}

// Input returns the total of input tokens, or dialogue.NegativeCount if a part is negative.
func (u *Usage) Input() int64 { return sum(u.InputText, u.InputImage) }

// Output returns the total of output tokens, or dialogue.NegativeCount if a part is negative.
func (u *Usage) Output() int64 { return sum(u.OutputText, u.OutputImage) }

// Add adds the usage of another call for the same reply.
func (u *Usage) Add(o *Usage) {
	u.InputText = sum(u.InputText, o.InputText)
	u.InputImage = sum(u.InputImage, o.InputImage)
	u.CachedInput = sum(u.CachedInput, o.CachedInput)
	u.OutputText = sum(u.OutputText, o.OutputText)
	u.OutputImage = sum(u.OutputImage, o.OutputImage)
}

// sum adds counts that a provider reported. If one of them is negative, the sum is, so that the
// error is not hidden.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return dialogue.NegativeCount
	}
	return a + min(b, math.MaxInt64-a)
}

// Tokens returns the usage in the form to which prices are applied. u may be nil.
func (u *Usage) Tokens() dialogue.Usage {
	t := dialogue.NoUsage
	if u != nil {
		t.InputTotal, t.OutputTotal, t.CacheRead = u.Input(), u.Output(), u.CachedInput
		t.ImageIn, t.ImageOut = u.InputImage, u.OutputImage
	}
	return t
}
