package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for image.DecodeConfig
	_ "image/png"
	"io"

	_ "golang.org/x/image/webp"
)

// Errors of files that are not what they should be.
var (
	ErrFormat  = errors.New("file is neither PNG nor JPEG nor WebP")
	ErrCorrupt = errors.New("file is damaged")
)

// maxHeader bounds how far the header of a picture is looked for: metadata of a
// camera can come before it.
const maxHeader = 1 << 20

var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}

// Sniff tells the type of a picture by its first 12 bytes: "" if it is none that
// is known here. What a client or an upstream says it is does not count.
func Sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// Measure reads type and size from the header of a picture, and no more.
func Measure(r io.Reader) (mediaType string, size Size, err error) {
	var head [12]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", Size{}, err
	}
	if mediaType = Sniff(head[:n]); mediaType == "" {
		return "", Size{}, ErrFormat
	}
	c, _, err := image.DecodeConfig(io.MultiReader(bytes.NewReader(head[:n]), io.LimitReader(r, maxHeader)))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return mediaType, Size{}, fmt.Errorf("%w: its header cannot be read", ErrCorrupt)
	}
	return mediaType, Size{c.Width, c.Height}, nil
}

func (f *File) inspect() error {
	mediaType, size, err := Measure(f.Reader())
	f.MediaType, f.Width, f.Height = mediaType, size.Width, size.Height
	return err
}
