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

// Event is a step of a reply: exactly one of its fields is set. A reply is any
// number of Partials and then one Done; one that ends otherwise has failed.
type Event struct {
	Partial *Partial
	Done    *Reply
}

// Partial is an image on the way to the final one.
type Partial struct {
	Index int
	Image Image
	// Raw is the event's data as an upstream of the client's own shape wrote it:
	// see Reply.
	Raw []byte
}

// Reply is what was asked for.
type Reply struct {
	Created time.Time
	Images  []Image
	// Descriptions are the answer to Describe.
	Descriptions []string
	Usage        *Usage // nil: the upstream counts no tokens
	// What the images turned out to be, in the words of Request; "": not told.
	Background, OutputFormat, Quality, Size string

	// Raw is the reply, or the last event's data, as an upstream of the client's
	// own shape wrote it, if nothing in it needs to be changed: the door forwards
	// it. nil: it writes one.
	Raw []byte
}

// Delivered is how many images a client got of it: those that a charge is for.
// One that was withheld as unsafe has no content.
func (r *Reply) Delivered() int {
	n := 0
	for i := range r.Images {
		if r.Images[i].HasContent() {
			n++
		}
	}
	return n
}

// Image is one picture. Its content is one of Data, Base64 and URL, or nothing
// if it was withheld.
type Image struct {
	Data   []byte
	Base64 []byte // standard alphabet, padded, as an upstream wrote it
	// URL is where an upstream keeps it. Clients never get to see that: before
	// they do, it is the gateway's own.
	URL string

	MediaType     string // image/png, ...; "": look at the content
	Width, Height int    // 0: not told
	Seed          *int64
	Unsafe        bool   // is_image_safe false
	Prompt        string // the final one, where it was revised
	StyleType     string
	// Upscaled is the size after Upscale, of which Width and Height are the one
	// before.
	Upscaled Size
}

// HasContent reports whether there is a picture.
func (i *Image) HasContent() bool { return len(i.Data) > 0 || len(i.Base64) > 0 || i.URL != "" }

var errElsewhere = errors.New("the picture is not here")

// Reader reads the picture itself, if it is here.
func (i *Image) Reader() (io.Reader, error) {
	switch {
	case len(i.Data) > 0:
		return bytes.NewReader(i.Data), nil
	case len(i.Base64) > 0:
		return base64.NewDecoder(base64.StdEncoding, bytes.NewReader(i.Base64)), nil
	}
	return nil, errElsewhere
}

// AppendBase64 appends the picture in base64, if it is here.
func (i *Image) AppendBase64(dst []byte) []byte {
	if len(i.Base64) > 0 {
		return append(dst, i.Base64...)
	}
	return base64.StdEncoding.AppendEncode(dst, i.Data)
}

// Usage counts the tokens of the models that charge by them.
type Usage struct {
	InputText, InputImage   int64
	CachedInput             int64 // of both
	OutputText, OutputImage int64
}

// Input returns the total of input tokens. It is dialogue.NegativeCount if a part of it is negative.
func (u *Usage) Input() int64 { return sum(u.InputText, u.InputImage) }

// Output returns the total of output tokens, as Input does.
func (u *Usage) Output() int64 { return sum(u.OutputText, u.OutputImage) }

// Add sums the usage of several calls that made one reply.
func (u *Usage) Add(o *Usage) {
	u.InputText = sum(u.InputText, o.InputText)
	u.InputImage = sum(u.InputImage, o.InputImage)
	u.CachedInput = sum(u.CachedInput, o.CachedInput)
	u.OutputText = sum(u.OutputText, o.OutputText)
	u.OutputImage = sum(u.OutputImage, o.OutputImage)
}

func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return dialogue.NegativeCount
	}
	return a + min(b, math.MaxInt64-a)
}

// Tokens is the usage in the form that prices are applied to.
func (u *Usage) Tokens() dialogue.Usage {
	t := dialogue.NoUsage
	if u != nil {
		t.InputTotal, t.OutputTotal, t.CacheRead = u.Input(), u.Output(), u.CachedInput
	}
	return t
}
