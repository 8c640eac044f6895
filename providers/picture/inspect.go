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

// Errors for files that are not pictures.
var (
	ErrFormat  = errors.New("file is neither PNG nor JPEG nor WebP")
	ErrCorrupt = errors.New("file is damaged")
)

// maxHeader bounds the bytes that are searched for the header of a picture. The metadata of a
// camera can come before it.
const maxHeader = 1 << 20

var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}

// Sniff returns the media type of a picture from its first 12 bytes, or "" if it is not PNG,
// JPEG or WebP. Use it in place of the type that a client or an upstream claims.
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

// Measure returns the media type and the size from the header of a picture. It decodes no pixels. It reads at most
// maxHeader bytes. A file that is no picture is ErrFormat, and one whose header is broken or has no size is ErrCorrupt
// with its media type.
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

// readHeader finds the type and the size of the picture in its own bytes. What the client says of
// the type is not trusted.
func (f *File) readHeader() error {
	mediaType, size, err := Measure(f.Reader())
	f.MediaType, f.Width, f.Height = mediaType, size.Width, size.Height
	return err
}
